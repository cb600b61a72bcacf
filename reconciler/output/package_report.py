"""The result of a `reconciler pkg` command about one package, and its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, InstanceOf, PlainSerializer

from reconciler.api.base import omit_empty
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, Severity
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.data import FileDiff, build_diffs
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.entries import ConflictEntry, build_conflict_entries
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry, build_finding_entries
from reconciler.output.findings.formats import format_findings
from reconciler.output.text import format_diffs, format_value, to_one_line
from reconciler.packages.pipeline import PipelineStep
from reconciler.planning.model.sources import serialize_conflict

_MAX_LINES = 50
_NO_VALUE = "(none)"
_SIDES = ("base", "local", "upstream")
_CHOICES = {
    "upstream": "the upstream side is used",
    "local": "the local side is kept",
    "none": "no side is chosen",
}
PackageOutcome = Literal["got", "updated", "planned", "unchanged", "rendered", "same", "different", "blocked", "failed"]
SerializedStep = Annotated[InstanceOf[PipelineStep], PlainSerializer(PipelineStep.as_data, return_type=dict[str, Any])]
"""The result of one function of a pipeline. JSON data contains a mapping."""


class UpstreamVersion(OutputModel):
    """A version of an upstream package."""

    repo: str = ""
    directory: str = ""
    ref: str = ""
    commit: str = ""


class PackageFailure(OutputModel):
    """The reason why a render failed."""

    kind: Literal["invalid", "failed", "unavailable"] = Field(
        description=(
            "The type of the failure: `invalid` (the input is invalid), `failed` (a function failed) or "
            "`unavailable` (a function cannot run)."
        )
    )
    package: str = Field(description="The path of the subpackage. `.` means the root package.")
    function: str = ""
    message: str


class PackageEntry(OutputModel):
    """A package in a local folder, with the changes of the command."""

    package: str = Field(description="The folder.")
    outcome: PackageOutcome
    headline: str = Field(description="The outcome as one sentence.")
    upstream: UpstreamVersion | None = Field(default=None, description="The upstream of the package after the command.")
    previous_upstream: UpstreamVersion | None = Field(
        default=None, description="The upstream before the update. For `pkg diff`, the compared upstream."
    )
    files: tuple[str, ...] = Field(default=(), description="The files of a new package.")
    failure: PackageFailure | None = None
    changes: PackageChanges = PackageChanges()
    conflicts: tuple[ConflictEntry, ...] = ()
    steps: tuple[SerializedStep, ...] = Field(
        default=(), description="The results of the functions, in the order in which the functions ran."
    )
    diffs: tuple[FileDiff, ...] = ()


class PackageSummary(OutputModel):
    """Numbers of changed files, conflicts and errors."""

    changed_files: int
    conflicts: int
    errors: int


class PackageResult(CommandResult):
    """The result of `reconciler pkg get`, `update`, `render` and `diff`. `items` contains one package."""

    kind: Literal["Package"] = "Package"
    items: tuple[PackageEntry, ...]
    findings: tuple[FindingEntry, ...]
    summary: PackageSummary


@dataclass(frozen=True)
class PackageReport:
    """The output of a `reconciler pkg` command: the files before and after, conflicts, findings and pipeline steps.

    Attributes:
        headline: The outcome as one line of text.
        is_blocked: Whether the conflicts block the command, so that neither side of a conflict is used.
        upstream, previous_upstream: The fields of the upstream, as in the Kptfile.
        has_new_package: Whether the result lists all files instead of the changes.
    """

    package: str
    outcome: PackageOutcome
    headline: str
    before: FileTree = field(default_factory=FileTree)
    after: FileTree = field(default_factory=FileTree)
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()
    steps: tuple[PipelineStep, ...] = ()
    is_blocked: bool = False
    upstream: Mapping[str, str] | None = None
    previous_upstream: Mapping[str, str] | None = None
    has_new_package: bool = False
    failure: PackageFailure | None = None


def build_package_result(report: PackageReport, max_diff_lines: int = 0) -> PackageResult:
    """Convert the report of a command to the result that the command writes as JSON.

    Args:
        report: The output of the command.
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
    """
    before = report.after if report.has_new_package else report.before
    findings = build_finding_entries(report.findings)
    conflicts = build_conflict_entries([serialize_conflict(conflict) for conflict in report.conflicts])
    if report.is_blocked:
        conflicts = tuple(conflict.model_copy(update={"chosen": "none"}) for conflict in conflicts)
    entry = PackageEntry(
        package=report.package,
        outcome=report.outcome,
        headline=report.headline,
        upstream=_build_version(report.upstream),
        previous_upstream=_build_version(report.previous_upstream),
        files=tuple(report.after) if report.has_new_package else (),
        failure=report.failure,
        changes=compare_packages(before, report.after),
        conflicts=conflicts,
        steps=report.steps,
        diffs=build_diffs(before, report.after, "", max_diff_lines),
    )
    changed = {path for path in {*before, *report.after} if before.get(path) != report.after.get(path)}
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    return PackageResult(
        metadata=create_cli_metadata(),
        items=(entry,),
        findings=findings,
        summary=PackageSummary(changed_files=len(changed), conflicts=len(conflicts), errors=errors),
    )


def _build_version(upstream: Mapping[str, str] | None) -> UpstreamVersion | None:
    if not upstream:
        return None
    return UpstreamVersion(**{name: upstream[name] for name in UpstreamVersion.model_fields if name in upstream})


def format_package_text(result: PackageResult, *, has_color: bool = False) -> str:
    """Return the result as text."""
    (entry,) = result.items
    lines = [*_list_step_lines(entry.steps), *format_findings(finding.to_finding() for finding in result.findings)]
    lines.append(to_one_line(entry.headline))
    changes = entry.changes
    lines += [
        f"  {line}" for line in (*changes.format_summary_lines(_MAX_LINES), *changes.format_file_lines(_MAX_LINES))
    ]
    lines += [f"  {_format_conflict(conflict)}" for conflict in entry.conflicts]
    return "\n".join(lines) + "\n" + format_diffs((diff.diff for diff in entry.diffs), has_color=has_color)


def build_function_results(steps: Sequence[PipelineStep]) -> dict[str, Any]:
    """Return the pipeline steps as a FunctionResultList, the kind that `kpt fn render --results-dir` writes."""
    return {
        "apiVersion": "kpt.dev/v1",
        "kind": "FunctionResultList",
        "metadata": {"name": "fnresults"},
        "exitCode": max((step.exit_code for step in steps), default=0),
        "items": [_build_step_result(step) for step in steps],
    }


def _build_step_result(step: PipelineStep) -> dict[str, Any]:
    stderr = "\n".join(filter(None, (step.error, step.log)))
    results = [result.as_data() for result in step.results]
    return omit_empty({
        "image": step.image, "exec": step.exec, "stderr": stderr, "exitCode": step.exit_code, "results": results,
    })  # fmt: skip


def _format_conflict(conflict: ConflictEntry) -> str:
    location = " ".join(filter(None, (conflict.file, conflict.resource, conflict.pointer)))
    sides = _format_sides(conflict.to_data())
    return to_one_line(f"conflict: {location}: {sides}: {_CHOICES[conflict.chosen]} (rule {conflict.rule})")


def _format_sides(data: Mapping[str, Any]) -> str:
    if data["kind"] in ("field", "element"):
        return ", ".join(f"{side} {format_value(data[side]) if side in data else _NO_VALUE}" for side in _SIDES)
    if "base" not in data:
        return f"{data['kind']} added locally, added upstream"
    local, upstream = ("changed" if side in data else "removed" for side in ("local", "upstream"))
    return f"{data['kind']} {local} locally, {upstream} upstream"


def _list_step_lines(steps: Iterable[PipelineStep]) -> Iterator[str]:
    for step in steps:
        package = f" in {step.package}" if step.package else ""
        result = f"failed with exit code {step.exit_code}" if step.exit_code else "passed"
        yield to_one_line(f"{step.stage.removesuffix('s')} {step.image or step.exec}{package}: {result}")
        yield from (f"  {line}" for line in _list_result_lines(step))


def _list_result_lines(step: PipelineStep) -> Iterator[str]:
    yield from (to_one_line(f"error: {line}") for line in filter(None, step.error.splitlines()))
    for result in step.results:
        parts = (result.file, _format_resource(result.resource), result.field)
        location = " ".join(part for part in parts if part)
        yield to_one_line(f"{result.severity}: {f'{location}: ' if location else ''}{result.message}")
    yield from (to_one_line(f"| {line}") for line in step.log.splitlines())


def _format_resource(resource: tuple[str, str, str, str] | None) -> str:
    return "/".join(part for part in resource[1:] if part) if resource else ""


def format_file_counts(subject: str, before: FileTree, after: FileTree) -> str:
    """Return a line such as `<subject>: 3 files changed, 1 file added` or `<subject>: no changes`."""
    added = sum(path not in before for path in after)
    removed = sum(path not in after for path in before)
    changed = sum(path in before and before[path] != file for path, file in after.items())
    counts = ((changed, "changed"), (added, "added"), (removed, "removed"))
    summary = ", ".join(f"{format_count(count, 'file')} {change}" for count, change in counts if count)
    return f"{subject}: {summary or 'no changes'}"
