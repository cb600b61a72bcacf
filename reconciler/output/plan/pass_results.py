"""The results of `reconciler sync` and `reconciler render`, which act on a plan, and the text of a sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from reconciler.krm.numbers import format_count
from reconciler.output.causes import DraftAction, get_draft_action
from reconciler.output.entries import OwnerEntry, build_owner_entry
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry, build_finding_entries
from reconciler.output.findings.formats import format_findings
from reconciler.output.plan.formats import could_read_all, format_change_counts
from reconciler.output.plan.models import BlockedPackage, ChangeCounts
from reconciler.output.plan.overview import build_blocked_packages, count_changes
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.model.outcomes import Draft, Unchanged

_ID_LENGTH = 12


class SyncedDraft(OutputModel):
    """A draft branch that the pass wrote."""

    target: str
    branch: str
    head: str = Field(default="", description="The commit that was pushed. Absent if the push failed.")
    reason: str = Field(default="", description="The code of the finding about the failed push.")
    remote_head: str | None = Field(
        default=None, description="The head of the branch on the remote after a failed push."
    )
    has_remote_answered: bool = Field(
        default=True,
        description=(
            "Whether the remote responded after a failed push. If false, the current branches of the remote "
            "are unknown."
        ),
    )


class SyncSummary(ChangeCounts):
    """The numbers of packages, renders and pull requests of a pass."""

    pending_removals: int = Field(description="The number of removals that wait for a review or were rejected.")
    renders: int
    approved: int = Field(description="The number of packages that annotations approved.")
    pull_requests: int = Field(description="The number of opened pull requests.")
    is_skipped: bool = Field(description="Whether the pass was skipped, because no input had changed.")
    status_error: str = Field(default="", description="The error that prevented the push of the status.")


class SyncResult(CommandResult):
    """The result of `reconciler sync`."""

    kind: Literal["Sync"] = "Sync"
    items: tuple[SyncedDraft, ...]
    findings: tuple[FindingEntry, ...]
    summary: SyncSummary


def format_sync_text(result: SyncResult) -> str:
    """Return the result of a pass as text: the numbers of packages, the findings, and one line per draft branch."""
    summary = result.summary
    extra = ((summary.approved, "approved package"), (summary.pull_requests, "new pull request"))
    headline = format_change_counts("Sync", summary, is_complete=could_read_all(result.findings))
    parts = [headline, *(format_count(count, noun) for count, noun in extra if count)]
    lines = ["; ".join(parts), *format_findings(entry.to_finding() for entry in result.findings)]
    lines += [f"the status was not written: {summary.status_error}"] if summary.status_error else []
    return "\n".join([*lines, *_format_drafts(result)])


def _format_drafts(result: SyncResult) -> Iterator[str]:
    for draft in sorted(result.items, key=lambda draft: bool(draft.reason)):
        if not draft.reason:
            yield f"draft    {draft.branch} is at {draft.head[:_ID_LENGTH]}"
            continue
        if not draft.has_remote_answered:
            remote_state = "the state of the remote is unknown"
        elif draft.remote_head is None:
            remote_state = "the remote has no such branch"
        else:
            remote_state = f"on the remote, it is at {draft.remote_head[:_ID_LENGTH]}"
        yield f"draft    {draft.branch} was not pushed ({draft.reason}): {remote_state}"


class RenderedPackage(OutputModel):
    """A package in the output folder."""

    type: Literal["package"]
    target: str
    package: str
    path: str = Field(description="The path of the package in the output folder.")
    owner: OwnerEntry
    action: DraftAction | Literal["unchanged"] = Field(description="The effect of the draft on the package.")
    conflicts: int = Field(default=0, description="The number of conflicts with local changes.")
    unmet_gates: tuple[str, ...] = Field(default=(), description="The readiness gates that are not met.")


class RenderSummary(OutputModel):
    """The output folder of `reconciler render`, and the numbers of packages and errors."""

    folder: str = Field(description="The output folder.")
    packages: int
    targets: int = Field(description="The number of targets with packages.")
    conflicts: int
    blocked: int
    stalled: int
    held: int
    errors: int


class RenderResult(CommandResult):
    """The result of `reconciler render`. The files are in the output folder."""

    kind: Literal["Render"] = "Render"
    items: tuple[RenderedPackage | BlockedPackage, ...]
    findings: tuple[FindingEntry, ...]
    summary: RenderSummary


def build_render_result(plan: FleetPlan, folder: str) -> RenderResult:
    """Return the result of a render into a folder."""
    counts, packages = count_changes(plan), tuple(_list_rendered_packages(plan))
    return RenderResult(
        metadata=create_cli_metadata(plan.config_id),
        items=(*packages, *build_blocked_packages(plan)),
        findings=build_finding_entries(plan.list_findings()),
        summary=RenderSummary(
            folder=folder,
            packages=len(packages),
            targets=len({package.target for package in packages}),
            conflicts=counts.conflicts,
            blocked=counts.blocked,
            stalled=counts.stalled,
            held=counts.held,
            errors=counts.errors,
        ),
    )


def _list_rendered_packages(plan: FleetPlan) -> Iterator[RenderedPackage]:
    for target, outcome in plan.list_outcomes():
        draft = outcome if isinstance(outcome, Draft) else None
        if draft or (isinstance(outcome, Unchanged) and not outcome.should_withdraw):
            package = outcome.variant.target.package
            yield RenderedPackage(
                type="package",
                target=target.name,
                package=package,
                path=f"{target.name}/{target.get_package_path(package)}",
                owner=build_owner_entry(outcome.variant.owner),
                action=get_draft_action(draft) if draft else "unchanged",
                conflicts=len(draft.rendered.conflicts) if draft else 0,
                unmet_gates=draft.rendered.unmet_gates if draft else (),
            )
