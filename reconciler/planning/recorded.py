"""Destinations of other shards: what they come to as far as state and branches tell, without a single render."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.krm.conditions import Condition
from reconciler.krm.identity import ObjectKey
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide import read_finding
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Blocked, Outcome, Rendered, Unchanged
from reconciler.planning.plan import Decided, decide_destination
from reconciler.planning.source import Ingredients
from reconciler.planning.state import PackageRecord
from reconciler.planning.survey import Surveyed, Workshop
from reconciler.rules.variant import Variant


@dataclass(frozen=True)
class Elsewhere:
    """The plans of other shards' destinations, of which nothing is written here.

    `awaited` are the owners with a package that its shard has still to decide on: of what they have there only what
    was recorded last is known.
    """

    plans: tuple[DestinationPlan, ...] = ()
    awaited: frozenset[ObjectKey] = frozenset()


def decide_as_recorded(one: Surveyed, shop: Workshop) -> tuple[Decided, frozenset[ObjectKey]]:
    """Return what becomes of a destination, and the owners whose packages its shard has still to decide on.

    What needs no render is decided as its shard would; what does is as state recorded it, and left out where nothing
    is recorded. Once its shard has nothing to do there, this is what it comes to itself.
    """
    decided = decide_destination(one, replace(shop, render=_not_here))
    waiting = [each for each in decided.outcomes if _awaits(each)]
    outcomes = tuple(known for each in decided.outcomes if (known := _recorded(each) if _awaits(each) else each))
    return replace(decided, outcomes=outcomes), frozenset(each.variant.owner.key for each in waiting)


def _not_here(variant: Variant, made: Ingredients) -> Rendered:
    raise InterruptedFunctionError(f"package {variant.place} is another shard's to render")


def _awaits(outcome: Outcome) -> bool:
    # nothing else interrupts where nothing is rendered
    return isinstance(outcome, Blocked) and outcome.retry


def _recorded(outcome: Outcome) -> Outcome | None:
    record = outcome.record
    found = record.outcome.get("before", record.outcome) if record else {}
    if record is None or "kind" not in found:
        return None
    findings = tuple(read_finding(one) for one in found.get("findings", ()))
    if found["kind"] != "blocked":
        return Unchanged(outcome.variant, record, found["kind"], findings=findings)
    conditions = tuple(Condition(**one) for one in found["conditions"])
    return Blocked(outcome.variant, record, conditions, findings, record.seen, record.trace)


def unwritten(plan: DestinationPlan) -> DestinationPlan:
    """Return the plan without what only the destination's own shard does: commits, refs and tags."""
    return replace(plan, layouts=(), kept=(), tags=())


def departing(decided: Iterable[Decided | DestinationPlan]) -> frozenset[ObjectKey]:
    """Return the owners of packages that they have somewhere and do not want there any more."""
    return frozenset(
        record.owner.key
        for one in decided
        if isinstance(one, Decided)
        for package, record in one.ground.state.packages.items()
        if record.owned and not one.claims.wants(package)
    )


def arrived(surveyed: Surveyed | DestinationPlan) -> Iterator[ObjectKey]:
    """Yield the owners whose package is on a destination as they want it, or drafted, without error, by its state.

    A destination that is left alone has nobody's.
    """
    if isinstance(surveyed, DestinationPlan):
        return
    for variant in surveyed.claims.variants:
        record = surveyed.ground.state.packages.get(variant.place.package)
        if record and record.owner.key == variant.owner.key and _is_there(record):
            yield record.owner.key


def _is_there(record: PackageRecord) -> bool:
    kind = record.outcome.get("before", record.outcome).get("kind")
    return record.owned and kind not in (None, "blocked")
