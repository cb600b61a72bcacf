"""Explanations of a plan: the provenance of a value, renders from recorded inputs, impact, and validation.

This package makes no decisions about drafts.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
