"""Status files: the PackageStatus next to each package, and the files of the status branch.

The modules build and format these files. Reading and pushing branches belongs to `git/` and `reconcile/`.
"""
