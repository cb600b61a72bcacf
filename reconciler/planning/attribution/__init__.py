"""Analysis of plans and packages.

The package determines the provenance of values, renders published packages again from recorded inputs, compares plans
to find the impact of a config change, and validates rendered packages. It makes no decisions about drafts.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
