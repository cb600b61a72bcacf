"""The result of `reconciler report -o json`, built from the same report as the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from reconciler.krm.times import format_rfc3339
from reconciler.output.changes.data import FileDiff
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    MatrixEntry,
    PendingItem,
    PendingKind,
    ReportedChange,
    ReportedConflict,
    ReportedExplanation,
    ReportTarget,
)
from reconciler.output.status.result import StatusResult
from reconciler.planning.lifecycle.open_drafts import PackageState


class ReportPackageEntry(OutputModel):
    """A package on a cluster. `change` and `explanation` are the keys of other items."""

    package: str
    state: PackageState
    version: int = Field(default=0, description="The number of the published revision.")
    since: str = Field(default="", description="The date of the first commit with the current content.")
    conflict_count: int = Field(default=0, description="The number of conflicts in the open draft.")
    refusal_count: int = Field(default=0, description="The number of other reasons that block the publication.")
    notes: tuple[str, ...] = ()
    change: str = ""
    explanation: str = ""


class ReportClusterItem(OutputModel):
    """A cluster with its packages, or the error message if the cluster cannot be read."""

    type: Literal["cluster"]
    cluster: str
    labels: Mapping[str, str] = Field(default={})
    read_error: str = ""
    packages: tuple[ReportPackageEntry, ...]


class ReportPendingItem(OutputModel):
    """Work that is pending for the same reason on one or more targets (`CLUSTER/PACKAGE`)."""

    type: Literal["pending"]
    kind: PendingKind
    responsible: str = Field(description="The role of the people who handle the item.")
    message: str
    has_target_names: bool = Field(
        default=False, description="Whether the message contains names of the first target that differ on the others."
    )
    since: str = Field(default="", description="The earliest date of the work on all targets.")
    packages: tuple[str, ...]
    targets: tuple[str, ...]
    changes: tuple[str, ...] = Field(default=(), description="The keys of the changes of the drafts.")
    command: str = Field(description="The command to run next.")


class ReportConflictItem(OutputModel):
    """A conflict in open drafts. The text of a side without a value is `nothing`."""

    type: Literal["conflict"]
    package: str
    file: str = ""
    resource: str = ""
    pointer: str = ""
    base: str
    local: str
    upstream: str
    chosen: str
    rule: str
    targets: tuple[str, ...]


class ReportChangeItem(OutputModel):
    """An equal change of drafts on one or more targets. The texts are those of the first target."""

    type: Literal["change"]
    key: str
    package: str
    action: str
    owner: str = ""
    targets: tuple[str, ...]
    since: str = ""
    lines: tuple[str, ...] = Field(default=(), description="The changed fields and files.")
    causes: tuple[str, ...] = ()
    template_effects: tuple[str, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    command: str = Field(description="The command that shows the draft.")
    reproduce_command: str
    has_target_names: bool = False
    is_diff_omitted: bool = Field(default=False, description="Whether the diffs exceed the size limit of the report.")


class ReportFact(OutputModel):
    """A labeled text about a package, such as its owner."""

    label: str
    text: str


class ReportStep(OutputModel):
    """One step in the provenance of a value."""

    source: str = ""
    location: str = ""
    change: str


class ReportValue(OutputModel):
    """A field with the steps that set its value."""

    resource: str
    pointer: str
    steps: tuple[ReportStep, ...]


class ReportExplanationItem(OutputModel):
    """The inputs and the provenance of a package that is equal on one or more targets."""

    type: Literal["explanation"]
    key: str
    package: str
    targets: tuple[str, ...]
    facts: tuple[ReportFact, ...] = ()
    values: tuple[ReportValue, ...] = ()
    omitted_value_count: int = 0
    conflicts: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    command: str = Field(description="The command that explains the package.")
    has_target_names: bool = False


ReportItem = ReportClusterItem | ReportPendingItem | ReportConflictItem | ReportChangeItem | ReportExplanationItem


class ReportSummary(OutputModel):
    """The date of the newest commit, the numbers of packages by state, and the numbers of the last pass."""

    date: str = ""
    packages: Mapping[PackageState, int]
    status: Mapping[str, int] = Field(default={}, description="The totals of the status branch.")


class ReportResult(CommandResult):
    """The result of `reconciler report`. The findings are those of the status branch."""

    kind: Literal["Report"] = "Report"
    items: tuple[ReportItem, ...]
    findings: tuple[FindingEntry, ...]
    summary: ReportSummary


def build_report_result(report: FleetReport, status: StatusResult | None) -> ReportResult:
    """Return the result of a report.

    Args:
        report: The report.
        status: The status of the fleet after the last pass. None if it is unknown.
    """
    return ReportResult(
        metadata=create_cli_metadata(report.config),
        items=(
            *map(_build_cluster, report.rows),
            *map(_build_pending, report.pending_items),
            *map(_build_conflict, report.conflicts),
            *map(_build_change, report.changes),
            *map(_build_explanation, report.explanations),
        ),
        findings=status.findings if status else (),
        summary=ReportSummary(
            date=_format_date(report.seconds or None),
            packages=report.counts,
            status=status.summary.to_data() if status else {},
        ),
    )


def _format_date(seconds: int | None) -> str:
    return "" if seconds is None else format_rfc3339(seconds)


def _format_targets(targets: Iterable[ReportTarget]) -> tuple[str, ...]:
    return tuple(map(str, targets))


def _build_cluster(row: ClusterRow) -> ReportClusterItem:
    packages = tuple(map(_build_package, row.entries.values()))
    return ReportClusterItem(
        type="cluster", cluster=row.cluster, labels=row.labels, read_error=row.read_error, packages=packages
    )


def _build_package(entry: MatrixEntry) -> ReportPackageEntry:
    return ReportPackageEntry(
        package=entry.target.package,
        state=entry.state,
        version=entry.version,
        since=_format_date(entry.since),
        conflict_count=entry.conflict_count,
        refusal_count=entry.refusal_count,
        notes=entry.notes,
        change=entry.change_key,
        explanation=entry.explanation_key,
    )


def _build_pending(item: PendingItem) -> ReportPendingItem:
    return ReportPendingItem(
        type="pending",
        kind=item.kind,
        responsible=item.responsible,
        message=item.message,
        has_target_names=item.has_target_names,
        since=_format_date(item.since),
        packages=item.packages,
        targets=_format_targets(item.targets),
        changes=item.change_keys,
        command=item.format_command(item.targets[:1]),
    )


def _build_conflict(conflict: ReportedConflict) -> ReportConflictItem:
    return ReportConflictItem(**{**vars(conflict), "targets": _format_targets(conflict.targets)}, type="conflict")


def _build_change(change: ReportedChange) -> ReportChangeItem:
    return ReportChangeItem(
        type="change",
        key=change.key,
        package=change.package,
        action=change.action,
        owner=change.owner,
        targets=_format_targets(change.targets),
        since=_format_date(change.since),
        lines=change.summary_lines,
        causes=change.causes,
        template_effects=change.template_effects,
        diffs=tuple(FileDiff(path=path, diff=diff) for path, diff in change.diffs),
        command=change.show_command,
        reproduce_command=change.reproduce_command,
        has_target_names=change.has_target_names,
        is_diff_omitted=change.is_diff_omitted,
    )


def _build_explanation(explanation: ReportedExplanation) -> ReportExplanationItem:
    return ReportExplanationItem(
        type="explanation",
        key=explanation.key,
        package=explanation.package,
        targets=_format_targets(explanation.targets),
        facts=tuple(ReportFact(label=label, text=text) for label, text in explanation.facts),
        values=tuple(
            ReportValue(
                resource=value.resource,
                pointer=value.pointer,
                steps=tuple(ReportStep(**vars(step)) for step in value.steps),
            )
            for value in explanation.values
        ),
        omitted_value_count=explanation.omitted_value_count,
        conflicts=explanation.conflicts,
        children=explanation.children,
        command=explanation.explain_command,
        has_target_names=explanation.has_target_names,
    )
