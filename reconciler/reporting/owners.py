"""Owners: what the status branch says of each object that wants packages, makes them, or receives them (porch 10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.digest import canonical_json
from reconciler.krm.findings import errors
from reconciler.krm.identity import ObjectKey
from reconciler.planning.decide import READY, VALID
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged
from reconciler.planning.state import PackageRecord
from reconciler.reporting.inputs import objects_asked
from reconciler.reporting.leaving import waiting_data
from reconciler.reporting.policies import policy_statuses
from reconciler.reporting.presets import is_preset, room_statuses
from reconciler.reporting.remembered import remembered
from reconciler.reporting.status_file import told
from reconciler.reporting.tally import tally
from reconciler.rules.remembered import Unmoved
from reconciler.rules.variant import ConfigStatus, Variant
from reconciler.rules.variants.status import variants_ready
from reconciler.snapshot.trace import ABSENT

REVIEW = "the draft waits for review"
# in this order, which state does not keep
_RENDER_FIELDS = ("status", "reason", "message", "unmetGates")
_GENERATED = "all that it has on clusters is drafted or published"
_PLANNED = Condition("Ready", "True", "Planned", "its branches were read and its packages decided on")


@dataclass(frozen=True)
class ObjectStatus:
    """One object of the status branch, without times.

    `fields` are the entries of `.status` beside the conditions; `spec` and `metadata` are those of generated objects.
    """

    key: ObjectKey
    api_version: str
    conditions: tuple[Condition, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, object] | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        return any((one.type, one.status) == ("Ready", "True") for one in self.conditions)


class OwnerMemory:
    """What was told of owners in the last pass: of what is the very same, the same status is told, as the same object.

    A pass with an empty one comes to the same.
    """

    def __init__(self) -> None:
        self.outcomes: Unmoved[tuple[ObjectStatus, ...]] = Unmoved()
        self.repositories: Unmoved[ObjectStatus] = Unmoved()
        self.configured: Unmoved[ObjectStatus] = Unmoved()
        self.makers: Unmoved[ObjectStatus] = Unmoved()
        self.children: Unmoved[frozenset[ObjectKey]] = Unmoved()

    def turn(self) -> None:
        """End a pass: what it did not ask for is forgotten."""
        for one in (self.outcomes, self.repositories, self.configured, self.makers, self.children):
            one.turn()


def owner_statuses(plan: FleetPlan, memory: OwnerMemory | None = None) -> dict[ObjectKey, ObjectStatus]:
    """Return the status of every object that wants a package, of those that made them, and of destinations."""
    memory = memory or OwnerMemory()
    found = _found(plan, memory)
    statuses = (*room_statuses(plan), *policy_statuses(plan))
    config = {one.key: one for one in statuses}
    owners = {key: _configured(status, config.get(key), memory) for key, status in found.items()}
    unready = frozenset(key for key, one in owners.items() if not one.is_ready)
    makers = [_remembered_maker(one, owners, unready, memory) for one in statuses if one.key not in owners]
    repositories = [remembered(one, memory.repositories, _repository) for one in plan.destinations]
    memory.turn()
    return {**{one.key: one for one in repositories}, **{one.key: one for one in makers}, **owners}


def _found(plan: FleetPlan, memory: OwnerMemory) -> dict[ObjectKey, ObjectStatus]:
    """Return what outcomes, and reasons why there is none, tell of each owner; of several the last word."""
    of_each = (remembered(one, memory.outcomes, _outcomes) for one in plan.destinations)
    told_of = [*_stalled(plan), *_unread(plan), *chain.from_iterable(of_each)]
    found = {one.key: one for one in told_of}
    spreading = {variant.owner.key for variant in plan.room.variants if variant.spreads}
    if spreading:
        several: dict[ObjectKey, list[ObjectStatus]] = {}
        for one in told_of:
            if one.key in spreading:
                several.setdefault(one.key, []).append(one)
        found |= {key: united(all_of) for key, all_of in several.items()}
    return found


def _configured(status: ObjectStatus, config: ConfigStatus | None, memory: OwnerMemory) -> ObjectStatus:
    if config is None:
        return status
    return memory.configured.of((status, config), lambda: _with_config(status, config))


def _remembered_maker(
    config: ConfigStatus, owners: Mapping[ObjectKey, ObjectStatus], unready: Set[ObjectKey], memory: OwnerMemory
) -> ObjectStatus:
    """Return what is told of a maker: the same as before while all of its children are ready."""
    children = memory.children.of((config,), lambda: frozenset(config.children))
    all_ready = unready.isdisjoint(children) and children <= owners.keys()
    return memory.makers.of((config,), lambda: _maker(config, owners)) if all_ready else _maker(config, owners)


def united(statuses: Sequence[ObjectStatus]) -> ObjectStatus:
    """Return the status of an owner that has a package on each of several clusters, from those of each."""
    types = dict.fromkeys(one.type for status in statuses for one in status.conditions)
    conditions = tuple(_worst(kind, statuses) for kind in types)
    names = dict.fromkeys(name for status in statuses for name in status.fields)
    fields = {name: _joined(status.fields.get(name) for status in statuses) for name in names}
    return replace(statuses[0], conditions=conditions, fields=fields)


def _worst(kind: str, statuses: Sequence[ObjectStatus]) -> Condition:
    """Return what is told of a condition: that of the first cluster where all is not well, and of how many it is so."""
    found = [one for status in statuses for one in status.conditions if one.type == kind]
    well = "False" if kind == "Stalled" else "True"
    bad = [one for one in found if one.status != well]
    if not bad:
        return found[0]
    return replace(bad[0], message=f"{len(bad)} of {len(statuses)} clusters: {bad[0].message}")


def _joined(values: Iterable[Any]) -> Any:
    """Return lists as one, each entry once; of anything else the first."""
    known = [value for value in values if value is not None]
    if not all(isinstance(value, list) for value in known):
        return known[0]
    return [*{canonical_json(entry): entry for entry in chain.from_iterable(known)}.values()]


def _stalled(plan: FleetPlan) -> Iterator[ObjectStatus]:
    for one in plan.room.stalled:
        yield ObjectStatus(one.owner.key, one.owner.api_version, one.conditions)


def _unread(plan: FleetPlan) -> Iterator[ObjectStatus]:
    """Yield variants whose destination cannot be read or written: an error after validation."""
    faults = {one.destination.key: errors(one.findings) for one in plan.destinations if one.findings}
    places = {(key.namespace, key.name): findings for key, findings in faults.items() if findings}
    for variant in plan.room.variants if places else ():
        if findings := places.get((variant.place.namespace, variant.place.repository)):
            message = "; ".join(finding.message for finding in findings)
            yield _status(variant, (VALID, Condition("Ready", "False", "Error", message)))


def _outcomes(plan: DestinationPlan) -> tuple[ObjectStatus, ...]:
    return tuple(_outcome(one, plan) for one in plan.outcomes)


def _outcome(outcome: Outcome, plan: DestinationPlan) -> ObjectStatus:
    fields = {
        "downstreamTargets": _targets(outcome, _record(outcome, plan)),
        "upstream": _upstream(outcome.variant),
        "contextDependencies": _dependencies(outcome),
        "pending": _pending(outcome),
    }
    conditions = outcome.conditions if isinstance(outcome, Blocked) else (VALID, _ready(outcome.variant))
    return _status(outcome.variant, conditions, told(fields))


def _ready(variant: Variant) -> Condition:
    return READY if variant.upstream else replace(READY, message=_GENERATED)


def _record(outcome: Outcome, plan: DestinationPlan) -> PackageRecord | None:
    # what stands in a package's place may be another owner's
    record = plan.after.packages.get(outcome.variant.place.package) or outcome.record
    return record if record and record.owner.key == outcome.variant.owner.key else None


def _status(
    variant: Variant, conditions: tuple[Condition, ...], fields: Mapping[str, Any] | None = None
) -> ObjectStatus:
    return ObjectStatus(variant.owner.key, variant.owner.api_version, conditions, fields or {})


def _targets(outcome: Outcome, record: PackageRecord | None) -> list[dict[str, Any]]:
    if record is None or not (isinstance(outcome, Draft) or record.put or record.ours):
        return []
    place = outcome.variant.place
    name = f"{place.repository}.{place.package.replace('/', '.')}.packagevariant-{record.workspace}"
    # not what this pass rendered: a pass that was killed, or lost the status branch, tells the same afterwards
    render = told({name: record.render.get(name) for name in _RENDER_FIELDS})
    return [told({"name": name, "renderStatus": render})]


def _upstream(variant: Variant) -> dict[str, Any]:
    known = variant.source.as_data()
    return told({name: known.get(name) for name in ("ref", "commit", "tree")})


def _dependencies(outcome: Outcome) -> list[dict[str, Any]]:
    trace = outcome.trace if isinstance(outcome, Blocked) else outcome.record.trace
    return [
        {
            "apiVersion": one.api_version,
            "kind": one.kind,
            "namespace": one.namespace,
            "name": one.name,
            "found": one.answer != ABSENT,
        }
        for one in objects_asked(trace)
    ]


def _pending(outcome: Outcome) -> list[str]:
    settling = outcome.variant.settling
    moves = [settling.message] if settling else []
    match outcome:
        case Draft() | Unchanged(why="drafted"):
            return [REVIEW, *moves]
        case Blocked(conditions=conditions):
            return [*(one.message for one in conditions if one.reason == "DownstreamProposed"), *moves]
        case Unchanged():
            return moves


def _with_config(status: ObjectStatus, config: ConfigStatus) -> ObjectStatus:
    """Add what the room says of the object; of a condition that both know, the outcome's counts."""
    conditions = upsert(config.conditions, *status.conditions)
    fields = {**config.fields, **status.fields}
    return replace(status, conditions=conditions, fields=fields, spec=config.spec, metadata=config.metadata)


def _maker(config: ConfigStatus, owners: Mapping[ObjectKey, ObjectStatus]) -> ObjectStatus:
    """Return the status of an object that makes others (a set), or of one that no outcome tells of."""
    known = ObjectStatus(config.key, config.api_version, config.conditions, config.fields, config.spec, config.metadata)
    if not config.children or is_preset(config.key):
        return known
    ready = {child for child in config.children if child in owners and owners[child].is_ready}
    conditions = upsert(config.conditions, variants_ready(one.name for one in config.children if one not in ready))
    counts = {"desired": len(config.children), "ready": len(ready), "failed": len(config.children) - len(ready)}
    names = {child.name for child in ready}
    fields = {**config.fields, **counts, **_targets_ready(config.fields.get("targets"), names)}
    return replace(known, conditions=conditions, fields=fields)


def _targets_ready(targets: object, ready: Collection[str]) -> dict[str, Any]:
    """Return a set's `targets` with `ready` in each (porch 11.7); nothing when the set lists none."""
    if not isinstance(targets, list):
        return {}
    return {"targets": [{**target, "ready": target.get("packageVariant") in ready} for target in targets]}


def _repository(plan: DestinationPlan) -> ObjectStatus:
    destination = plan.destination
    faults = errors(plan.findings)
    conditions = (
        (Condition("Ready", "False", faults[0].code, "; ".join(one.message for one in faults)),)
        if faults
        else (_PLANNED,)
    )
    fields = {"branch": destination.branch, "directory": destination.directory, "packages": told(tally(plan))}
    leaving = [{**one, "package": one["package"].partition("/")[2]} for one in waiting_data(plan)]
    return ObjectStatus(destination.key, destination.api_version, conditions, told({**fields, "leaving": leaving}))
