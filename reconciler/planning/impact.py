"""Impact: what another config makes different for every package, from two plans over the same fleet (design 7).

What both configs come to alike is told by no one; what of a package stands on its branches today only matters where
one of them leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Held, Leaving, Outcome, Unchanged
from reconciler.rules.variant import Owner, RoomResult, Stalled
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Trace

Kind = Literal["wanted", "declined", "blocked", "stalled", "held", "left", "leaving", "none"]
ConflictPlace = tuple[str, str, str]
"""The file, the resource and the pointer of a conflict."""
HELD_UP = frozenset({"blocked", "stalled", "held", "left"})
"""The kinds of what is kept from being as the config wants it."""
DESTINATION_GONE = "DestinationGone"
"""The reason of what is left because its destination is not in the config any more."""
_GONE = "the destination is not in the config any more, and nothing there is touched"
NOT_READ = frozenset({"RepositoryUnreachable", "UpstreamUnreachable", "StateUnreadable", "EngineTooOld"})
"""The codes of findings about data that could not be read, so that a plan over it proves nothing."""
_UNKNOWN = "what its owner wants cannot be worked out, and it stays as it is"


@dataclass(frozen=True)
class Outlook:
    """What one config comes to for a package: the tree that it is to have, or why it gets none.

    `left` are packages that stay as they are though nobody decides on them, `declined` those that are to have what
    people did not want. `review` is what makes a commit besides the tree. `reason` and `message` say what holds it up,
    or how it leaves; `trace` is what it was made of.
    """

    kind: Kind = "none"
    owner: Owner | None = None
    tree: TreeId | None = None
    review: str = ""
    reason: str = ""
    message: str = ""
    outcome: Outcome | None = None
    leaving: Leaving | None = None

    @property
    def fate(self) -> tuple[object, ...]:
        """What is equal for packages that come to the same."""
        message = self.message if self.kind in HELD_UP else ""
        return self.kind, self.tree, self.review, self.reason, message

    @property
    def trace(self) -> Trace:
        """The questions that its render asked, with their answers; {} where nothing was rendered."""
        match self.outcome:
            case Blocked(trace=trace):
                return trace
            case Draft(record=record) | Unchanged(record=record):
                return record.trace
            case None:
                return {}


@dataclass(frozen=True)
class Effect:
    """One package that another config makes different: what it comes to by the one, and by the other.

    `destination` is None for an owner of which not even the place can be worked out. `had` and `has` are the files
    that it is to have by the one and by the other, None where they are too large to be read; what stands is meant
    where a config leaves it as it is. `known` is where people's edits are in conflict by the one already.
    """

    destination: Destination | None
    package: str
    before: Outlook
    after: Outlook
    had: FileTree | None = field(default_factory=FileTree)
    has: FileTree | None = field(default_factory=FileTree)
    known: frozenset[ConflictPlace] = frozenset()

    @property
    def place(self) -> str:
        """Where the package is, `<repository>/<package>`; "" where nobody knows."""
        return f"{self.destination.name}/{self.package}" if self.destination else ""

    @property
    def owner(self) -> Owner | None:
        """Whose package it is, or was."""
        return self.after.owner or self.before.owner

    @property
    def drafts(self) -> bool:
        """Whether a sync of the other config makes a draft of it."""
        return isinstance(self.after.outcome, Draft)

    @property
    def causes(self) -> tuple[str, ...]:
        """The questions of its render that the other config answers differently, the surest first."""
        before, after = self.before.trace, self.after.trace
        both = tuple(name for name in sorted(before.keys() & after.keys()) if before[name] != after[name])
        if both or not isinstance(self.after.outcome, Draft):
            return both or tuple(sorted(before.keys() ^ after.keys()))
        return self.after.outcome.causes


def effects(base: FleetPlan, head: FleetPlan) -> tuple[Effect, ...]:
    """Return every package that comes to something else by `head` than by `base`, by place."""
    before, after = _Fleet(base), _Fleet(head)
    places = sorted({*before.places, *after.places}, key=lambda one: (one[0].name, one[0], one[1], one[2]))
    found = tuple(one for place in places if (one := _effect(place, before, after)))
    return (*found, *_homeless(base, head, frozenset(one.owner.key for one in found if one.owner)))


@dataclass(frozen=True)
class Unknown:
    """What keeps an effect from being known: findings about what could not be read, and the clusters that they concern.

    `clusters` are names in order. A finding about an owner without a target concerns no cluster by name.
    """

    findings: tuple[Finding, ...] = ()
    clusters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.findings)


def unknown_effects(plans: Sequence[FleetPlan], unread: Mapping[Destination, Finding]) -> Unknown:
    """Return what the effect of one plan compared to another cannot be known for; `unread` are targets not read.

    Two plans that lack the same data are equal, so that equality alone does not prove that there is no effect.
    """
    found: dict[Finding, tuple[str, ...]] = {finding: (one.name,) for one, finding in unread.items()}
    for plan in plans:
        for one in plan.destinations:
            found |= {each: (one.destination.name,) for each in one.findings if each.code in NOT_READ}
        for stalled in plan.room.stalled:
            names = (stalled.place.repository,) if stalled.place else _clusters_of(str(stalled.owner.key), plan)
            found |= {each: names for each in stalled.findings if each.code in NOT_READ}
        for each in (each for each in plan.room.findings if each.code in NOT_READ):
            found[each] = _clusters_of(each.where.object, plan)
        for destination, outcome in plan.outcomes():
            if isinstance(outcome, Blocked) and outcome.retry:
                found |= dict.fromkeys(outcome.findings, (destination.name,))
    return Unknown(tuple(found), tuple(sorted({name for names in found.values() for name in names})))


def _clusters_of(owner: str, plan: FleetPlan) -> tuple[str, ...]:
    """Return the clusters on which an owner, or a set that made the owner, has packages by their states."""
    return tuple(
        one.destination.name
        for one in plan.destinations
        if any(owner in (str(record.owner.key), str(record.owner.set)) for _, record in one.after.standing())
    )


# the destination, the package, and the owner of one who did not get the package
_Place = tuple[ObjectKey, str, str]


def _effect(place: _Place, before: _Fleet, after: _Fleet) -> Effect | None:
    was, now = before.at(place), after.at(place)
    if was.kind == "left" and place not in before.places:
        # what was not there to be left alone is new
        was = Outlook()
    if was.fate == now.fate:
        return None
    destination = after.destinations.get(place[0]) or before.destinations[place[0]]
    return Effect(destination, place[1], was, now)


class _Fleet:
    """What one config comes to, by place."""

    def __init__(self, plan: FleetPlan) -> None:
        self._plans = {one.destination.key: one for one in plan.destinations}
        self._known = plan.objects.keys()
        self.destinations = {key: one.destination for key, one in self._plans.items()}
        self.places: dict[_Place, Outlook] = {}
        stalled, troubles = _stalled_places(plan.room.stalled), _troubles(plan.room)
        for key, one in self._plans.items():
            here = stalled.get((key.namespace, one.destination.name), {})
            self.places |= {(key, package, owner): found for package, owner, found in _outlooks(one, here, troubles)}

    def at(self, place: _Place) -> Outlook:
        """Return what becomes of a package; of one that this config knows nothing of, that it has none."""
        if place in self.places:
            return self.places[place]
        plan = self._plans.get(place[0])
        if plan is None:
            return Outlook() if place[0] in self._known else Outlook("left", reason=DESTINATION_GONE, message=_GONE)
        return _left_alone(plan) if plan.findings else Outlook()


def _stalled_places(stalled: Sequence[Stalled]) -> dict[tuple[str, str], dict[str, Stalled]]:
    found: dict[tuple[str, str], dict[str, Stalled]] = {}
    for one in stalled:
        if one.place:
            found.setdefault((one.place.namespace, one.place.repository), {}).setdefault(one.place.package, one)
    return found


def _troubles(room: RoomResult) -> Mapping[str, Outlook]:
    """Return why what an owner wants cannot be worked out, by the owner as findings name it."""
    told = [*room.findings, *(finding for one in room.stalled for finding in one.findings)]
    found = {
        one.where.object: Outlook("left", reason=one.code, message=one.message)
        for one in reversed(errors(told))
        if one.where.object
    }
    return {**found, **{str(one.owner.key): _of_stalled(one) for one in room.stalled}}


def _outlooks(
    plan: DestinationPlan, stalled: Mapping[str, Stalled], troubles: Mapping[str, Outlook]
) -> Iterator[tuple[str, str, Outlook]]:
    """Yield the package, the owner where it is not the package's, and what becomes of it."""
    told: set[str] = set()
    for outcome in plan.outcomes:
        package = outcome.variant.place.package
        yield package, str(outcome.variant.owner.key) if package in told else "", _of_outcome(outcome)
        told.add(package)
    for held in plan.held:
        yield held.package, "", _of_held(held)
    for one in plan.leaving:
        yield one.package, "", Outlook("leaving", one.owner, reason=one.how, message=one.why, leaving=one)
    told |= {*(one.package for one in plan.held), *(one.package for one in plan.leaving)}
    for package, each in stalled.items():
        if package not in told:
            yield package, "", _of_stalled(each)
    for package, record in plan.after.packages.items():
        if record.owned and package not in told | stalled.keys():
            yield package, "", _unmentioned(plan, record.owner, troubles)


def _unmentioned(plan: DestinationPlan, owner: Owner, troubles: Mapping[str, Outlook]) -> Outlook:
    """Return why a package that stands there stays as it is, though a plan says nothing of it."""
    if plan.findings:
        return replace(_left_alone(plan), owner=owner)
    known = (troubles.get(str(key)) for key in (owner.key, owner.set) if key)
    found = next((one for one in known if one), Outlook("left", reason="Kept", message=_UNKNOWN))
    return replace(found, owner=owner)


def _left_alone(plan: DestinationPlan) -> Outlook:
    return Outlook("left", reason=plan.findings[0].code, message=plan.findings[0].message)


def _of_outcome(outcome: Outcome) -> Outlook:
    owner = outcome.variant.owner
    match outcome:
        case Draft(rendered=rendered):
            return Outlook("wanted", owner, rendered.files.id, rendered.review, outcome=outcome)
        case Unchanged(record=record, why="declined"):
            return Outlook("declined", owner, record.seen.published, outcome=outcome)
        case Unchanged(record=record):
            return Outlook("wanted", owner, record.wanted, record.review, outcome=outcome)
        case Blocked(conditions=conditions):
            said = _said(conditions, "Ready")
            return Outlook("blocked", owner, reason=said.reason, message=said.message, outcome=outcome)


def _of_held(held: Held) -> Outlook:
    return Outlook("held", held.record.owner, reason=held.finding.code, message=held.finding.message)


def _of_stalled(stalled: Stalled) -> Outlook:
    said = _said(stalled.conditions, "Stalled")
    return Outlook("stalled", stalled.owner, reason=said.reason, message=said.message)


def _said(conditions: Sequence[Condition], type_: str) -> Condition:
    return next((one for one in conditions if one.type == type_), conditions[-1])


def _homeless(base: FleetPlan, head: FleetPlan, told: Collection[ObjectKey]) -> Iterator[Effect]:
    """Yield the owners, but those whose packages are `told`, of which not even the places can be worked out."""
    before, after = (
        {one.owner.key: _of_stalled(one) for one in plan.room.stalled if one.place is None} for plan in (base, head)
    )
    for key in sorted({*before, *after} - {*told}):
        was, now = before.get(key, Outlook()), after.get(key, Outlook())
        if was.fate != now.fate:
            yield Effect(None, "", was, now)
