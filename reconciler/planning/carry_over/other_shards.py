"""Plans for the targets of other shards. They are built from the recorded states and the branches, without renders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.controllers.results import Variant
from reconciler.krm.findings import parse_finding
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_inputs import PlanningContext, PreparedTarget
from reconciler.planning.decide.target_plan import DecidedTarget, decide_target
from reconciler.planning.model.outcomes import Blocked, PackageOutcome, PackageRender, Unchanged
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.model.state import PackageRecord


@dataclass(frozen=True)
class OtherShardPlans:
    """Plans for the targets of other shards. This shard does not write to these targets.

    Attributes:
        awaited_owners: The owners with a package that another shard must render first. Until then, the last recorded
            outcome of the package is used.
    """

    plans: tuple[TargetPlan, ...] = ()
    awaited_owners: frozenset[ObjectKey] = frozenset()


def decide_from_record(
    prepared: PreparedTarget, context: PlanningContext
) -> tuple[DecidedTarget, frozenset[ObjectKey]]:
    """Decide about the packages of another shard's target without a render.

    If a package must be rendered, its last recorded outcome is used. If there is no recorded outcome, the package is
    omitted.

    Returns:
        The decided target, and the owners of the packages that must be rendered. If there are no such owners, the
        decided target is equal to the one that the other shard computes.
    """
    decided = decide_target(prepared, replace(context, render=_refuse_render))
    awaited = frozenset(outcome.variant.owner.key for outcome in decided.outcomes if _is_awaited(outcome))
    candidates = (_get_recorded_outcome(outcome) if _is_awaited(outcome) else outcome for outcome in decided.outcomes)
    return replace(decided, outcomes=tuple(outcome for outcome in candidates if outcome)), awaited


def _refuse_render(variant: Variant, inputs: RenderInputs) -> PackageRender:
    raise InterruptedFunctionError("another shard renders this package")


def _is_awaited(outcome: PackageOutcome) -> bool:
    # Check `should_retry`, because only `_refuse_render` sets this flag here. The flag therefore means that the other
    # shard must render the package.
    return isinstance(outcome, Blocked) and outcome.should_retry


def _get_recorded_outcome(outcome: PackageOutcome) -> PackageOutcome | None:
    record = outcome.record
    data = record.outcome.get("before", record.outcome) if record else {}
    if record is None or "kind" not in data:
        return None
    findings = tuple(parse_finding(finding) for finding in data.get("findings", ()))
    if data["kind"] != "blocked":
        return Unchanged(outcome.variant, record, data["kind"], findings=findings)
    conditions = tuple(Condition(**condition) for condition in data["conditions"])
    return Blocked(outcome.variant, record, conditions, findings, record.observed, record.trace)


def remove_write_actions(plan: TargetPlan) -> TargetPlan:
    """Return the plan without actions on commits, refs and tags, because only the target's own shard executes them."""
    return replace(plan, branch_actions=(), kept_heads=(), missing_tags=())


def find_owners_of_unrequested_packages(targets: Iterable[DecidedTarget | TargetPlan]) -> frozenset[ObjectKey]:
    """Return the owners of existing packages that are no longer requested."""
    return frozenset(
        record.owner.key
        for target in targets
        if isinstance(target, DecidedTarget)
        for package, record in target.snapshot.state.packages.items()
        if record.is_owned and not target.claims.is_requested(package)
    )


def list_recorded_owners(prepared: PreparedTarget | TargetPlan) -> Iterator[ObjectKey]:
    """Yield the owners of the requested packages whose last recorded outcome is not an error.

    Yield nothing for an unreadable target.
    """
    if isinstance(prepared, TargetPlan):
        return
    for variant in prepared.claims.variants:
        record = prepared.snapshot.state.packages.get(variant.target.package)
        if record and record.owner.key == variant.owner.key and _is_reconciled(record):
            yield record.owner.key


def _is_reconciled(record: PackageRecord) -> bool:
    kind = record.outcome.get("before", record.outcome).get("kind")
    return record.is_owned and kind not in (None, "blocked")
