"""Updates of packages: the three-way merge of file trees, resources and Kptfiles. Conflicts are returned as values.

The merge of a single resource is in `krm.merge3`. Rendering does not belong here.
"""

from reconciler.packages.update.fetching import (
    FetchedPackage,
    PackageFetcher,
    get_package,
    list_ref_candidates,
    update_from_upstream,
)
from reconciler.packages.update.options import MergeOptions, create_compat_options
from reconciler.packages.update.sides import UpdateResult
from reconciler.packages.update.three_way import get_update_strategy, merge_packages, update_package

__all__ = [
    "FetchedPackage",
    "MergeOptions",
    "PackageFetcher",
    "UpdateResult",
    "create_compat_options",
    "get_package",
    "get_update_strategy",
    "list_ref_candidates",
    "merge_packages",
    "update_from_upstream",
    "update_package",
]
