"""Impact: what another config makes different for every package, from two plans over the same fleet (design 7).

What both configs come to alike is told by no one; what of a package stands on its branches today only matters where
one of them leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.results import ControllerResult, PackageOwner, StalledVariant
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import Blocked, Draft, HeldRemoval, PackageOutcome, RemovalOutcome, Unchanged
from reconciler.planning.model.targets import Target

ProjectedKind = Literal["wanted", "declined", "blocked", "stalled", "held", "left", "leaving", "none"]
ConflictLocation = tuple[str, str, str]
"""The file, the resource and the pointer of a conflict."""
BLOCKED_KINDS = frozenset({"blocked", "stalled", "held", "left"})
"""The kinds of what is kept from being as the config wants it."""
TARGET_GONE = "DestinationGone"
"""The reason of what is left because its destination is not in the config any more."""
_GONE = "the destination is not in the config any more, and nothing there is touched"
UNREADABLE_CODES = frozenset({"RepositoryUnreachable", "UpstreamUnreachable", "StateUnreadable", "EngineTooOld"})
"""The codes of findings about data that could not be read, so that a plan over it proves nothing."""
_UNKNOWN = "what its owner wants cannot be worked out, and it stays as it is"


@dataclass(frozen=True)
class ProjectedPackage:
    """What one config comes to for a package: the tree that it is to have, or why it gets none.

    `left` are packages that stay as they are though nobody decides on them, `declined` those that are to have what
    people did not want. `review` is what makes a commit besides the tree. `reason` and `message` say what holds it up,
    or how it leaves; `trace` is what it was made of.
    """

    kind: ProjectedKind = "none"
    owner: PackageOwner | None = None
    tree: TreeId | None = None
    review: str = ""
    reason: str = ""
    message: str = ""
    outcome: PackageOutcome | None = None
    removal: RemovalOutcome | None = None

    @property
    def comparison_key(self) -> tuple[object, ...]:
        """What is equal for packages that come to the same."""
        message = self.message if self.kind in BLOCKED_KINDS else ""
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
class PackageImpact:
    """One package that another config makes different: what it comes to by the one, and by the other.

    `destination` is None for an owner of which not even the place can be worked out. `had` and `has` are the files
    that it is to have by the one and by the other, None where they are too large to be read; what stands is meant
    where a config leaves it as it is. `known` is where people's edits are in conflict by the one already.
    """

    target: Target | None
    package: str
    before: ProjectedPackage
    after: ProjectedPackage
    files_before: FileTree | None = field(default_factory=FileTree)
    files_after: FileTree | None = field(default_factory=FileTree)
    known_conflicts: frozenset[ConflictLocation] = frozenset()

    @property
    def target_name(self) -> str:
        """Where the package is, `<repository>/<package>`; "" where nobody knows."""
        return f"{self.target.name}/{self.package}" if self.target else ""

    @property
    def owner(self) -> PackageOwner | None:
        """Whose package it is, or was."""
        return self.after.owner or self.before.owner

    @property
    def creates_draft(self) -> bool:
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


def compare_plans(base: FleetPlan, head: FleetPlan) -> tuple[PackageImpact, ...]:
    """Return every package that comes to something else by `head` than by `base`, by place."""
    before, after = _Fleet(base), _Fleet(head)
    places = sorted({*before.places, *after.places}, key=lambda one: (one[0].name, one[0], one[1], one[2]))
    found = tuple(one for place in places if (one := _effect(place, before, after)))
    return (*found, *_homeless(base, head, frozenset(one.owner.key for one in found if one.owner)))


@dataclass(frozen=True)
class UnknownImpact:
    """What keeps an effect from being known: findings about what could not be read, and the clusters that they concern.

    `clusters` are names in order. A finding about an owner without a target concerns no cluster by name.
    """

    findings: tuple[Finding, ...] = ()
    clusters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.findings)


def find_unknown_impact(plans: Sequence[FleetPlan], unread: Mapping[Target, Finding]) -> UnknownImpact:
    """Return what the effect of one plan compared to another cannot be known for; `unread` are targets not read.

    Two plans that lack the same data are equal, so that equality alone does not prove that there is no effect.
    """
    found: dict[Finding, tuple[str, ...]] = {finding: (one.name,) for one, finding in unread.items()}
    for plan in plans:
        for one in plan.targets:
            found |= {each: (one.target.name,) for each in one.findings if each.code in UNREADABLE_CODES}
        for stalled in plan.controller_result.stalled:
            names = (stalled.target.repository,) if stalled.target else _clusters_of(str(stalled.owner.key), plan)
            found |= {each: names for each in stalled.findings if each.code in UNREADABLE_CODES}
        for each in (each for each in plan.controller_result.findings if each.code in UNREADABLE_CODES):
            found[each] = _clusters_of(each.location.object, plan)
        for destination, outcome in plan.list_outcomes():
            if isinstance(outcome, Blocked) and outcome.should_retry:
                found |= dict.fromkeys(outcome.findings, (destination.name,))
    return UnknownImpact(tuple(found), tuple(sorted({name for names in found.values() for name in names})))


def _clusters_of(owner: str, plan: FleetPlan) -> tuple[str, ...]:
    """Return the clusters on which an owner, or a set that made the owner, has packages by their states."""
    return tuple(
        one.target.name
        for one in plan.targets
        if any(
            owner in (str(record.owner.key), str(record.owner.parent))
            for _, record in one.next_state.list_active_packages()
        )
    )


# the destination, the package, and the owner of one who did not get the package
_Place = tuple[ObjectKey, str, str]


def _effect(place: _Place, before: _Fleet, after: _Fleet) -> PackageImpact | None:
    was, now = before.at(place), after.at(place)
    if was.kind == "left" and place not in before.places:
        # what was not there to be left alone is new
        was = ProjectedPackage()
    if was.comparison_key == now.comparison_key:
        return None
    destination = after.destinations.get(place[0]) or before.destinations[place[0]]
    return PackageImpact(destination, place[1], was, now)


class _Fleet:
    """What one config comes to, by place."""

    def __init__(self, plan: FleetPlan) -> None:
        self._plans = {one.target.key: one for one in plan.targets}
        self._known = plan.objects.keys()
        self.destinations = {key: one.target for key, one in self._plans.items()}
        self.places: dict[_Place, ProjectedPackage] = {}
        stalled, troubles = _stalled_places(plan.controller_result.stalled), _troubles(plan.controller_result)
        for key, one in self._plans.items():
            here = stalled.get((key.namespace, one.target.name), {})
            self.places |= {(key, package, owner): found for package, owner, found in _outlooks(one, here, troubles)}

    def at(self, place: _Place) -> ProjectedPackage:
        """Return what becomes of a package; of one that this config knows nothing of, that it has none."""
        if place in self.places:
            return self.places[place]
        plan = self._plans.get(place[0])
        if plan is None:
            return (
                ProjectedPackage()
                if place[0] in self._known
                else ProjectedPackage("left", reason=TARGET_GONE, message=_GONE)
            )
        return _left_alone(plan) if plan.findings else ProjectedPackage()


def _stalled_places(stalled: Sequence[StalledVariant]) -> dict[tuple[str, str], dict[str, StalledVariant]]:
    found: dict[tuple[str, str], dict[str, StalledVariant]] = {}
    for one in stalled:
        if one.target:
            found.setdefault((one.target.namespace, one.target.repository), {}).setdefault(one.target.package, one)
    return found


def _troubles(room: ControllerResult) -> Mapping[str, ProjectedPackage]:
    """Return why what an owner wants cannot be worked out, by the owner as findings name it."""
    told = [*room.findings, *(finding for one in room.stalled for finding in one.findings)]
    found = {
        one.location.object: ProjectedPackage("left", reason=one.code, message=one.message)
        for one in reversed(select_errors(told))
        if one.location.object
    }
    return {**found, **{str(one.owner.key): _of_stalled(one) for one in room.stalled}}


def _outlooks(
    plan: TargetPlan, stalled: Mapping[str, StalledVariant], troubles: Mapping[str, ProjectedPackage]
) -> Iterator[tuple[str, str, ProjectedPackage]]:
    """Yield the package, the owner where it is not the package's, and what becomes of it."""
    told: set[str] = set()
    for outcome in plan.outcomes:
        package = outcome.variant.target.package
        yield package, str(outcome.variant.owner.key) if package in told else "", _of_outcome(outcome)
        told.add(package)
    for held in plan.held:
        yield held.package, "", _of_held(held)
    for one in plan.removals:
        yield one.package, "", ProjectedPackage("leaving", one.owner, reason=one.kind, message=one.reason, removal=one)
    told |= {*(one.package for one in plan.held), *(one.package for one in plan.removals)}
    for package, each in stalled.items():
        if package not in told:
            yield package, "", _of_stalled(each)
    for package, record in plan.next_state.packages.items():
        if record.owned and package not in told | stalled.keys():
            yield package, "", _unmentioned(plan, record.owner, troubles)


def _unmentioned(plan: TargetPlan, owner: PackageOwner, troubles: Mapping[str, ProjectedPackage]) -> ProjectedPackage:
    """Return why a package that stands there stays as it is, though a plan says nothing of it."""
    if plan.findings:
        return replace(_left_alone(plan), owner=owner)
    known = (troubles.get(str(key)) for key in (owner.key, owner.parent) if key)
    found = next((one for one in known if one), ProjectedPackage("left", reason="Kept", message=_UNKNOWN))
    return replace(found, owner=owner)


def _left_alone(plan: TargetPlan) -> ProjectedPackage:
    return ProjectedPackage("left", reason=plan.findings[0].code, message=plan.findings[0].message)


def _of_outcome(outcome: PackageOutcome) -> ProjectedPackage:
    owner = outcome.variant.owner
    match outcome:
        case Draft(rendered=rendered):
            return ProjectedPackage("wanted", owner, rendered.files.id, rendered.review_digest, outcome=outcome)
        case Unchanged(record=record, reason="declined"):
            return ProjectedPackage("declined", owner, record.observed.published, outcome=outcome)
        case Unchanged(record=record):
            return ProjectedPackage("wanted", owner, record.desired_tree, record.review_digest, outcome=outcome)
        case Blocked(conditions=conditions):
            said = _said(conditions, "Ready")
            return ProjectedPackage("blocked", owner, reason=said.reason, message=said.message, outcome=outcome)


def _of_held(held: HeldRemoval) -> ProjectedPackage:
    return ProjectedPackage("held", held.record.owner, reason=held.finding.code, message=held.finding.message)


def _of_stalled(stalled: StalledVariant) -> ProjectedPackage:
    said = _said(stalled.conditions, "Stalled")
    return ProjectedPackage("stalled", stalled.owner, reason=said.reason, message=said.message)


def _said(conditions: Sequence[Condition], type_: str) -> Condition:
    return next((one for one in conditions if one.type == type_), conditions[-1])


def _homeless(base: FleetPlan, head: FleetPlan, told: Collection[ObjectKey]) -> Iterator[PackageImpact]:
    """Yield the owners, but those whose packages are `told`, of which not even the places can be worked out."""
    before, after = (
        {one.owner.key: _of_stalled(one) for one in plan.controller_result.stalled if one.target is None}
        for plan in (base, head)
    )
    for key in sorted({*before, *after} - {*told}):
        was, now = before.get(key, ProjectedPackage()), after.get(key, ProjectedPackage())
        if was.comparison_key != now.comparison_key:
            yield PackageImpact(None, "", was, now)
