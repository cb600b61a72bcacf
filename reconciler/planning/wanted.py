"""Who wants what, by place: the variants of all rooms, as each destination asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from reconciler.krm.identity import ObjectKey
from reconciler.rules.remembered import same_objects
from reconciler.rules.variant import Place, RoomResult, Variant

Here = tuple[str, str]
"""The namespace and name of a destination."""


@dataclass(frozen=True)
class Wanted:
    """What the rooms have made of a config, by destination and by owner."""

    room: RoomResult

    def is_of(self, room: RoomResult) -> bool:
        """Return whether a pass has come to the very same variants, and as much is stalled."""
        mine = self.room
        return same_objects(mine.variants, room.variants) and same_objects(mine.stalled, room.stalled)

    @cached_property
    def at(self) -> Mapping[Here, tuple[Variant, ...]]:
        """The variants of each destination."""
        found: dict[Here, list[Variant]] = {}
        for variant in self.room.variants:
            found.setdefault((variant.place.namespace, variant.place.repository), []).append(variant)
        return {here: tuple(variants) for here, variants in found.items()}

    def has(self, destination: ObjectKey) -> bool:
        """Return whether a destination is some variant's downstream."""
        return (destination.namespace, destination.name) in self.at

    @cached_property
    def homes(self) -> Mapping[ObjectKey, frozenset[Place]]:
        """The places that each owner wants."""
        found: dict[ObjectKey, set[Place]] = {}
        for variant in self.room.variants:
            found.setdefault(variant.owner.key, set()).add(variant.place)
        return {owner: frozenset(places) for owner, places in found.items()}

    @cached_property
    def spreading(self) -> frozenset[ObjectKey]:
        """The owners that may have a package on many destinations."""
        return frozenset(variant.owner.key for variant in self.room.variants if variant.spreads)

    @cached_property
    def stalled(self) -> frozenset[ObjectKey]:
        """The owners whose package cannot be worked out now."""
        return frozenset(one.owner.key for one in self.room.stalled)

    @cached_property
    def stalled_at(self) -> Mapping[Here, frozenset[str]]:
        """The packages of each destination that cannot be worked out now."""
        found: dict[Here, frozenset[str]] = {}
        for place in (one.place for one in self.room.stalled if one.place):
            here = (place.namespace, place.repository)
            found[here] = found.get(here, frozenset()) | {place.package}
        return found

    @cached_property
    def dependents(self) -> Mapping[Here, Mapping[str, ObjectKey]]:
        """Of each Repository the packages that are somebody's upstream, with one who has them."""
        found: dict[Here, dict[str, ObjectKey]] = {}
        for upstream, owner in ((one.upstream, one.owner) for one in self.room.variants):
            if upstream:
                here = found.setdefault((upstream.namespace, upstream.repository), {})
                here.setdefault(upstream.package, owner.key)
        return found
