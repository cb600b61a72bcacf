"""The result of `reconciler adopt`, and its text, JSON and `ADOPT.md`."""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
