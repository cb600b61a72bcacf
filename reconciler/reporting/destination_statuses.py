"""What is told of one destination: of itself, and of each object that has a package there (porch 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from typing import Any

from reconciler.krm.codes import INTERNAL_ERROR
from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.findings import errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import InternalFailure, ScopeFailedError, boundary
from reconciler.planning.decide import READY, VALID
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged
from reconciler.planning.state import PackageRecord
from reconciler.reporting.configs import Configs
from reconciler.reporting.inputs import objects_asked
from reconciler.reporting.leaving import waiting_data
from reconciler.reporting.status_file import told
from reconciler.reporting.tally import tally
from reconciler.rules.variant import ConfigStatus, Variant
from reconciler.snapshot.trace import ABSENT

_REVIEW = "the draft waits for review"
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


@dataclass(frozen=True, eq=False)
class DestinationStatuses:
    """What is told of a destination, and of its owners: those that have a package there alone, and those that spread.

    `tally` is how many packages came to which end. `configs` are what the rooms say of the first owners, in their
    order. Of those that spread, others tell as well.

    `failures` are unexpected exceptions, by owner.
    """

    destination: ObjectStatus
    tally: Mapping[str, int]
    owners: Mapping[ObjectKey, ObjectStatus]
    configs: tuple[ConfigStatus | None, ...]
    spreading: tuple[ObjectStatus, ...]
    failures: Mapping[ObjectKey, InternalFailure] = field(default_factory=dict)

    @cached_property
    def unready(self) -> frozenset[ObjectKey]:
        """The owners that have it alone, and not ready."""
        return frozenset(key for key, one in self.owners.items() if not one.is_ready)


class DestinationMemory:
    """What was told of each destination in the last pass: of the very same plan, the very same is told.

    A pass with an empty one comes to the same.
    """

    def __init__(self) -> None:
        self._before: dict[ObjectKey, _Known] = {}
        self._now: dict[ObjectKey, _Known] = {}

    def turn(self) -> None:
        """End a pass: what it did not ask for is forgotten."""
        self._before, self._now = self._now, {}

    def of(self, plan: DestinationPlan, configs: Configs, spreading: Set[ObjectKey]) -> DestinationStatuses:
        """Return what is told of a destination by its plan; `spreading` are owners that have a package on others."""
        known = self._before.get(plan.destination.key)
        if known is None or not known.holds(plan, configs, spreading):
            known = _Known(plan, configs, spreading, destination_statuses(plan, configs, spreading))
        elif known.configs is not configs:
            known = replace(known, configs=configs)
        # a plan that drafts something comes once, and is not held on to
        if not plan.drafts_anything and not known.has_failures:
            self._now[plan.destination.key] = known
        return known.told


@dataclass(frozen=True, eq=False)
class _Known:
    plan: DestinationPlan
    configs: Configs
    spreading: Set[ObjectKey]
    told: DestinationStatuses

    @property
    def has_failures(self) -> bool:
        """Return whether the status of an owner could not be collected."""
        return bool(self.told.failures)

    def holds(self, plan: DestinationPlan, configs: Configs, spreading: Set[ObjectKey]) -> bool:
        """Return whether the same is told today."""
        return (
            self.plan is plan
            and self.spreading is spreading
            and (self.configs is configs or all(map(is_, self.told.configs, _of_each(self.told.owners, configs))))
        )


def destination_statuses(plan: DestinationPlan, configs: Configs, spreading: Set[ObjectKey]) -> DestinationStatuses:
    """Return what is told of a destination, and of the owners of its packages."""
    failures: dict[ObjectKey, InternalFailure] = {}
    found = [_isolated_outcome(one, plan, failures) for one in plan.outcomes]
    alone = {one.key: one for one in found if one.key not in spreading}
    told_of = _of_each(alone, configs)
    owners = {key: configured(one, config) for (key, one), config in zip(alone.items(), told_of, strict=True)}
    counts = tally(plan)
    spread = tuple(one for one in found if one.key in spreading)
    return DestinationStatuses(_destination(plan, counts), counts, owners, told_of, spread, failures)


def _of_each(owners: Iterable[ObjectKey], configs: Configs) -> tuple[ConfigStatus | None, ...]:
    return tuple(map(configs.by_key.get, owners))


def configured(status: ObjectStatus, config: ConfigStatus | None) -> ObjectStatus:
    """Add what the room says of the object; of a condition that both know, the outcome's counts."""
    if config is None:
        return status
    conditions = upsert(config.conditions, *status.conditions)
    fields = {**config.fields, **status.fields}
    return replace(status, conditions=conditions, fields=fields, spec=config.spec, metadata=config.metadata)


def _isolated_outcome(
    outcome: Outcome, plan: DestinationPlan, failures: dict[ObjectKey, InternalFailure]
) -> ObjectStatus:
    """Return the status of one owner; an unexpected exception is the reason why this owner is not ready."""
    try:
        with boundary(f"the status of {outcome.variant.owner.key}"):
            return _outcome(outcome, plan)
    except ScopeFailedError as error:
        failures[outcome.variant.owner.key] = error.failure
        condition = Condition("Ready", "False", INTERNAL_ERROR.name, error.failure.message)
        return owner_status(outcome.variant, (VALID, condition))


def _outcome(outcome: Outcome, plan: DestinationPlan) -> ObjectStatus:
    fields = {
        "downstreamTargets": _targets(outcome, _record(outcome, plan)),
        "upstream": _upstream(outcome.variant),
        "contextDependencies": _dependencies(outcome),
        "pending": _pending(outcome),
    }
    conditions = outcome.conditions if isinstance(outcome, Blocked) else (VALID, _ready(outcome.variant))
    return owner_status(outcome.variant, conditions, told(fields))


def _ready(variant: Variant) -> Condition:
    return READY if variant.upstream else replace(READY, message=_GENERATED)


def _record(outcome: Outcome, plan: DestinationPlan) -> PackageRecord | None:
    # what stands in a package's place may be another owner's
    record = plan.after.packages.get(outcome.variant.place.package) or outcome.record
    return record if record and record.owner.key == outcome.variant.owner.key else None


def owner_status(
    variant: Variant, conditions: tuple[Condition, ...], fields: Mapping[str, Any] | None = None
) -> ObjectStatus:
    """Return what is told of a variant's owner, before the rooms have their say."""
    return ObjectStatus(variant.owner.key, variant.owner.api_version, conditions, fields or {})


def _targets(outcome: Outcome, record: PackageRecord | None) -> list[dict[str, Any]]:
    if record is None:
        return []
    place = outcome.variant.place
    return downstream_targets(place.repository, place.package, record, is_drafted=isinstance(outcome, Draft))


def downstream_targets(
    repository: str, package: str, record: PackageRecord, *, is_drafted: bool = False
) -> list[dict[str, Any]]:
    """Return the target of a package: its open draft, else what is published, else none.

    Everything in it comes from state, so that a pass that was killed, or lost the status branch, writes the same.
    """
    if not (is_drafted or record.put or record.ours):
        return []
    workspace = record.workspace if is_drafted or record.put else _published_workspace(record)
    # The record has the status of the last render only, and that may be of a draft that is gone.
    is_last = workspace == record.workspace
    render = told({name: record.render.get(name) for name in _RENDER_FIELDS}) if is_last else {}
    name = f"{repository}.{package.replace('/', '.')}.packagevariant-{workspace}"
    return [told({"name": name, "renderStatus": render})]


def _published_workspace(record: PackageRecord) -> int:
    """Return the number of the published draft; the last number where the draft of the revision is unknown."""
    of_ours = (one for one in reversed(record.revisions) if one.offer == record.ours)
    published = next(of_ours, record.revisions[-1] if record.revisions else None)
    return published.workspace or record.workspace if published else record.workspace


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
            return [_REVIEW, *moves]
        case Blocked(conditions=conditions):
            return [*(one.message for one in conditions if one.reason == "DownstreamProposed"), *moves]
        case Unchanged():
            return moves


def _destination(plan: DestinationPlan, counts: Mapping[str, int]) -> ObjectStatus:
    destination = plan.destination
    faults = errors(plan.findings)
    conditions = (
        (Condition("Ready", "False", faults[0].code, "; ".join(one.message for one in faults)),)
        if faults
        else (_PLANNED,)
    )
    fields = {"branch": destination.branch, "directory": destination.directory, "packages": told(counts)}
    leaving = [{**one, "package": one["package"].partition("/")[2]} for one in waiting_data(plan)]
    return ObjectStatus(destination.key, destination.api_version, conditions, told({**fields, "leaving": leaving}))
