"""Status files: the PackageStatus file next to each package, and the files of the status branch.

This package builds and formats status files. The packages `git` and `reconcile` read and push the branches.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
