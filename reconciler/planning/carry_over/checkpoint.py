"""What another config leaves as it is: a destination that was decided once need not be decided for both.

What a pass leaves: the plan that the next pass over the same comes to, where that can be told without planning.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, fields, replace

from reconciler.catalog.trace import DependencyReader, Trace
from reconciler.controllers.results import Variant
from reconciler.packages.functions.registry import is_function_trace_key
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.package_decision import parse_finding
from reconciler.planning.decide.target_inputs import TargetClaims
from reconciler.planning.decide.target_plan import DecidedTarget
from reconciler.planning.layout.refs import KeepBranch, PushCommits
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, Unchanged
from reconciler.planning.model.state import TargetState
from reconciler.planning.render.templates import has_template_dependencies, has_template_rules_dependency

# what a variant does to its package, and the provenance of that, follow from its facts and from what it asks for
_DERIVED = ("mutation", "provenance")


def has_same_result(known: DecidedTarget, claims: TargetClaims, answers: DependencyReader) -> bool:
    """Return whether a destination that was decided comes to the very same by the claims and answers of another config.

    Only where that is plain: each of its packages is wanted by who has it, each variant has the same facts, and every
    question that was asked has the same answer (design 5). Templates go by all packages of a cluster, and are not
    looked at; nor is a package that nobody wants any more.
    """
    wanted = {one.target.package: one for one in claims.variants}
    if (
        known.rejected_claims
        or len(wanted) != len(claims.variants)
        or claims.stalled_packages != known.claims.stalled_packages
    ):
        return False
    before = {one.target.package: one for one in known.claims.variants}
    return (
        before.keys() == wanted.keys()
        and all(
            _is_theirs(known, package, one) and are_variants_equivalent(before[package], one)
            for package, one in wanted.items()
        )
        and known.snapshot.state.packages.keys() <= wanted.keys()
        and all(_answered_alike(one, answers) for one in known.outcomes)
    )


def _is_theirs(known: DecidedTarget, package: str, variant: Variant) -> bool:
    record = known.snapshot.state.packages.get(package)
    return record is None or record.owner.key == variant.owner.key


def are_variants_equivalent(one: Variant, other: Variant) -> bool:
    """Return whether two variants make the same of the same."""
    names = (each.name for each in fields(Variant) if each.name not in _DERIVED)
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _answered_alike(outcome: PackageOutcome, answers: DependencyReader) -> bool:
    trace = get_outcome_trace(outcome)
    if trace is None or has_template_dependencies(trace):
        return False
    return all(answers.read_fingerprint(name) == was for name, was in trace.items() if answers.is_dependency(name))


def get_outcome_trace(outcome: PackageOutcome) -> Trace | None:
    """Return what a package was made of; None where the world kept it from being made."""
    match outcome:
        case Draft(record=record) | Unchanged(record=record):
            return record.trace
        case Blocked(trace=trace, should_retry=retry):
            return None if retry else trace


@dataclass(frozen=True)
class TargetCheckpoint:
    """One destination as a pass has left it: who wants what there, and the plan of a pass that finds it so.

    `answers` are those that its packages were made by, to the questions that can be asked again.
    """

    plan: TargetPlan
    variants: tuple[Variant, ...]
    stalled_packages: frozenset[str]
    dependencies: Trace

    def has_same_claims(self, claims: TargetClaims) -> bool:
        """Return whether the same variants are wanted as before; those that stayed are the same objects."""
        return claims.stalled_packages == self.stalled_packages and (
            claims.variants is self.variants
            or (len(claims.variants) == len(self.variants) and all(map(_are_alike, claims.variants, self.variants)))
        )

    def find_known_outcomes(self, claims: TargetClaims, moved: Set[str]) -> Mapping[str, PackageOutcome]:
        """Return what packages come to by themselves, whatever others beside them do, while nothing else moved there.

        Those are wanted as before, and no question of theirs is among those that have `moved`.
        """
        places = [one.target for one in self.variants]
        if [one.target for one in claims.variants] != places or claims.stalled_packages != self.stalled_packages:
            return {}
        stayed = {
            one.target.package
            for one, other in zip(claims.variants, self.variants, strict=True)
            if _are_alike(one, other)
        }
        found = {one.variant.target.package: one for one in self.plan.outcomes if isinstance(one, Unchanged)}
        return {
            name: one for name, one in found.items()
            if name in stayed and has_template_rules_dependency(one.record.trace) and moved.isdisjoint(one.record.trace)
        }  # fmt: skip


def _are_alike(one: Variant, other: Variant) -> bool:
    return one is other or are_variants_equivalent(one, other)


def create_checkpoint(
    decided: DecidedTarget, plan: TargetPlan, state: TargetState, answers: DependencyReader
) -> TargetCheckpoint | None:
    """Return what a destination is left as when its plan was carried out; `state` is what its state then says.

    None where the next pass has to look: something there waits, ends, settles or is on its way out, people's work is
    merged, templates go by all packages of the cluster, or a package is not its claimant's alone.
    """
    if not (_is_plain(decided, plan, state) and _leads_to_silence(plan, state)):
        return None
    outcomes = tuple(_left(one, state) for one in plan.outcomes)
    left = replace(plan, previous_state=state, next_state=state, outcomes=outcomes, branch_actions=())
    asked = {
        name: answer
        for one in outcomes
        for name, answer in (get_outcome_trace(one) or {}).items()
        if is_function_trace_key(name) or answers.is_dependency(name)
    }
    return TargetCheckpoint(left, decided.claims.variants, decided.claims.stalled_packages, asked)


def _is_plain(decided: DecidedTarget, plan: TargetPlan, state: TargetState) -> bool:
    wanted = {one.target.package: one for one in decided.claims.variants}
    return (
        not (
            decided.rejected_claims
            or plan.findings
            or plan.held
            or plan.removals
            or plan.kept_heads
            or plan.missing_tags
        )
        and len(wanted) == len(decided.claims.variants)
        and all(name in wanted and one.owner.key == wanted[name].owner.key for name, one in state.packages.items())
        and all(one.settling is None for one in decided.claims.variants)
        and all(
            (trace := get_outcome_trace(one)) is not None and not has_template_dependencies(trace)
            for one in plan.outcomes
        )
    )


def _leads_to_silence(plan: TargetPlan, state: TargetState) -> bool:
    """Return whether there is nothing left to do but what was done: drafts that grew, each by its commits."""
    if plan.previous_state == state and all(isinstance(one, KeepBranch) for one in plan.branch_actions):
        return not any(isinstance(one, Draft) or _withdraws(one) for one in plan.outcomes)
    return all(isinstance(one, PushCommits | KeepBranch) for one in plan.branch_actions) and all(
        map(_is_done, plan.outcomes)
    )


def _is_done(outcome: PackageOutcome) -> bool:
    return isinstance(outcome, Draft) or (isinstance(outcome, Unchanged) and not outcome.should_withdraw)


def _withdraws(outcome: PackageOutcome) -> bool:
    return isinstance(outcome, Unchanged) and outcome.should_withdraw


def _left(outcome: PackageOutcome, state: TargetState) -> PackageOutcome:
    """Return what a package comes to when nothing has moved since."""
    if isinstance(outcome, Blocked):
        return outcome
    record = state.packages[outcome.variant.target.package]
    if isinstance(outcome, Unchanged):
        return replace(outcome, record=record)
    findings = tuple(parse_finding(one) for one in record.outcome["findings"])
    return Unchanged(outcome.variant, record, "drafted", findings=findings)
