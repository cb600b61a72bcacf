"""Tallies: how many packages came to which end, in the words that summaries use."""

from __future__ import annotations

from reconciler.planning.branches import HoldBack
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged

ENDS = ("published", "drafted", "heldBack", "declined", "blocked", "held")
_UNCHANGED = {"drafted": "drafted", "declined": "declined"}


def tally(plan: DestinationPlan) -> dict[str, int]:
    """Return how many packages of a destination came to each of ENDS.

    A new draft and one that stands count alike, so that a second pass over the same world counts the same.
    """
    reasons = held_back(plan)
    ends = [_end(outcome, reasons) for outcome in plan.outcomes] + ["held"] * len(plan.held)
    return {end: ends.count(end) for end in ENDS}


def held_back(plan: DestinationPlan) -> dict[str, str]:
    """Return the packages whose new draft cannot be written now, with the reason."""
    drafts = {one.variant.place.package for one in plan.outcomes if isinstance(one, Draft)}
    layouts = [one for one in plan.layouts if isinstance(one, HoldBack)]
    return {package: one.reason for one in layouts for package in one.packages if package in drafts}


def _end(outcome: Outcome, reasons: dict[str, str]) -> str:
    match outcome:
        case Draft(variant=variant):
            return "heldBack" if variant.place.package in reasons else "drafted"
        case Unchanged(why=why):
            return _UNCHANGED.get(why, "published")
        case Blocked():
            return "blocked"
