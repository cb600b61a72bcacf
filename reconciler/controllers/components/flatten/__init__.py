"""Flattening: generation of a component definition that includes the platform addons of a component type.

Compilation and rendering of component types do not belong here.
"""
