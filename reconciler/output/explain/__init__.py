"""Formats explanations of values, and results of the commands `verify` and `why`, as text and JSON data."""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
