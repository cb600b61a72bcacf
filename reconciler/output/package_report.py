"""The report of a `reconciler pkg` command about one package, formatted as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.merge3.rules import Conflict
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import build_changes_data, compare_packages
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.json_data import drop_empty
from reconciler.output.text import format_count, format_value, to_one_line
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
ReportFields = Mapping[str, Any]


@dataclass(frozen=True)
class PackageReport:
    """The result of a `reconciler pkg` command: the files before and after, conflicts, findings and pipeline steps.

    Attributes:
        package: The name of the package.
        outcome: The result as one word, for the JSON output.
        headline: The result as one line of text.
        is_blocked: Whether the conflicts block the command, so that neither side of a conflict is used.
        extra_fields: Additional fields of the JSON output.
    """

    package: str
    outcome: str
    headline: str
    before: FileTree = field(default_factory=FileTree)
    after: FileTree = field(default_factory=FileTree)
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()
    steps: tuple[PipelineStep, ...] = ()
    is_blocked: bool = False
    extra_fields: ReportFields | None = None


def format_package_report(report: PackageReport, max_diff_lines: int = 0) -> str:
    """Return the report as text.

    Args:
        report: The report.
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
    """
    lines = [*_list_step_lines(report.steps), *format_findings(report.findings), to_one_line(report.headline)]
    changes = compare_packages(report.before, report.after)
    lines += [
        f"  {line}" for line in (*changes.format_summary_lines(_MAX_LINES), *changes.format_file_lines(_MAX_LINES))
    ]
    lines += [f"  {line}" for line in _list_conflict_lines(report)]
    diffs = "".join(diff for _, diff in _list_diffs(report, max_diff_lines))
    return "\n".join(lines) + "\n" + diffs


def format_package_report_json(report: PackageReport, max_diff_lines: int = 0) -> str:
    """Return the report as JSON, and omit empty fields."""
    data = {
        "package": report.package,
        "outcome": report.outcome,
        **(report.extra_fields or {}),
        "changes": drop_empty(build_changes_data(compare_packages(report.before, report.after))),
        "conflicts": [_build_conflict_data(conflict, report.is_blocked) for conflict in report.conflicts],
        "steps": [step.as_data() for step in report.steps],
        "findings": build_findings_data(report.findings),
        "diffs": [{"path": path, "diff": diff} for path, diff in _list_diffs(report, max_diff_lines)],
    }
    # Convert all unsupported values to text, because YAML has types that JSON does not have, for example dates.
    return json.dumps(drop_empty(data), indent=2, default=str) + "\n"


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
    return drop_empty({
        "image": step.image, "exec": step.exec, "stderr": stderr, "exitCode": step.exit_code, "results": results,
    })  # fmt: skip


def _list_diffs(report: PackageReport, max_lines: int) -> Iterable[tuple[str, str]]:
    return format_file_diffs(report.before, report.after, "", max_lines) if max_lines else ()


def _build_conflict_data(conflict: Conflict, is_blocked: bool) -> dict[str, Any]:
    return {**serialize_conflict(conflict), **({"chosen": "none"} if is_blocked else {})}


def _list_conflict_lines(report: PackageReport) -> Iterator[str]:
    for conflict in report.conflicts:
        data = _build_conflict_data(conflict, report.is_blocked)
        location = " ".join(data[part] for part in ("file", "resource", "pointer") if part in data)
        choice = _CHOICES[data["chosen"]]
        yield to_one_line(f"conflict: {location}: {_format_sides(data)}: {choice} (rule {data['rule']})")


def _format_sides(data: ReportFields) -> str:
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
