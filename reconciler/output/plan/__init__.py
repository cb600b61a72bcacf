"""The plan of a pass as text, Markdown and JSON data: drafts, removals and findings.

The package `planning` makes the decisions. This package only formats the decisions.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
