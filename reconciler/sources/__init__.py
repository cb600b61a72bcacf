"""Adapters for package sources that are not Git repositories: chart repositories, registries, and rendering programs.

`artifacts.py` reads charts and artifacts. The rules about the content of a source are in `reconciler/packages`, and the
code that decides which version a package uses is in `reconciler/controllers`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
