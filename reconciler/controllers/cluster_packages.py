"""Functions for controllers that generate one package per cluster.

The functions return three kinds of results:

- the targets of packages
- the packages that are kept, because the definition of their cluster is invalid or not unique
- deletion guards
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.deletion_guards import DeletionDecision, PackageLocation
from reconciler.controllers.results import DeletionGuard, PackageOwner, PackageTarget, StalledVariant
from reconciler.krm.objects import Condition


def get_package_target(location: PackageLocation, inventory: ClusterInventory) -> PackageTarget:
    """Return the target of a package. The namespace of the target is "" if the cluster has no Repository."""
    cluster, package = location
    target_key = inventory.target_keys.get(cluster)
    return PackageTarget(target_key.namespace if target_key else "", cluster, package)


def keep_uncertain_packages(
    owners: Mapping[PackageLocation, PackageOwner], requested: Container[PackageLocation], inventory: ClusterInventory
) -> Iterator[StalledVariant]:
    """Yield the packages that must stay because their cluster is uncertain.

    A cluster is uncertain if an object that may define the cluster is invalid or declared more than once. Packages that
    are requested are not included.
    """
    for location, owner in sorted(owners.items()):
        cluster = location[0]
        if cluster in inventory.uncertain_names and cluster in inventory.target_keys and location not in requested:
            message = (
                f'an object that may define the cluster "{cluster}" is invalid or declared more than once;'
                " the package stays unchanged"
            )
            ready = Condition("Ready", "False", "ClusterInDoubt", message)
            yield StalledVariant(owner, (ready,), (), get_package_target(location, inventory))


def build_deletion_guard(
    decision: DeletionDecision,
    targets: frozenset[PackageTarget],
    acknowledged_hashes: frozenset[str],
    *,
    can_be_confirmed: bool = True,
) -> DeletionGuard:
    """Return the deletion guard that applies a decision to the packages in `targets`.

    If `can_be_confirmed` is false, a person cannot confirm the deletion.
    """
    if decision.reason:
        unconfirmed = targets if can_be_confirmed else frozenset[PackageTarget]()
        return DeletionGuard(frozenset(), decision.reason, decision.existing_count, unconfirmed, acknowledged_hashes)
    return DeletionGuard(targets, confirmed=targets if decision.is_confirmed else frozenset())
