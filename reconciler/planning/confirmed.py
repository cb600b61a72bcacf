"""Deletions that people confirmed and that several shards carry out, each its own, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, PackageRecord
from reconciler.rules.guards import names_hash
from reconciler.rules.variant import Guard, Place

States = Mapping[Destination, DestinationState]


def confirmed(guards: Mapping[ObjectKey, Guard], states: States) -> dict[ObjectKey, Guard]:
    """Return the guards with what was confirmed let go, though another shard has carried out a part of it already.

    A hash is over all that was to go then, and what is left by now has another one. So state decides: everything that
    is held now was held before, and told by a hash that people have confirmed.
    """
    places = {(one.key.namespace, one.name): state for one, state in states.items()}

    def released(guard: Guard) -> bool:
        records = [_record(place, places) for place in guard.waiting]
        return bool(records) and all(one and _is_confirmed(one, guard.acknowledged) for one in records)

    return {key: _let_go(guard) if guard.acknowledged and released(guard) else guard for key, guard in guards.items()}


def _let_go(guard: Guard) -> Guard:
    return replace(guard, places=guard.places | guard.waiting, confirmed=guard.confirmed | guard.waiting)


def _record(place: Place, states: Mapping[tuple[str, str], DestinationState]) -> PackageRecord | None:
    state = states.get((place.namespace, place.repository))
    return state.packages.get(place.package) if state else None


def _is_confirmed(record: PackageRecord, acknowledged: frozenset[str]) -> bool:
    return any(is_named_in_finding(record, token) for token in acknowledged)


def is_named_in_finding(record: PackageRecord, token: str) -> bool:
    """Return whether a package is held by a finding that asked for this hash."""
    if record.outcome.get("kind") != "held":
        return False
    return any(names_hash(str(one["message"]), token) for one in record.outcome.get("findings", ()))
