"""Differences between two versions of a package: fields, objects, Kptfiles and files, as values, lines and diffs.

This package does not render or merge packages: the package `reconciler.packages` does this.
"""
