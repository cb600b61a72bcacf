"""Values of the planning layer: targets, package sources, recorded states, outcomes and finding codes.

Functions that decide about packages do not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
