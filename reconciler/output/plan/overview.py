"""Builds the result of a plan: groups of drafts with equal changes, blocked packages, removals and findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.controllers.results import PackageOwner, PackageTarget
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.causes import format_causes, format_upstream_change, get_draft_action
from reconciler.output.changes.data import build_diffs
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.entries import build_conflict_entries, build_owner_entry
from reconciler.output.envelope import create_cli_metadata
from reconciler.output.findings.entries import FindingCause, build_finding_cause, build_finding_entries, sort_findings
from reconciler.output.plan.models import (
    BlockedPackage,
    BlockedState,
    ChangeCounts,
    NewTargetBranch,
    PlannedChange,
    PlannedPackage,
    PlannedRemoval,
    PlanResult,
)
from reconciler.output.plan.proposals import build_proposal_entry
from reconciler.output.release_effects import ReleaseEffect
from reconciler.output.status.package_sections import (
    build_changed_children,
    format_conflicts,
    format_overrides,
    format_template_changes,
    format_unmet_gates,
    list_new_overrides,
)
from reconciler.output.status.removals import PackageRemoval, list_removals
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.decide.target_plan import list_pushes
from reconciler.planning.model.outcomes import Blocked, Draft, Unchanged
from reconciler.planning.model.sources import serialize_conflict
from reconciler.planning.model.targets import Target

_STATES: tuple[BlockedState, ...] = ("blocked", "stalled", "held")
_OVERRIDES_PER_DRAFT = 20
_TEMPLATES_PER_DRAFT = 20


@dataclass(frozen=True)
class DraftOverview:
    """One draft of a plan.

    Attributes:
        waiting: The conditions that block the publication.
        overrides: The fields of a new package that override policies change. () for other packages.
        templates: The effects of changed templates on child resources and on their pods.
        children: The data of the children whose templates changed.
        effects: The effects of changed HelmReleases.
    """

    draft: Draft
    target: Target
    changes: PackageChanges
    causes: tuple[str, ...]
    waiting: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    children: tuple[Mapping[str, Any], ...] = ()
    effects: tuple[ReleaseEffect, ...] = ()

    @property
    def target_name(self) -> str:
        """The package as `<repository>/<package>`."""
        return str(self.draft.variant.target)

    @property
    def owner(self) -> str:
        """The owner as `Kind namespace/name`."""
        return str(self.draft.variant.owner.key)


def build_plan_result(
    plan: FleetPlan, max_diff_lines: int, effects: Mapping[PackageTarget, tuple[ReleaseEffect, ...]] | None = None
) -> PlanResult:
    """Return the result of a plan.

    Args:
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
        effects: The effects of changed HelmReleases.
    """
    drafts = [
        replace(draft, effects=(effects or {}).get(draft.draft.variant.target, ()))
        for target_plan in plan.targets
        for draft in _build_drafts(target_plan)
    ]
    proposal = build_proposal_entry(plan.proposal, max_diff_lines)
    return PlanResult(
        metadata=create_cli_metadata(plan.config_id),
        items=(
            *((proposal,) if proposal else ()),
            *_list_new_branches(plan),
            *map(_build_removal, list_removals(plan)),
            *(_build_change(group, max_diff_lines) for group in _group_drafts(drafts)),
            *build_blocked_packages(plan),
        ),
        findings=build_finding_entries(plan.list_findings()),
        summary=count_changes(plan),
    )


def _list_new_branches(plan: FleetPlan) -> Iterator[NewTargetBranch]:
    for target_plan in plan.targets:
        if target_plan.heads.is_absent and list_pushes(target_plan):
            target = target_plan.target
            yield NewTargetBranch(
                type="targetBranch", target=target.name, remote=target.display_url, branch=target.branch
            )


def count_changes(plan: FleetPlan) -> ChangeCounts:
    """Return the numbers of changes, conflicts and errors in a plan."""
    outcomes = plan.list_outcomes()
    drafts = [(target, outcome) for target, outcome in outcomes if isinstance(outcome, Draft)]
    removals = [removal for removal in list_removals(plan) if removal.has_action]
    actions = Counter(get_draft_action(draft) for _, draft in drafts)
    states = Counter(removal.removal.kind for removal in removals)
    targets = {
        target.key: target for target in (*(target for target, _ in drafts), *(each.target for each in removals))
    }
    return ChangeCounts(
        install=actions["install"],
        update=len(drafts) - actions["install"],
        delete=states["proposed"],
        withdraw=states["withdrawn"],
        orphan=states["orphaned"],
        unchanged=sum(isinstance(outcome, Unchanged) for _, outcome in plan.list_outcomes()),
        blocked=sum(isinstance(outcome, Blocked) for _, outcome in plan.list_outcomes()),
        stalled=len(plan.controller_result.stalled),
        held=sum(len(target_plan.held) for target_plan in plan.targets),
        conflicts=sum(len(draft.rendered.conflicts) for _, draft in drafts),
        errors=len(select_errors(sort_findings(plan.list_findings()))),
        targets=len(targets),
        clusters=sum(target.is_deployment for target in targets.values()),
    )


def _build_change(group: tuple[DraftOverview, ...], max_diff_lines: int) -> PlannedChange:
    first = group[0]
    draft, rendered = first.draft, first.draft.rendered
    folder = first.target.get_package_path(draft.variant.target.package)
    return PlannedChange(
        type="change",
        action=get_draft_action(draft),
        task=draft.task,
        version=format_upstream_change(draft),
        packages=tuple(
            PlannedPackage(
                target=member.draft.variant.target.repository,
                package=member.draft.variant.target.package,
                owner=build_owner_entry(member.draft.variant.owner),
                causes=member.causes,
            )
            for member in group
        ),
        conflicts=build_conflict_entries([serialize_conflict(conflict) for conflict in rendered.conflicts]),
        unmet_gates=first.waiting,
        changes=first.changes,
        overrides=list_new_overrides(draft),
        template_changes=rendered.template_changes,
        templates=first.children,
        release_effects=first.effects,
        diffs=build_diffs(draft.previous_files, rendered.files, folder, max_diff_lines),
    )


def _build_removal(removal: PackageRemoval) -> PlannedRemoval:
    outcome = removal.removal
    return PlannedRemoval(
        type="removal",
        state=outcome.kind,
        is_new=removal.has_action,
        target=removal.target.name,
        package=outcome.package,
        owner=build_owner_entry(outcome.owner),
        branch=removal.branch,
        reason=outcome.reason,
    )


def _build_drafts(plan: TargetPlan) -> Iterator[DraftOverview]:
    return (build_draft_overview(outcome, plan.target) for outcome in plan.outcomes if isinstance(outcome, Draft))


def build_draft_overview(draft: Draft, target: Target) -> DraftOverview:
    """Return the overview of a draft, compared with the version that the draft replaces."""
    return DraftOverview(
        draft,
        target,
        changes=compare_packages(draft.previous_files, draft.rendered.files),
        causes=format_causes(draft, target),
        waiting=format_unmet_gates(draft.rendered),
        conflicts=format_conflicts(draft.rendered.conflicts),
        overrides=format_overrides(list_new_overrides(draft), _OVERRIDES_PER_DRAFT),
        templates=format_template_changes(draft.rendered.template_changes, _TEMPLATES_PER_DRAFT),
        children=tuple(build_changed_children(draft)),
    )


def _group_drafts(drafts: list[DraftOverview]) -> tuple[tuple[DraftOverview, ...], ...]:
    groups: dict[str, list[DraftOverview]] = {}
    for draft in sorted(drafts, key=lambda draft: draft.draft.variant.target):
        groups.setdefault(_build_group_key(draft), []).append(draft)
    # Python sorts are stable. Therefore, groups of equal size stay in the order of their first targets.
    return tuple(tuple(group) for group in sorted(groups.values(), key=len, reverse=True))


def _build_group_key(draft: DraftOverview) -> str:
    content = [
        draft.draft.task,
        *draft.changes.comparison_key,
        draft.waiting,
        draft.conflicts,
        draft.overrides,
        draft.templates,
        draft.children,
        [[effect.changes.comparison_key, effect.unknown_reason] for effect in draft.effects],
    ]
    return build_comparison_key(content, draft.draft.variant.owner.key.name)


def build_comparison_key(content: object, owner: str) -> str:
    """Return a text to compare changes. The text is equal for equal changes of different owners.

    In a Kptfile, the name of a function contains the name of the PackageVariant that added the function. The text
    contains `*` instead of the name of the PackageVariant.
    """
    return json.dumps(content, default=str).replace(format_function_prefix(owner), format_function_prefix("*"))


def format_function_prefix(owner: str) -> str:
    """Return the start of the names of functions that a PackageVariant adds to a Kptfile."""
    return f"PackageVariant.{owner}."


class _ListedErrors:
    """Finds the errors of a plan that are equal to given errors. Only the errors of the plan have a file and line."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._errors = {_get_identity(error): error for error in select_errors(list(findings))}

    def build_causes(self, findings: Iterable[Finding]) -> tuple[FindingCause, ...]:
        """Return the errors in the plan that are equal to `findings`, apart from file and line."""
        errors = (self._errors.get(_get_identity(finding)) for finding in findings)
        return tuple(build_finding_cause(error) for error in errors if error)


def _get_identity(finding: Finding) -> tuple[str, str, str, str]:
    return finding.code, finding.message, finding.location.object, finding.location.package


def build_blocked_packages(plan: FleetPlan) -> tuple[BlockedPackage, ...]:
    """Return the blocked packages, then the stalled owners, then the held packages, each sorted."""
    errors = _ListedErrors(plan.list_findings())
    return tuple(sorted(_find_blocked(plan, errors), key=_rank))


def _rank(item: BlockedPackage) -> tuple[int, str, str]:
    return _STATES.index(item.state), item.title, item.owner.title


def _find_blocked(plan: FleetPlan, errors: _ListedErrors) -> Iterator[BlockedPackage]:
    for _, outcome in plan.list_outcomes():
        if isinstance(outcome, Blocked):
            last = outcome.conditions[-1]
            ready = next((condition for condition in outcome.conditions if condition.type == "Ready"), last)
            variant, causes = outcome.variant, errors.build_causes(outcome.findings)
            yield _build_blocked("blocked", variant.target, variant.owner, ready.reason, ready.message, causes)
    for stalled in plan.controller_result.stalled:
        condition, causes = _select_bad_condition(stalled.conditions), errors.build_causes(stalled.findings)
        yield _build_blocked("stalled", stalled.target, stalled.owner, condition.reason, condition.message, causes)
    for target_plan in plan.targets:
        for held in target_plan.held:
            target = PackageTarget("", target_plan.target.name, held.package)
            finding, causes = held.finding, errors.build_causes((held.finding,))
            yield _build_blocked("held", target, held.record.owner, finding.code, finding.message, causes)


def _build_blocked(
    state: BlockedState,
    target: PackageTarget | None,
    owner: PackageOwner,
    reason: str,
    message: str,
    causes: tuple[FindingCause, ...],
) -> BlockedPackage:
    return BlockedPackage(
        type="blocked",
        state=state,
        target=target.repository if target else "",
        package=target.package if target else "",
        owner=build_owner_entry(owner),
        reason=reason,
        message=message,
        caused_by=causes,
    )


def _select_bad_condition(conditions: tuple[Condition, ...]) -> Condition:
    """Return the condition with the reason why an object is stalled or not ready."""
    bad_statuses = {"Stalled": "True", "Ready": "False"}
    bad = (
        condition
        for condition_type, status in bad_statuses.items()
        for condition in conditions
        if (condition.type, condition.status) == (condition_type, status)
    )
    return next(bad, conditions[-1])
