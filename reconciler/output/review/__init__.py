"""Open drafts, results of review actions, and pull requests as text, Markdown and JSON data.

The package `review` performs the actions. The packages `reconcile` and `forge` open pull requests.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
