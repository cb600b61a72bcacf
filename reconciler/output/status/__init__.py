"""Status files: the PackageStatus file next to each package, and the files of the status branch.

This package builds and formats status files. The packages `git` and `reconcile` read and push the branches.
"""
