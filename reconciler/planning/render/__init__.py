"""Rendering of one package from its source, its configuration and its local changes.

Decisions about drafts do not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
