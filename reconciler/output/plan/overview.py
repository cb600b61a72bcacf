"""The overview of a plan: groups of drafts with equal changes, blocked items, removals and findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.causes import format_causes
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.findings.formats import sort_findings
from reconciler.output.status.package_sections import (
    build_changed_children,
    format_conflicts,
    format_new_overrides,
    format_template_changes,
    format_unmet_gates,
)
from reconciler.output.status.removals import PackageRemoval, list_removals
from reconciler.output.text import format_object
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import Blocked, Draft, Unchanged
from reconciler.planning.model.targets import Target

BlockedKind = Literal["blocked", "stalled", "held"]
_KINDS: tuple[BlockedKind, ...] = ("blocked", "stalled", "held")
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

    @property
    def target_name(self) -> str:
        """The package as `<repository>/<package>`."""
        return str(self.draft.variant.target)

    @property
    def owner(self) -> str:
        """The owner as `Kind namespace/name`."""
        return format_object(self.draft.variant.owner.key)


@dataclass(frozen=True)
class BlockedItem:
    """One blocked package, stalled owner or held removal.

    Attributes:
        place: The package as `<repository>/<package>`. "" if the package is unknown.
        findings: The errors in the plan that explain why the item is blocked.
    """

    kind: BlockedKind
    place: str
    owner: str
    reason: str
    message: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class PlanOverview:
    """The plan, as all output formats show it. Drafts with equal changes form a group, the largest group first."""

    config: str
    groups: tuple[tuple[DraftOverview, ...], ...]
    unchanged: int
    blocked_items: tuple[BlockedItem, ...]
    findings: tuple[Finding, ...]
    all_removals: tuple[PackageRemoval, ...] = ()

    @property
    def removals(self) -> tuple[PackageRemoval, ...]:
        """The removals that this pass acts on. An earlier pass already proposed the other removals."""
        return tuple(removal for removal in self.all_removals if removal.has_action)

    @property
    def drafts(self) -> tuple[DraftOverview, ...]:
        """All drafts, in the order of their groups."""
        return tuple(draft for group in self.groups for draft in group)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of drafts, targets, removals and errors, and of blocked items by kind."""
        kinds = [item.kind for item in self.blocked_items]
        return {
            "drafts": len(self.drafts),
            "destinations": len({draft.target.key for draft in self.drafts}),
            "removals": len(self.removals),
            "unchanged": self.unchanged,
            **{kind: kinds.count(kind) for kind in _KINDS},
            "errors": len(select_errors(self.findings)),
        }


def build_plan_overview(plan: FleetPlan) -> PlanOverview:
    """Return the overview of a plan."""
    drafts = [draft for target_plan in plan.targets for draft in _build_drafts(target_plan)]
    unchanged = sum(isinstance(outcome, Unchanged) for _, outcome in plan.list_outcomes())
    findings = tuple(sort_findings(plan.list_findings()))
    blocked = tuple(sorted(_find_blocked(plan, _ListedErrors(findings)), key=_rank))
    return PlanOverview(plan.config_id, _group_drafts(drafts), unchanged, blocked, findings, list_removals(plan))


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
        overrides=format_new_overrides(draft, _OVERRIDES_PER_DRAFT),
        templates=format_template_changes(draft.rendered, _TEMPLATES_PER_DRAFT),
        children=tuple(build_changed_children(draft)),
    )


def _group_drafts(drafts: list[DraftOverview]) -> tuple[tuple[DraftOverview, ...], ...]:
    groups: dict[str, list[DraftOverview]] = {}
    for draft in sorted(drafts, key=lambda draft: draft.draft.variant.target):
        groups.setdefault(_build_group_key(draft), []).append(draft)
    # Keep groups of equal size in the order of their first targets. Python sorts are stable.
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
    ]
    return build_comparison_key(content, draft.draft.variant.owner.key.name)


def build_comparison_key(content: object, owner: str) -> str:
    """Return a text to compare changes. The text is equal for equal changes of different owners.

    The names of functions in a Kptfile contain the PackageVariant that added them. The text does not contain these
    names.
    """
    return json.dumps(content, default=str).replace(f"PackageVariant.{owner}.", "PackageVariant.*.")


def _rank(item: BlockedItem) -> tuple[int, str, str]:
    return _KINDS.index(item.kind), item.place, item.owner


class _ListedErrors:
    """Finds the errors of a plan for the errors of an outcome. Only the errors of a plan have file and line."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._errors = {_get_identity(error): error for error in select_errors(list(findings))}

    def find(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the errors of the plan that equal the findings, except for file and line."""
        return tuple(error for finding in findings if (error := self._errors.get(_get_identity(finding))))


def _get_identity(finding: Finding) -> tuple[str, str, str, str]:
    return finding.code, finding.message, finding.location.object, finding.location.package


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


def _find_blocked(plan: FleetPlan, errors: _ListedErrors) -> Iterator[BlockedItem]:
    for _, outcome in plan.list_outcomes():
        if isinstance(outcome, Blocked):
            last = outcome.conditions[-1]
            ready = next((condition for condition in outcome.conditions if condition.type == "Ready"), last)
            owner, findings = format_object(outcome.variant.owner.key), errors.find(outcome.findings)
            yield BlockedItem("blocked", str(outcome.variant.target), owner, ready.reason, ready.message, findings)
    for stalled in plan.controller_result.stalled:
        condition = _select_bad_condition(stalled.conditions)
        place, owner = str(stalled.target) if stalled.target else "", format_object(stalled.owner.key)
        findings = errors.find(stalled.findings)
        yield BlockedItem("stalled", place, owner, condition.reason, condition.message, findings)
    for target_plan in plan.targets:
        for held in target_plan.held:
            place, owner = f"{target_plan.target.name}/{held.package}", format_object(held.record.owner.key)
            findings = errors.find((held.finding,))
            yield BlockedItem("held", place, owner, held.finding.code, held.finding.message, findings)
