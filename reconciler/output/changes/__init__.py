"""Differences between two versions of a package: fields, objects, Kptfiles and files, as values, lines and diffs.

This package does not render or merge packages: the package `reconciler.packages` does this.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
