"""A GitOps daemon: it renders packages for clusters from a config repository, and pushes them as drafts for review."""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

__version__ = "0.1.0"

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
