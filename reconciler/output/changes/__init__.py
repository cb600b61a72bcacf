"""Differences between two versions of a package: fields, objects, Kptfiles and files, as values, lines and diffs.

The folders of the reports use these values. Rendering and merging of packages is not here, but in `packages/`.
"""
