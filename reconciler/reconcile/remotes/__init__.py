"""The remote repositories of a pass: fetches, pushes and back-off, and reading of objects, states and drafts.

The parent package writes the commits of drafts and states.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
