"""Updates of whole packages: three trees in, one tree out, and what both sides changed (kpt.md 5, 6)."""

from reconciler.packages.update.fetching import Fetch, Fetched, ref_candidates
from reconciler.packages.update.get import get_package
from reconciler.packages.update.options import MergeOptions, compat_options
from reconciler.packages.update.result import Updated
from reconciler.packages.update.three_way import merge, strategy_of, update
from reconciler.packages.update.walk import update_from_upstream

__all__ = [
    "Fetch",
    "Fetched",
    "MergeOptions",
    "Updated",
    "compat_options",
    "get_package",
    "merge",
    "ref_candidates",
    "strategy_of",
    "update",
    "update_from_upstream",
]
