"""Reuse of the plan of a target, if the decisions about its packages would be the same.

- `has_same_result` checks whether the plan of a target is also valid for another config.
- A checkpoint contains a plan that the next pass uses if no input has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from reconciler.catalog.trace import DependencyReader, Trace
from reconciler.controllers.results import Variant
from reconciler.krm.findings import parse_finding
from reconciler.lazy_dataclasses import dataclass, fields, replace
from reconciler.packages.functions.registry import is_function_trace_key
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_inputs import TargetClaims
from reconciler.planning.decide.target_plan import DecidedTarget
from reconciler.planning.layout.refs import KeepBranch, PushCommits
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, Unchanged
from reconciler.planning.model.state import TargetState
from reconciler.planning.render.templates import has_template_dependencies, has_template_rules_dependency

# The fields of variants that are not compared, because controllers compute them from the other fields.
_DERIVED_FIELDS = ("mutation", "provenance")


def has_same_result(decided: DecidedTarget, claims: TargetClaims, dependency_reader: DependencyReader) -> bool:
    """Return whether the decisions about a target with one config are also valid for another config.

    Args:
        claims: The requested packages in the other config.
        dependency_reader: Computes the fingerprints of dependencies with the other config.

    Returns:
        True only if both configs request the same packages, each package is owned by the object that requests it,
            and each variant and dependency is unchanged. Always False for a target with Kafka templates, because Kafka
            templates depend on all packages of a cluster.
    """
    requested = {variant.target.package: variant for variant in claims.variants}
    if (
        decided.rejected_claims
        or len(requested) != len(claims.variants)
        or claims.stalled_packages != decided.claims.stalled_packages
    ):
        return False
    previous = {variant.target.package: variant for variant in decided.claims.variants}
    return (
        previous.keys() == requested.keys()
        and all(
            _is_owner(decided, package, variant) and are_variants_equivalent(previous[package], variant)
            for package, variant in requested.items()
        )
        and decided.snapshot.state.packages.keys() <= requested.keys()
        and all(_has_same_dependencies(outcome, dependency_reader) for outcome in decided.outcomes)
    )


def _is_owner(decided: DecidedTarget, package: str, variant: Variant) -> bool:
    record = decided.snapshot.state.packages.get(package)
    return record is None or record.owner.key == variant.owner.key


def are_variants_equivalent(variant: Variant, other: Variant) -> bool:
    """Return whether two variants produce the same package from the same source."""
    names = (field.name for field in fields(Variant) if field.name not in _DERIVED_FIELDS)
    return all(getattr(variant, name) == getattr(other, name) for name in names)


def _has_same_dependencies(outcome: PackageOutcome, dependency_reader: DependencyReader) -> bool:
    trace = get_outcome_trace(outcome)
    if trace is None or has_template_dependencies(trace):
        return False
    return all(
        dependency_reader.read_fingerprint(name) == fingerprint
        for name, fingerprint in trace.items()
        if dependency_reader.is_dependency(name)
    )


def get_outcome_trace(outcome: PackageOutcome) -> Trace | None:
    """Return the dependencies of a package. Return None if a temporary error prevented its render."""
    match outcome:
        case Draft(record=record) | Unchanged(record=record):
            return record.trace
        case Blocked(trace=trace, should_retry=should_retry):
            return None if should_retry else trace


@dataclass(frozen=True)
class TargetCheckpoint:
    """A target after a pass, with the plan that the next pass uses if no input has changed.

    Attributes:
        plan: The plan of the next pass.
        stalled_packages: The requested packages that cannot be computed now.
        dependencies: The fingerprints of the dependencies of all packages. Dependencies that the next pass cannot check
            are omitted.
    """

    plan: TargetPlan
    variants: tuple[Variant, ...]
    stalled_packages: frozenset[str]
    dependencies: Trace

    def has_same_claims(self, claims: TargetClaims) -> bool:
        """Return whether the requested packages are the same as in the checkpoint."""
        return claims.stalled_packages == self.stalled_packages and (
            claims.variants is self.variants
            or (
                len(claims.variants) == len(self.variants)
                and all(map(_are_same_variants, claims.variants, self.variants))
            )
        )

    def find_known_outcomes(self, claims: TargetClaims, changed: Set[str]) -> Mapping[str, PackageOutcome]:
        """Return a mapping from packages to outcomes of the last pass, for all outcomes that are still valid.

        Outcomes that depend on other packages of the target are omitted.

        Args:
            changed: The dependencies whose fingerprints have changed.
        """
        targets = [variant.target for variant in self.variants]
        if [variant.target for variant in claims.variants] != targets:
            return {}
        if claims.stalled_packages != self.stalled_packages:
            return {}
        unchanged_packages = {
            variant.target.package
            for variant, previous in zip(claims.variants, self.variants, strict=True)
            if _are_same_variants(variant, previous)
        }
        outcomes = (outcome for outcome in self.plan.outcomes if isinstance(outcome, Unchanged))
        by_package = {outcome.variant.target.package: outcome for outcome in outcomes}
        return {
            package: outcome
            for package, outcome in by_package.items()
            if package in unchanged_packages
            and has_template_rules_dependency(outcome.record.trace)
            and changed.isdisjoint(outcome.record.trace)
        }


def _are_same_variants(variant: Variant, other: Variant) -> bool:
    # Compare the identity first, because an unchanged variant is usually the same Python object.
    return variant is other or are_variants_equivalent(variant, other)


def create_checkpoint(
    decided: DecidedTarget, plan: TargetPlan, state: TargetState, dependency_reader: DependencyReader
) -> TargetCheckpoint | None:
    """Return the checkpoint of a target after its plan was executed.

    Args:
        plan: The executed plan.
        state: The state after the plan.

    Returns:
        The checkpoint, or None if the next pass must plan the target again. This is necessary in two cases: the target
        has Kafka templates, a removal, a conflict of owners or an error, or this pass did more than add commits to
        drafts.
    """
    if not (_has_only_independent_packages(decided, plan, state) and _is_complete(plan, state)):
        return None
    outcomes = tuple(_build_next_outcome(outcome, state) for outcome in plan.outcomes)
    next_plan = replace(plan, previous_state=state, next_state=state, outcomes=outcomes, branch_actions=())
    dependencies = {
        name: fingerprint
        for outcome in outcomes
        for name, fingerprint in (get_outcome_trace(outcome) or {}).items()
        if is_function_trace_key(name) or dependency_reader.is_dependency(name)
    }
    return TargetCheckpoint(next_plan, decided.claims.variants, decided.claims.stalled_packages, dependencies)


def _has_only_independent_packages(decided: DecidedTarget, plan: TargetPlan, state: TargetState) -> bool:
    """Return whether no package of the target depends on other packages, and no package needs a new decision.

    Each recorded package must be requested by its recorded owner. The target must have no removals, no errors, no
    upstream revisions that must not be used yet, and no dependencies on Kafka templates.
    """
    requested = {variant.target.package: variant for variant in decided.claims.variants}
    return (
        not (
            decided.rejected_claims
            or plan.findings
            or plan.held
            or plan.removals
            or plan.kept_heads
            or plan.missing_tags
        )
        and len(requested) == len(decided.claims.variants)
        and all(
            package in requested and record.owner.key == requested[package].owner.key
            for package, record in state.packages.items()
        )
        and all(variant.settling is None for variant in decided.claims.variants)
        and all(
            (trace := get_outcome_trace(outcome)) is not None and not has_template_dependencies(trace)
            for outcome in plan.outcomes
        )
    )


def _is_complete(plan: TargetPlan, state: TargetState) -> bool:
    """Return whether the next pass changes nothing if its inputs stay the same.

    This is the case if the current pass changed nothing, or only added commits to drafts.
    """
    if plan.previous_state == state and all(isinstance(action, KeepBranch) for action in plan.branch_actions):
        return not any(isinstance(outcome, Draft) or _should_withdraw(outcome) for outcome in plan.outcomes)
    return all(isinstance(action, PushCommits | KeepBranch) for action in plan.branch_actions) and all(
        isinstance(outcome, Draft) or (isinstance(outcome, Unchanged) and not outcome.should_withdraw)
        for outcome in plan.outcomes
    )


def _should_withdraw(outcome: PackageOutcome) -> bool:
    return isinstance(outcome, Unchanged) and outcome.should_withdraw


def _build_next_outcome(outcome: PackageOutcome, state: TargetState) -> PackageOutcome:
    if isinstance(outcome, Blocked):
        return outcome
    record = state.packages[outcome.variant.target.package]
    if isinstance(outcome, Unchanged):
        return replace(outcome, record=record)
    findings = tuple(parse_finding(finding) for finding in record.outcome["findings"])
    return Unchanged(outcome.variant, record, "drafted", findings=findings)
