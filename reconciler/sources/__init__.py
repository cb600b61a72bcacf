"""Adapters for package sources that are not Git repositories, such as the program that renders Helm charts.

The rules about the content of a source are in `reconciler/packages`. This package finds and runs programs, and stores
their results.
"""
