"""The guard of placements: while a policy is there, it does not let too much go at once (design 10.15)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.guards import decide
from reconciler.rules.placement.model import PropagationPolicy, Surroundings, owner_of, package_of
from reconciler.rules.variant import Guard, Place


@dataclass(frozen=True)
class Guarded:
    """What the policies of a namespace let go; `held_by` are those that do not, and have not said so."""

    guard: Guard
    held_by: tuple[PropagationPolicy, ...] = ()


def guard_packages(
    namespace: str,
    policies: Sequence[PropagationPolicy],
    wanted: Collection[str],
    existing: Sequence[str],
    inventory: Inventory,
    around: Surroundings,
) -> Guarded:
    """Return which of the existing packages of a namespace may go, of clusters that do not want them any more.

    One of the policies has to acknowledge them; a policy of many namespaces may name several hashes, with commas.
    """
    package = package_of(namespace)
    doomed = [(cluster, package) for cluster in existing if cluster not in wanted]
    places = frozenset(Place(inventory.homes[cluster].namespace, cluster, package) for cluster, _ in doomed)
    held = around.held.get(owner_of(namespace).key, {})
    acknowledged = frozenset[str]().union(*(policy.acknowledged for policy in policies))
    named = ("packages", _named([policy.key for policy in policies]))
    decision = decide(doomed, len(existing), held, acknowledged, around.max_delete_percent, named)
    if decision.why:
        return Guarded(Guard(frozenset(), decision.why, decision.existing, places, acknowledged), tuple(policies))
    return Guarded(Guard(places, confirmed=places if decision.is_confirmed else frozenset()))


def _named(keys: Sequence[ObjectKey]) -> str:
    return " or ".join(map(str, keys))
