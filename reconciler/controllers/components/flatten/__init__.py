"""Flattening: generation of a component definition that includes the platform addons of a component type.

This package does not compile or render component types.
"""
