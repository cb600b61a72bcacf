"""The status of each target, the statuses of the owners of its packages, and the number of packages per outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property
from operator import is_
from typing import Any

from reconciler.api.base import omit_empty
from reconciler.catalog.trace import ABSENT_FINGERPRINT
from reconciler.controllers.results import ConfigStatus, Variant
from reconciler.krm.findings import CommonCodes, select_errors
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.krm.objects import Condition, ObjectKey, upsert_conditions
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.status.config_statuses import ConfigStatuses
from reconciler.output.status.package_status import list_object_dependencies
from reconciler.output.status.removals import build_pending_removals_data, list_pending_removals
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.decide.package_decision import READY_CONDITION, VALID_CONDITION
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, Unchanged
from reconciler.planning.model.state import PackageRecord

PACKAGE_OUTCOMES = ("published", "drafted", "declined", "blocked", "held", "leaving")
"""The outcomes of packages. Summaries contain the number of packages per outcome."""
_OUTCOMES_OF_UNCHANGED = {"drafted": "drafted", "declined": "declined"}


def count_packages(plan: TargetPlan) -> dict[str, int]:
    """Return the number of packages of a target per outcome.

    New and existing drafts have the same outcome, so that a second pass with the same input returns the same numbers.
    """
    counts = Counter(outcome for _, outcome in _iterate_packages(plan))
    return {outcome: counts[outcome] for outcome in PACKAGE_OUTCOMES}


def count_packages_by_tenant(plan: TargetPlan) -> Mapping[str, dict[str, int]]:
    """Map each tenant with packages on a target to the number of its packages per outcome."""
    counts = Counter(_iterate_packages(plan))
    tenants = {tenant for tenant, _ in counts}
    return {tenant: {outcome: counts[tenant, outcome] for outcome in PACKAGE_OUTCOMES} for tenant in tenants}


def _iterate_packages(plan: TargetPlan) -> Iterator[tuple[str, str]]:
    """Yield the tenant and the outcome of each package."""
    yield from ((outcome.variant.tenant, _get_outcome(outcome)) for outcome in plan.outcomes)
    yield from ((held.record.tenant, "held") for held in plan.held)
    yield from ((pending.tenant, "leaving") for pending in list_pending_removals(plan))


def find_blocked_objects(plan: FleetPlan) -> frozenset[str]:
    """Return the config objects and files with an error. Omit owners of blocked packages.

    Returns:
        The objects as `Kind/namespace/name`, and the paths of files that cannot be read.
    """
    errors = (finding.location for finding in select_errors(plan.list_findings()) if not finding.location.package)
    with_errors = {location.object or location.file for location in errors}
    stalled = {entry.owner.key.reference for entry in plan.controller_result.stalled}
    # Omit the owners of blocked packages, because these packages have their own count and the same errors.
    counted = {
        outcome.variant.owner.key.reference
        for target_plan in plan.targets
        if target_plan.outcome_counts[2]
        for outcome in target_plan.outcomes
        if isinstance(outcome, Blocked)
    }
    return frozenset((with_errors | stalled) - counted - {""})


def _get_outcome(outcome: PackageOutcome) -> str:
    match outcome:
        case Draft():
            return "drafted"
        case Unchanged(reason=reason):
            return _OUTCOMES_OF_UNCHANGED.get(reason, "published")
        case Blocked():
            return "blocked"


_REVIEW_PENDING = "the draft waits for review"
# List the fields in the order of the status file, because the recorded state has no order of fields.
_RENDER_FIELDS = ("status", "reason", "message", "unmetGates")
_GENERATED_READY = "all generated packages are drafted or published"
_PLANNED = Condition("Ready", "True", "Planned", "the branches were read and all packages were planned")


@dataclass(frozen=True)
class ObjectStatus:
    """The status of one object on the status branch, without transition times.

    Attributes:
        fields: The fields of `.status`, except for the conditions.
        spec: The spec of a generated object. None for other objects.
        metadata: The metadata of a generated object, except for name and namespace.
    """

    key: ObjectKey
    api_version: str
    conditions: tuple[Condition, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, object] | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def is_ready(self) -> bool:
        """Whether the condition `Ready` of the object is `True`."""
        return any((condition.type, condition.status) == ("Ready", "True") for condition in self.conditions)


@dataclass(frozen=True, eq=False)
class TargetStatuses:
    """The status of a target and of the owners of its packages.

    Attributes:
        owners: The statuses of owners that have packages only on this target.
        config_statuses: The statuses that controllers report for `owners`, in the same order.
        multi_target_owners: The statuses of owners that also have packages on other targets. These statuses cover only
            this target.
        failures: The unexpected exception of each owner whose status could not be computed.
    """

    target_status: ObjectStatus
    package_counts: Mapping[str, int]
    owners: Mapping[ObjectKey, ObjectStatus]
    config_statuses: tuple[ConfigStatus | None, ...]
    multi_target_owners: tuple[ObjectStatus, ...]
    failures: Mapping[ObjectKey, InternalFailure] = field(default_factory=dict)

    @cached_property
    def not_ready_owners(self) -> frozenset[ObjectKey]:
        """The keys of the owners in `owners` that are not ready."""
        return frozenset(key for key, status in self.owners.items() if not status.is_ready)


class TargetStatusCache:
    """Caches the statuses of a target until its plan is a different object. The cache does not change the results."""

    def __init__(self) -> None:
        self._previous: dict[ObjectKey, _CacheEntry] = {}
        self._current: dict[ObjectKey, _CacheEntry] = {}

    def end_pass(self) -> None:
        """End a pass, and remove the cached statuses that the pass did not use."""
        self._previous, self._current = self._current, {}

    def get_statuses(
        self, plan: TargetPlan, configs: ConfigStatuses, multi_target_owners: Set[ObjectKey]
    ) -> TargetStatuses:
        """Return the status of a target and the statuses of the owners of its packages."""
        entry = self._previous.get(plan.target.key)
        if entry is None or not entry.is_valid(plan, configs, multi_target_owners):
            statuses = build_target_statuses(plan, configs, multi_target_owners)
            entry = _CacheEntry(plan, configs, multi_target_owners, statuses)
        elif entry.configs is not configs:
            entry = replace(entry, configs=configs)
        # Do not cache the statuses of a target with new drafts, because its plan is different in the next pass.
        if not plan.has_new_drafts and not entry.statuses.failures:
            self._current[plan.target.key] = entry
        return entry.statuses


@dataclass(frozen=True, eq=False)
class _CacheEntry:
    plan: TargetPlan
    configs: ConfigStatuses
    multi_target_owners: Set[ObjectKey]
    statuses: TargetStatuses

    def is_valid(self, plan: TargetPlan, configs: ConfigStatuses, multi_target_owners: Set[ObjectKey]) -> bool:
        """Return whether the arguments are the same objects as the inputs of the cached statuses."""
        return (
            self.plan is plan
            and self.multi_target_owners is multi_target_owners
            and (
                self.configs is configs
                or all(map(is_, self.statuses.config_statuses, _list_config_statuses(self.statuses.owners, configs)))
            )
        )


def build_target_statuses(
    plan: TargetPlan, configs: ConfigStatuses, multi_target_owners: Set[ObjectKey]
) -> TargetStatuses:
    """Compute the status of a target and the statuses of the owners of its packages."""
    failures: dict[ObjectKey, InternalFailure] = {}
    statuses = [_build_isolated_status(outcome, plan, failures) for outcome in plan.outcomes]
    single_target = {status.key: status for status in statuses if status.key not in multi_target_owners}
    config_statuses = _list_config_statuses(single_target, configs)
    owners = {
        key: merge_config_status(status, config)
        for (key, status), config in zip(single_target.items(), config_statuses, strict=True)
    }
    counts = count_packages(plan)
    multi_target = tuple(status for status in statuses if status.key in multi_target_owners)
    return TargetStatuses(_build_target_status(plan, counts), counts, owners, config_statuses, multi_target, failures)


def _list_config_statuses(owners: Iterable[ObjectKey], configs: ConfigStatuses) -> tuple[ConfigStatus | None, ...]:
    return tuple(map(configs.by_key.get, owners))


def merge_config_status(status: ObjectStatus, config: ConfigStatus | None) -> ObjectStatus:
    """Add the status that a controller reports to the status of an owner.

    The conditions and fields of `status` replace equally named conditions and fields of `config`.
    """
    if config is None:
        return status
    conditions = upsert_conditions(config.conditions, *status.conditions)
    fields = {**config.fields, **status.fields}
    return replace(status, conditions=conditions, fields=fields, spec=config.spec, metadata=config.metadata)


def _build_isolated_status(
    outcome: PackageOutcome, plan: TargetPlan, failures: dict[ObjectKey, InternalFailure]
) -> ObjectStatus:
    """Return the status of the owner of a package. Report an unexpected exception as a condition of this owner only."""
    try:
        with isolation_boundary(f"the status of {outcome.variant.owner.key}"):
            return _build_outcome_status(outcome, plan)
    except ScopeFailedError as error:
        failures[outcome.variant.owner.key] = error.failure
        condition = Condition("Ready", "False", CommonCodes.INTERNAL_ERROR.name, error.failure.message)
        return build_owner_status(outcome.variant, (VALID_CONDITION, condition))


def _build_outcome_status(outcome: PackageOutcome, plan: TargetPlan) -> ObjectStatus:
    fields = {
        "downstreamTargets": _build_outcome_targets(outcome, _find_own_record(outcome, plan)),
        "upstream": _build_upstream(outcome.variant),
        "contextDependencies": _build_dependencies(outcome),
        "pending": _list_pending_messages(outcome),
    }
    ready = (VALID_CONDITION, _get_ready_condition(outcome.variant))
    conditions = outcome.conditions if isinstance(outcome, Blocked) else ready
    return build_owner_status(outcome.variant, conditions, omit_empty(fields))


def _get_ready_condition(variant: Variant) -> Condition:
    return READY_CONDITION if variant.upstream else replace(READY_CONDITION, message=_GENERATED_READY)


def _find_own_record(outcome: PackageOutcome, plan: TargetPlan) -> PackageRecord | None:
    # Check the owner of the record, because the package at this path can belong to a different owner.
    record = plan.next_state.packages.get(outcome.variant.target.package) or outcome.record
    return record if record and record.owner.key == outcome.variant.owner.key else None


def build_owner_status(
    variant: Variant, conditions: tuple[Condition, ...], fields: Mapping[str, Any] | None = None
) -> ObjectStatus:
    """Return the status of the owner of a variant. The status that the controller reports is not included."""
    tenant = {"tenant": variant.tenant} if variant.tenant else {}
    return ObjectStatus(variant.owner.key, variant.owner.api_version, conditions, {**(fields or {}), **tenant})


def _build_outcome_targets(outcome: PackageOutcome, record: PackageRecord | None) -> list[dict[str, Any]]:
    if record is None:
        return []
    target = outcome.variant.target
    return build_downstream_targets(target.repository, target.package, record, is_drafted=isinstance(outcome, Draft))


def build_downstream_targets(
    repository: str, package: str, record: PackageRecord, *, is_drafted: bool = False
) -> list[dict[str, Any]]:
    """Return a list with the entry of a package for `downstreamTargets`.

    The entry describes the open draft. If there is no draft, it describes the published version. Return [] if the
    package has neither.

    All fields come from the recorded state. Therefore, the result is also correct after an interrupted pass, and after
    someone deleted the status branch.
    """
    if not (is_drafted or record.draft_version or record.published_version):
        return []
    has_draft = is_drafted or record.draft_version
    workspace = record.last_workspace if has_draft else _get_published_workspace(record)
    # Use the recorded render status only for the last workspace, because the record contains only the status of the
    # last render. The last render can belong to a deleted draft.
    is_last = workspace == record.last_workspace
    render = omit_empty({name: record.render_status.get(name) for name in _RENDER_FIELDS}) if is_last else {}
    name = f"{repository}.{package.replace('/', '.')}.packagevariant-{workspace}"
    return [omit_empty({"name": name, "renderStatus": render})]


def _get_published_workspace(record: PackageRecord) -> int:
    """Return the workspace number of the draft that was published, or else the last workspace number."""
    published = (revision for revision in reversed(record.revisions) if revision.version == record.published_version)
    revision = next(published, record.revisions[-1] if record.revisions else None)
    return revision.workspace or record.last_workspace if revision else record.last_workspace


def _build_upstream(variant: Variant) -> dict[str, Any]:
    source = variant.source.as_data()
    return omit_empty({name: source.get(name) for name in ("ref", "commit", "tree")})


def _build_dependencies(outcome: PackageOutcome) -> list[dict[str, Any]]:
    trace = outcome.trace if isinstance(outcome, Blocked) else outcome.record.trace
    return [
        {
            "apiVersion": dependency.api_version,
            "kind": dependency.kind,
            "namespace": dependency.namespace,
            "name": dependency.name,
            "found": dependency.fingerprint != ABSENT_FINGERPRINT,
        }
        for dependency in list_object_dependencies(trace)
    ]


def _list_pending_messages(outcome: PackageOutcome) -> list[str]:
    settling = outcome.variant.settling
    moves = [settling.message] if settling else []
    match outcome:
        case Draft() | Unchanged(reason="drafted"):
            return [_REVIEW_PENDING, *moves]
        case Blocked(conditions=conditions):
            proposed = (condition for condition in conditions if condition.reason == "DownstreamProposed")
            return [*(condition.message for condition in proposed), *moves]
        case Unchanged():
            return moves


def _build_target_status(plan: TargetPlan, counts: Mapping[str, int]) -> ObjectStatus:
    target = plan.target
    errors = select_errors(plan.findings)
    messages = "; ".join(error.message for error in errors)
    condition = Condition("Ready", "False", errors[0].code, messages) if errors else _PLANNED
    removals = [
        {**entry, "package": entry["package"].partition("/")[2]}
        for entry in build_pending_removals_data(list_pending_removals(plan))
    ]
    fields = {
        "branch": target.branch,
        "directory": target.directory,
        "packages": omit_empty(counts),
        "leaving": removals,
    }
    return ObjectStatus(target.key, target.api_version, (condition,), omit_empty(fields))
