"""Tallies: how many packages came to which end, in the words that summaries use."""

from __future__ import annotations

from reconciler.krm.findings import errors
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged
from reconciler.reporting.leaving import waiting

ENDS = ("published", "drafted", "declined", "blocked", "held", "leaving")
_UNCHANGED = {"drafted": "drafted", "declined": "declined"}


def tally(plan: DestinationPlan) -> dict[str, int]:
    """Return how many packages of a destination came to each of ENDS.

    A new draft and one that stands count alike, so that a second pass over the same world counts the same.
    """
    ends = [_end(outcome) for outcome in plan.outcomes] + ["held"] * len(plan.held)
    ends += ["leaving"] * len(waiting(plan))
    return {end: ends.count(end) for end in ENDS}


def blocked_objects(plan: FleetPlan) -> frozenset[str]:
    """Return the config objects and files that an error finding blocks, without those that have a blocked package.

    An object is `Kind/namespace/name`; a file that cannot be read is its path.
    """
    found = (one.where for one in errors(plan.all_findings()) if not one.where.package)
    named = {where.object or where.file for where in found}
    stalled = {str(one.owner.key) for one in plan.room.stalled}
    # A blocked package is counted on its own, and its owner has the same error.
    counted = {
        str(one.variant.owner.key)
        for each in plan.destinations
        if each.counts[2]
        for one in each.outcomes
        if isinstance(one, Blocked)
    }
    return frozenset((named | stalled) - counted - {""})


def _end(outcome: Outcome) -> str:
    match outcome:
        case Draft():
            return "drafted"
        case Unchanged(why=why):
            return _UNCHANGED.get(why, "published")
        case Blocked():
            return "blocked"
