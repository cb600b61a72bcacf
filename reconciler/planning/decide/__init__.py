"""Decisions for each target: which packages are drafted, kept, deleted or blocked.

Code that reads branches or renders packages does not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
