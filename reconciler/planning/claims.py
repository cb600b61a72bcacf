"""Claims: who wants which package of a destination, and whose word counts (design 10.14)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.krm.identity import ObjectKey
from reconciler.planning.codes import DOWNSTREAM_CONFLICT
from reconciler.planning.decide import Question, stalled
from reconciler.planning.destination import Packages, folders_above
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Blocked
from reconciler.planning.state import DestinationState, Seen
from reconciler.rules.variant import Guard, Owner, Place, Variant
from reconciler.rules.variants.claimed import claim_of
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True)
class Unready:
    """The owners that are not ready: the place that each asks for, where it is known, else what it may ask for.

    `objects` are PackageVariants and sets, `others` are owners of other kinds. `packages` are paths that are asked for
    on clusters that are not known.
    """

    places: Mapping[tuple[str, str], ObjectKey] = field(default_factory=dict)
    objects: tuple[ConfigObject, ...] = ()
    others: frozenset[ObjectKey] = frozenset()
    packages: Mapping[str, ObjectKey] = field(default_factory=dict)

    def claimant(self, place: Place, owner: Owner, *, is_gone: bool) -> ObjectKey | None:
        """Return who may ask for a package that its owner does not ask for any more.

        An object of another namespace counts where it names the package, or where it may be the owner, that moved:
        `is_gone` says that the config does not have the owner.
        """
        if known := self.places.get((place.repository, place.package)) or self.packages.get(place.package):
            return known
        names = {(one.kind, one.name) for one in (owner.key, owner.set) if one} if is_gone else set()
        for one in self.objects:
            claim = claim_of(one.data, place.repository, place.package)
            is_near = one.key.namespace == place.namespace or (one.key.kind, one.key.name) in names
            if claim == "named" or (claim == "possible" and is_near):
                return one.key
        return next((one for one in sorted(self.others) if (one.kind, one.name) in names), None)


@dataclass(frozen=True)
class Claims:
    """Who wants what on one destination, and which owners are alive.

    `alive` are all owners of the config; `unplaced` those of them, and sets, whose packages could not be worked
    out; `complete` is False while a file of the config could not be read, so that nobody's absence is proved
    (design 10.5). `stalled` are the packages that owners want which cannot be worked out now.

    What decides on what nobody wants any more: `homes` are the places that each owner wants, several for those in
    `spreading`, `guards` say what sets let go, `dependents` name by package one who has it as upstream, `alike` are
    objects of kinds that no room reads, by namespace and name. `ownerless`: the config has no owner of packages at
    all. `unready` are the owners anywhere that are not ready. `acknowledged` are the hashes of removals that the object
    of the target confirms; without one, no more than `max_delete_percent` of the target's published packages are
    removed at once.
    """

    variants: tuple[Variant, ...]
    alive: Set[ObjectKey]
    unplaced: frozenset[ObjectKey]
    complete: bool
    stalled: frozenset[str] = frozenset()
    homes: Mapping[ObjectKey, frozenset[Place]] = field(default_factory=dict)
    spreading: frozenset[ObjectKey] = frozenset()
    guards: Mapping[ObjectKey, Guard] = field(default_factory=dict)
    dependents: Mapping[str, ObjectKey] = field(default_factory=dict)
    alike: Mapping[tuple[str, str], ObjectKey] = field(default_factory=dict)
    ownerless: bool = False
    unready: Unready = field(default_factory=Unready)
    acknowledged: frozenset[str] = frozenset()
    max_delete_percent: int = 100

    def has(self, owner: Owner) -> bool:
        """Return whether the owner is in the config: itself, or through a set that could not be expanded."""
        return owner.key in self.alive or owner.set in self.unplaced

    def wants(self, package: str) -> bool:
        """Return whether somebody wants a package here, whoever gets it and whether or not it can be made now."""
        return package in self._wanted

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return self.stalled | {variant.place.package for variant in self.variants}

    @property
    def doubt(self) -> str:
        """Why nobody's absence is proved, or ""."""
        return "" if self.complete else "an error of the config leaves open which objects it has"

    def is_gone(self, owner: Owner) -> bool:
        """Return whether the config has neither an owner nor the set that made it."""
        return not (self.has(owner) or owner.set in self.guards or owner.key in self.guards)

    def look_alike(self, owner: Owner) -> str:
        """Return why an owner may be there under a misspelt kind, or ""."""
        found = (self.alike.get((one.namespace, one.name)) for one in (owner.key, owner.set) if one)
        other = next((one for one in found if one), None)
        return f"{owner.key} is not there, but {other}, which nothing reads, may be meant" if other else ""

    def is_free_of(self, owner: Owner, place: Place) -> bool:
        """Return whether an owner does not want a place any more: it is gone, or wants another one (design 10.14)."""
        return not self.has(owner) or place not in self.homes.get(owner.key, {place})

    def home(self, owner: Owner) -> Place | None:
        """Return the one place of an owner that has only one, None where it is not known, or one of many."""
        places = self.homes.get(owner.key, frozenset()) if owner.key not in self.spreading else frozenset()
        return next(iter(places), None)

    def keeps(self, owner: Owner) -> bool:
        """Return whether the owner is there, but where its package goes cannot be told in this pass."""
        return owner.key in self.unplaced or owner.set in self.unplaced


def chosen(claims: Claims, state: DestinationState) -> tuple[dict[str, Variant], list[Blocked]]:
    """Return the rightful claimant of each package, and the outcome of all others.

    One or nested packages claimed twice go to the owner in state, else to the least of the owners.
    """
    winners: dict[str, Variant] = {}
    taken = Packages()
    losers: list[Blocked] = []
    for variant in sorted(claims.variants, key=lambda one: _rank(one, state)):
        package = variant.place.package
        rivals = [winners[one] for one in (package, *taken.nested(package)) if one in winners]
        if rivals:
            losers.append(_lost(variant, rivals[0]))
        else:
            winners[package] = variant
            taken.add(package)
    return dict(sorted(winners.items())), losers


def _rank(variant: Variant, state: DestinationState) -> tuple[bool, ObjectKey]:
    record = state.packages.get(variant.place.package)
    return (not (record and record.owned and record.owner.key == variant.owner.key), variant.owner.key)


def _lost(variant: Variant, rival: Variant) -> Blocked:
    message = f"package {variant.place} is also wanted by {rival.owner.key} as {rival.place.package}"
    return stalled(Question(variant, None, Seen()), DOWNSTREAM_CONFLICT, message)


def ask(variant: Variant, claims: Claims, ground: Ground) -> Question:
    """Return the question that one variant puts to `decide`."""
    package = variant.place.package
    record = ground.state.packages.get(package)
    nested = () if record and record.owned else _nested(package, ground)
    owner_gone = record is not None and claims.complete and claims.is_free_of(record.owner, variant.place)
    return Question(variant, record, ground.look(package), nested, owner_gone, ground.obstacle(package))


def _nested(package: str, ground: Ground) -> tuple[str, ...]:
    return (*ground.owned.nested(package), *_standing_above(package, ground))


def _standing_above(package: str, ground: Ground) -> tuple[str, ...]:
    if ground.heads.branch is None:
        return ()
    # a Kptfile beside all packages makes none of them a subpackage
    above = (one for one in folders_above(package) if one)
    return tuple(
        one for one in above
        if ground.objects.blob_at(ground.heads.branch, f"{ground.destination.path(one)}/Kptfile")
    )  # fmt: skip
