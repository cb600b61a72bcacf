"""Tallies: how many packages came to which end, in the words that summaries use."""

from __future__ import annotations

from reconciler.planning.fleet import DestinationPlan
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


def _end(outcome: Outcome) -> str:
    match outcome:
        case Draft():
            return "drafted"
        case Unchanged(why=why):
            return _UNCHANGED.get(why, "published")
        case Blocked():
            return "blocked"
