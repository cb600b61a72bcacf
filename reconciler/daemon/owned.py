"""Which packages the states of destinations say that owners of a kind have: what rooms ask of earlier passes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, PackageRecord
from reconciler.rules.guards import Unit
from reconciler.rules.variant import Owner

States = Mapping[Destination, DestinationState]


class Owned:
    """The packages on clusters of owners of one kind, as far as states can be read."""

    def __init__(self, states: States, group: str, kind: str) -> None:
        self._states = {one.name: state for one, state in states.items() if one.deployment}
        self._kind = (group, kind)

    def owned(self) -> Mapping[Unit, Owner]:
        """Return the owners of what was drafted or published, and is not on its way out."""
        return {unit: record.owner for unit, record in self._records()}

    def inputs(self) -> Mapping[Unit, Collection[str]]:
        """Return what each package was last made of."""
        return {unit: record.trace.keys() for unit, record in self._records()}

    def held(self) -> Mapping[ObjectKey, Mapping[Unit, int]]:
        """Return the packages that are held, by the set that made their owners, else by owner: how many it had then."""
        found: dict[ObjectKey, dict[Unit, int]] = {}
        for unit, record in self._records():
            if count := record.outcome.get("existing"):
                found.setdefault(record.owner.set or record.owner.key, {})[unit] = count
        return found

    def _records(self) -> Iterator[tuple[Unit, PackageRecord]]:
        for cluster, state in sorted(self._states.items()):
            for package, record in state.owned_kinds.get(self._kind, ()):
                yield (cluster, package), record
