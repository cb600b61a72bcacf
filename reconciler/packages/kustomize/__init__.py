"""Kustomize overlays: the request to build one, the checks before the build, and the conversion of SOPS documents.

This package starts no program and downloads nothing.
"""
