"""The impact of a config change on the fleet as text, Markdown and JSON data.

The package `planning/attribution` compares the two plans. This package groups and formats the differences.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
