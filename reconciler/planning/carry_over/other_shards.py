"""Destinations of other shards: what they come to as far as state and branches tell, without a single render."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.controllers.results import Variant
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.package_decision import parse_finding
from reconciler.planning.decide.target_inputs import PlanningContext, PreparedTarget
from reconciler.planning.decide.target_plan import DecidedTarget, decide_target
from reconciler.planning.model.outcomes import Blocked, PackageOutcome, PackageRender, Unchanged
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.model.state import PackageRecord


@dataclass(frozen=True)
class OtherShardPlans:
    """The plans of other shards' destinations, of which nothing is written here.

    `awaited` are the owners with a package that its shard has still to decide on: of what they have there only what
    was recorded last is known.
    """

    plans: tuple[TargetPlan, ...] = ()
    awaited_owners: frozenset[ObjectKey] = frozenset()


def decide_from_record(one: PreparedTarget, shop: PlanningContext) -> tuple[DecidedTarget, frozenset[ObjectKey]]:
    """Return what becomes of a destination, and the owners whose packages its shard has still to decide on.

    What needs no render is decided as its shard would; what does is as state recorded it, and left out where nothing
    is recorded. Once its shard has nothing to do there, this is what it comes to itself.
    """
    decided = decide_target(one, replace(shop, render=_not_here))
    waiting = [each for each in decided.outcomes if _awaits(each)]
    outcomes = tuple(known for each in decided.outcomes if (known := _recorded(each) if _awaits(each) else each))
    return replace(decided, outcomes=outcomes), frozenset(each.variant.owner.key for each in waiting)


def _not_here(variant: Variant, made: RenderInputs) -> PackageRender:
    raise InterruptedFunctionError(f"package {variant.target} is another shard's to render")


def _awaits(outcome: PackageOutcome) -> bool:
    # nothing else interrupts where nothing is rendered
    return isinstance(outcome, Blocked) and outcome.should_retry


def _recorded(outcome: PackageOutcome) -> PackageOutcome | None:
    record = outcome.record
    found = record.outcome.get("before", record.outcome) if record else {}
    if record is None or "kind" not in found:
        return None
    findings = tuple(parse_finding(one) for one in found.get("findings", ()))
    if found["kind"] != "blocked":
        return Unchanged(outcome.variant, record, found["kind"], findings=findings)
    conditions = tuple(Condition(**one) for one in found["conditions"])
    return Blocked(outcome.variant, record, conditions, findings, record.observed, record.trace)


def without_writes(plan: TargetPlan) -> TargetPlan:
    """Return the plan without what only the destination's own shard does: commits, refs and tags."""
    return replace(plan, branch_actions=(), kept_heads=(), missing_tags=())


def find_departing_owners(decided: Iterable[DecidedTarget | TargetPlan]) -> frozenset[ObjectKey]:
    """Return the owners of packages that they have somewhere and do not want there any more."""
    return frozenset(
        record.owner.key
        for one in decided
        if isinstance(one, DecidedTarget)
        for package, record in one.snapshot.state.packages.items()
        if record.owned and not one.claims.is_requested(package)
    )


def list_recorded_owners(surveyed: PreparedTarget | TargetPlan) -> Iterator[ObjectKey]:
    """Yield the owners whose package is on a destination as they want it, or drafted, without error, by its state.

    A destination that is left alone has nobody's.
    """
    if isinstance(surveyed, TargetPlan):
        return
    for variant in surveyed.claims.variants:
        record = surveyed.snapshot.state.packages.get(variant.target.package)
        if record and record.owner.key == variant.owner.key and _is_there(record):
            yield record.owner.key


def _is_there(record: PackageRecord) -> bool:
    kind = record.outcome.get("before", record.outcome).get("kind")
    return record.owned and kind not in (None, "blocked")
