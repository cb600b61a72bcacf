"""What another config leaves as it is: a destination that was decided once need not be decided for both."""

from __future__ import annotations

from dataclasses import fields

from reconciler.planning.claims import Claims
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged
from reconciler.planning.plan import Decided
from reconciler.planning.templates import takes_part
from reconciler.rules.variant import Variant
from reconciler.snapshot.trace import Answers, Trace

# what a variant does to its package, and the provenance of that, follow from its facts and from what it asks for
_DERIVED = ("mutation", "provenance")


def comes_to_the_same(known: Decided, claims: Claims, answers: Answers) -> bool:
    """Return whether a destination that was decided comes to the very same by the claims and answers of another config.

    Only where that is plain: each of its packages is wanted by who has it, each variant has the same facts, and every
    question that was asked has the same answer (design 5). Templates go by all packages of a cluster, and are not
    looked at; nor is a package that nobody wants any more.
    """
    wanted = {one.place.package: one for one in claims.variants}
    if known.losers or len(wanted) != len(claims.variants) or claims.stalled != known.claims.stalled:
        return False
    before = {one.place.package: one for one in known.claims.variants}
    return (
        before.keys() == wanted.keys()
        and all(_is_theirs(known, package, one) and is_alike(before[package], one) for package, one in wanted.items())
        and known.ground.state.packages.keys() <= wanted.keys()
        and all(_answered_alike(one, answers) for one in known.outcomes)
    )


def _is_theirs(known: Decided, package: str, variant: Variant) -> bool:
    record = known.ground.state.packages.get(package)
    return record is None or record.owner.key == variant.owner.key


def is_alike(one: Variant, other: Variant) -> bool:
    """Return whether two variants make the same of the same."""
    names = (each.name for each in fields(Variant) if each.name not in _DERIVED)
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _answered_alike(outcome: Outcome, answers: Answers) -> bool:
    trace = trace_of(outcome)
    if trace is None or takes_part(trace):
        return False
    return all(answers.to(name) == was for name, was in trace.items() if answers.knows(name))


def trace_of(outcome: Outcome) -> Trace | None:
    """Return what a package was made of; None where the world kept it from being made."""
    match outcome:
        case Draft(record=record) | Unchanged(record=record):
            return record.trace
        case Blocked(trace=trace, retry=retry):
            return None if retry else trace
