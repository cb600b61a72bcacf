"""What a pass leaves: the plan that the next pass over the same comes to, where that can be told without planning."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from reconciler.packages.functions.facts import is_function
from reconciler.planning.branches import Grow, Keep
from reconciler.planning.claims import Claims
from reconciler.planning.decide import read_finding
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged
from reconciler.planning.plan import Decided
from reconciler.planning.state import DestinationState
from reconciler.planning.templates import takes_part, was_looked_at
from reconciler.planning.unmoved import is_alike, trace_of
from reconciler.rules.variant import Variant
from reconciler.snapshot.trace import Answers, Trace


@dataclass(frozen=True)
class Left:
    """One destination as a pass has left it: who wants what there, and the plan of a pass that finds it so.

    `answers` are those that its packages were made by, to the questions that can be asked again.
    """

    plan: DestinationPlan
    variants: tuple[Variant, ...]
    stalled: frozenset[str]
    answers: Trace

    def is_wanted_so(self, claims: Claims) -> bool:
        """Return whether the same variants are wanted as before; those that stayed are the same objects."""
        return claims.stalled == self.stalled and (
            claims.variants is self.variants
            or (len(claims.variants) == len(self.variants) and all(map(_are_alike, claims.variants, self.variants)))
        )

    def settled(self, claims: Claims, moved: Set[str]) -> Mapping[str, Outcome]:
        """Return what packages come to by themselves, whatever others beside them do, while nothing else moved there.

        Those are wanted as before, and no question of theirs is among those that have `moved`.
        """
        places = [one.place for one in self.variants]
        if [one.place for one in claims.variants] != places or claims.stalled != self.stalled:
            return {}
        stayed = {
            one.place.package
            for one, other in zip(claims.variants, self.variants, strict=True)
            if _are_alike(one, other)
        }
        found = {one.variant.place.package: one for one in self.plan.outcomes if isinstance(one, Unchanged)}
        return {
            name: one for name, one in found.items()
            if name in stayed and was_looked_at(one.record.trace) and moved.isdisjoint(one.record.trace)
        }  # fmt: skip


def _are_alike(one: Variant, other: Variant) -> bool:
    return one is other or is_alike(one, other)


def left_by(decided: Decided, plan: DestinationPlan, state: DestinationState, answers: Answers) -> Left | None:
    """Return what a destination is left as when its plan was carried out; `state` is what its state then says.

    None where the next pass has to look: something there waits, ends, settles or is on its way out, people's work is
    merged, templates go by all packages of the cluster, or a package is not its claimant's alone.
    """
    if not (_is_plain(decided, plan, state) and _leads_to_silence(plan, state)):
        return None
    outcomes = tuple(_left(one, state) for one in plan.outcomes)
    left = replace(plan, before=state, after=state, outcomes=outcomes, layouts=())
    asked = {
        name: answer
        for one in outcomes
        for name, answer in (trace_of(one) or {}).items()
        if is_function(name) or answers.knows(name)
    }
    return Left(left, decided.claims.variants, decided.claims.stalled, asked)


def _is_plain(decided: Decided, plan: DestinationPlan, state: DestinationState) -> bool:
    wanted = {one.place.package: one for one in decided.claims.variants}
    return (
        not (decided.losers or plan.findings or plan.held or plan.leaving or plan.kept or plan.tags)
        and len(wanted) == len(decided.claims.variants)
        and all(name in wanted and one.owner.key == wanted[name].owner.key for name, one in state.packages.items())
        and all(one.settling is None for one in decided.claims.variants)
        and all((trace := trace_of(one)) is not None and not takes_part(trace) for one in plan.outcomes)
    )


def _leads_to_silence(plan: DestinationPlan, state: DestinationState) -> bool:
    """Return whether there is nothing left to do but what was done: drafts that grew, each by its commits."""
    if plan.before == state and all(isinstance(one, Keep) for one in plan.layouts):
        return not any(isinstance(one, Draft) or _withdraws(one) for one in plan.outcomes)
    return all(isinstance(one, Grow | Keep) for one in plan.layouts) and all(map(_is_done, plan.outcomes))


def _is_done(outcome: Outcome) -> bool:
    return isinstance(outcome, Draft) or (isinstance(outcome, Unchanged) and not outcome.withdraw)


def _withdraws(outcome: Outcome) -> bool:
    return isinstance(outcome, Unchanged) and outcome.withdraw


def _left(outcome: Outcome, state: DestinationState) -> Outcome:
    """Return what a package comes to when nothing has moved since."""
    if isinstance(outcome, Blocked):
        return outcome
    record = state.packages[outcome.variant.place.package]
    if isinstance(outcome, Unchanged):
        return replace(outcome, record=record)
    findings = tuple(read_finding(one) for one in record.outcome["findings"])
    return Unchanged(outcome.variant, record, "drafted", findings=findings)
