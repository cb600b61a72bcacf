"""The result of `reconciler report -o json`, built from the same report as the HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from reconciler.output.envelope import CommandResult, OutputModel, Timestamp, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    PendingItem,
    ReportedChange,
    ReportedConflict,
    ReportedExplanation,
)
from reconciler.planning.lifecycle.open_drafts import PackageState


class ReportItem(OutputModel):
    """An item of the report. `type` is the name of the field that contains the data of the item, e.g. `cluster`."""

    type: Literal["cluster", "pending", "conflict", "change", "explanation"]
    cluster: ClusterRow | None = None
    pending: PendingItem | None = None
    conflict: ReportedConflict | None = None
    change: ReportedChange | None = None
    explanation: ReportedExplanation | None = None
    command: str = Field(default="", description="The command to run next for the pending work on the first target.")


class ReportSummary(OutputModel):
    """The date of the newest commit, the number of packages in each state, and the counters of the last pass."""

    date: Timestamp | None = None
    packages: Mapping[PackageState, int]
    status: Mapping[str, int] = Field(
        default={}, description="The numbers of the last pass, as in summary.yaml on the status branch."
    )


class ReportResult(CommandResult):
    """The result of `reconciler report`. The findings are those of the status branch."""

    kind: Literal["Report"] = "Report"
    items: tuple[ReportItem, ...]
    findings: tuple[FindingEntry, ...]
    summary: ReportSummary


def build_report_result(report: FleetReport) -> ReportResult:
    """Return the result of a report."""
    status = report.status
    return ReportResult(
        metadata=create_cli_metadata(report.index.config),
        items=tuple(_list_items(report)),
        findings=status.findings if status else (),
        summary=ReportSummary(
            date=report.seconds or None,
            packages=report.counts,
            status=status.summary.to_data() if status else {},
        ),
    )


def _list_items(report: FleetReport) -> Iterator[ReportItem]:
    yield from (ReportItem(type="cluster", cluster=row) for row in report.rows)
    for item in report.pending_items:
        yield ReportItem(type="pending", pending=item, command=item.format_command(item.targets[:1]))
    yield from (ReportItem(type="conflict", conflict=conflict) for conflict in report.conflicts)
    yield from (ReportItem(type="change", change=change) for change in report.changes)
    yield from (ReportItem(type="explanation", explanation=explanation) for explanation in report.explanations)
