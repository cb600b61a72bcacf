"""The summary of the fleet on the status branch: totals, what is not well, and every finding with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import emit
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Unchanged
from reconciler.reporting.findings import findings_data
from reconciler.reporting.owners import ObjectStatus
from reconciler.reporting.status_file import told
from reconciler.reporting.tally import ENDS, held_back, tally

SUMMARY = "summary.yaml"
_MOST_LISTED = 1000


def summary_file(plan: FleetPlan, statuses: Mapping[ObjectKey, ObjectStatus]) -> bytes:
    """Return `summary.yaml`: `totals`, and up to 1,000 each of `notReady`, `held`, `waiting` and `findings`.

    A list that is longer ends there, and its whole length stands in `totals`.
    """
    not_ready = [item for _, status in sorted(statuses.items()) for item in _not_ready(status)]
    findings = findings_data(standing_findings(plan))
    lists = {"notReady": not_ready, "held": list(_held(plan)), "waiting": list(_waiting(plan)), "findings": findings}
    totals = {**_totals(plan), "notReady": len(not_ready), "findings": len(findings)}
    document = {"totals": totals, **{name: items[:_MOST_LISTED] for name, items in lists.items() if items}}
    return emit(document).encode()


def standing_findings(plan: FleetPlan) -> Iterator[Finding]:
    """Yield the findings of a pass that the next pass over the same world finds again.

    What a render was warned of stands in the package's own status file: a pass that renders nothing cannot tell.
    """
    yield from (*plan.findings, *plan.room.findings)
    for stalled in plan.room.stalled:
        yield from stalled.findings
    for variant in plan.room.variants:
        yield from variant.findings
    for destination in plan.destinations:
        yield from (*destination.findings, *(one.finding for one in destination.held))
    for _, outcome in plan.outcomes():
        if isinstance(outcome, Blocked):
            yield from outcome.findings


def all_findings(plan: FleetPlan) -> Iterator[Finding]:
    """Yield every finding of a pass, also what its renders were warned of."""
    yield from standing_findings(plan)
    for _, outcome in plan.outcomes():
        if isinstance(outcome, Draft):
            yield from outcome.rendered.findings
        elif isinstance(outcome, Unchanged):
            yield from outcome.findings


def _totals(plan: FleetPlan) -> dict[str, int]:
    tallies = [tally(destination) for destination in plan.destinations]
    ends = {end: sum(one[end] for one in tallies) for end in ENDS}
    return {
        "destinations": len(plan.destinations),
        "packages": sum(ends.values()),
        **ends,
        "stalled": len(plan.room.stalled),
    }


def _not_ready(status: ObjectStatus) -> Iterator[dict[str, Any]]:
    for one in status.conditions:
        if one.type == "Ready" and one.status != "True":
            yield told({"object": str(status.key), "reason": one.reason, "message": one.message})


def _held(plan: FleetPlan) -> Iterator[dict[str, Any]]:
    for destination in plan.destinations:
        for one in destination.held:
            place = f"{destination.destination.name}/{one.package}"
            yield told({"package": place, "reason": one.finding.code, "message": one.finding.message})


def _waiting(plan: FleetPlan) -> Iterator[dict[str, Any]]:
    for destination in plan.destinations:
        for package, reason in sorted(held_back(destination).items()):
            yield {"package": f"{destination.destination.name}/{package}", "message": reason}
