"""The guard of bindings: while one is there, it does not let too much go at once (design 10.15)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.composition.surroundings import Surroundings
from reconciler.rules.guards import Unit, acknowledged, decide
from reconciler.rules.variant import Guard, Place
from reconciler.snapshot.catalog import ConfigObject


def guard_binding(
    one: ConfigObject, existing: Sequence[Unit], wanted: Collection[Unit], inventory: Inventory, around: Surroundings
) -> Guard:
    """Return which of the packages of a binding may go that it does not want any more."""
    doomed = [unit for unit in existing if unit not in wanted]
    confirmed = acknowledged(one.annotations)
    held, named = around.held.get(one.key, {}), ("packages", str(one.key))
    decision = decide(doomed, len(existing), held, confirmed, around.max_delete_percent, named)
    places = frozenset(_place(unit, inventory) for unit in doomed)
    if decision.why:
        return Guard(frozenset(), decision.why, decision.existing, places, confirmed)
    return Guard(places, confirmed=places if decision.is_confirmed else frozenset())


def _place(unit: Unit, inventory: Inventory) -> Place:
    cluster, package = unit
    home = inventory.homes.get(cluster)
    return Place(home.namespace if home else "", cluster, package)
