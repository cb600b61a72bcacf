"""What a command did to one package, or would do: as text for people and as JSON data for tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.merge3.rules import Conflict
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import build_changes_data, compare_packages
from reconciler.output.data import drop_empty
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.text import format_count, format_value, to_one_line
from reconciler.packages.pipeline import PipelineStep
from reconciler.planning.model.sources import serialize_conflict

_LINES = 50
_NOTHING = "nothing"
ReportFields = Mapping[str, Any]


@dataclass(frozen=True)
class PackageReport:
    """What became of one package, `outcome` in a word: its files before and after, and all that there is to tell.

    `about` are more facts for the data. With `blocked` no side of a conflict was chosen.
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
    """Return the report as plain text, with at most `diff_lines` of each file's diff, 0 for none."""
    lines = [*_step_lines(report.steps), *format_findings(report.findings), to_one_line(report.headline)]
    changes = compare_packages(report.before, report.after)
    lines += [f"  {line}" for line in (*changes.format_summary_lines(_LINES), *changes.format_file_lines(_LINES))]
    lines += [f"  {line}" for line in _conflict_lines(report)]
    diffs = "".join(diff for _, diff in _diffs(report, max_diff_lines))
    return "\n".join(lines) + "\n" + diffs


def format_package_report_json(report: PackageReport, max_diff_lines: int = 0) -> str:
    """Return the report as JSON; what is empty is left out."""
    data = {
        "package": report.package,
        "outcome": report.outcome,
        **(report.extra_fields or {}),
        "changes": drop_empty(build_changes_data(compare_packages(report.before, report.after))),
        "conflicts": [_conflict(one, report.is_blocked) for one in report.conflicts],
        "steps": [step.as_data() for step in report.steps],
        "findings": build_findings_data(report.findings),
        "diffs": [{"path": path, "diff": diff} for path, diff in _diffs(report, max_diff_lines)],
    }
    # whatever YAML could hold becomes what JSON can
    return json.dumps(drop_empty(data), indent=2, default=str) + "\n"


def build_function_results(steps: Sequence[PipelineStep]) -> dict[str, Any]:
    """Return the steps as a FunctionResultList, the file that a results folder is given (kpt.md 12)."""
    return {
        "apiVersion": "kpt.dev/v1",
        "kind": "FunctionResultList",
        "metadata": {"name": "fnresults"},
        "exitCode": max((step.exit_code for step in steps), default=0),
        "items": [_result(step) for step in steps],
    }


def _result(step: PipelineStep) -> dict[str, Any]:
    words = {"image": step.image, "exec": step.exec, "stderr": "\n".join(filter(None, (step.error, step.log)))}
    return drop_empty({**words, "exitCode": step.exit_code, "results": [result.as_data() for result in step.results]})


def _diffs(report: PackageReport, lines: int) -> Iterable[tuple[str, str]]:
    return format_file_diffs(report.before, report.after, "", lines) if lines else ()


def _conflict(conflict: Conflict, blocked: bool) -> dict[str, Any]:
    return {**serialize_conflict(conflict), **({"chosen": "none"} if blocked else {})}


def _conflict_lines(report: PackageReport) -> Iterator[str]:
    for conflict in report.conflicts:
        data = _conflict(conflict, report.is_blocked)
        place = " ".join(data[part] for part in ("file", "resource", "pointer") if part in data)
        yield to_one_line(f"conflict: {place}: {_sides(data)}: {_CHOSEN[data['chosen']]} ({data['rule']})")


_CHOSEN = {"upstream": "upstream wins", "local": "local stays", "none": "nothing is chosen"}


def _sides(data: ReportFields) -> str:
    if data["kind"] in ("field", "element"):
        return ", ".join(f"{side} {format_value(data[side]) if side in data else _NOTHING}" for side in _SIDES)
    here, upstream = ("changed" if side in data else "removed" for side in ("local", "upstream"))
    verb = here if "base" in data else "added"
    return f"{data['kind']} {verb} locally, {upstream if 'base' in data else 'added'} upstream"


_SIDES = ("base", "local", "upstream")


def _step_lines(steps: Iterable[PipelineStep]) -> Iterator[str]:
    for step in steps:
        where = f" in {step.package}" if step.package else ""
        ended = f"failed with {step.exit_code}" if step.exit_code else "passed"
        yield to_one_line(f"{step.stage.removesuffix('s')} {step.image or step.exec}{where}: {ended}")
        yield from (f"  {line}" for line in _result_lines(step))


def _result_lines(step: PipelineStep) -> Iterator[str]:
    yield from (to_one_line(f"error: {line}") for line in filter(None, step.error.splitlines()))
    for result in step.results:
        place = " ".join(part for part in (result.file, _object(result.resource), result.field) if part)
        yield to_one_line(f"{result.severity}: {f'{place}: ' if place else ''}{result.message}")
    yield from (to_one_line(f"| {line}") for line in step.log.splitlines())


def _object(resource: tuple[str, str, str, str] | None) -> str:
    return "/".join(part for part in resource[1:] if part) if resource else ""


def format_file_counts(verb: str, before: FileTree, after: FileTree) -> str:
    """Return "<verb>: 3 files changed, 1 added", or that nothing changed."""
    added = sum(path not in before for path in after)
    removed = sum(path not in after for path in before)
    changed = sum(path in before and before[path] != file for path, file in after.items())
    parts = [(changed, "changed"), (added, "added"), (removed, "removed")]
    words = ", ".join(f"{format_count(number, 'file')} {what}" for number, what in parts if number)
    return f"{verb}: {words or 'nothing to change'}"
