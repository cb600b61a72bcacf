"""The result of `reconciler init`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from reconciler.krm.numbers import format_count
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.findings.formats import format_findings
from reconciler.output.plan.formats import format_plan_headline
from reconciler.output.plan.models import ChangeCounts, PlanResult


class WrittenFile(OutputModel):
    """A file that the command wrote. The path is relative to the folder of the config."""

    path: str


class ScaffoldSummary(ChangeCounts):
    """The folder, and the numbers of the first plan."""

    folder: str


class ScaffoldResult(CommandResult):
    """The result of `reconciler init`: the files of the new config, and the findings of its validation and plan."""

    kind: Literal["Scaffold"] = "Scaffold"
    items: tuple[WrittenFile, ...]
    findings: tuple[FindingEntry, ...]
    summary: ScaffoldSummary


def build_scaffold_result(
    folder: str, files: Iterable[str], validation: Iterable[FindingEntry], plan: PlanResult
) -> ScaffoldResult:
    """Return the result. A finding of both the validation and the plan is listed once."""
    return ScaffoldResult(
        metadata=create_cli_metadata(plan.metadata.config),
        items=tuple(WrittenFile(path=path) for path in files),
        findings=tuple(_deduplicate((*validation, *plan.findings))),
        summary=ScaffoldSummary(folder=folder, **plan.summary.model_dump()),
    )


def _deduplicate(findings: Iterable[FindingEntry]) -> Iterator[FindingEntry]:
    known: set[tuple[str, str, str]] = set()
    for entry in findings:
        key = (entry.code, entry.message, entry.object)
        if key not in known:
            known.add(key)
            yield entry


def format_scaffold_text(result: ScaffoldResult, plan: PlanResult) -> str:
    """Return the files, the findings, the summary of the plan, and the next step."""
    folder = result.summary.folder
    findings = [*format_findings(entry.to_finding() for entry in result.findings)]
    lines = [
        f"Wrote {format_count(len(result.items), 'file')} to {folder}:",
        *(f"  {item.path}" for item in result.items),
        "",
        *(["validate and plan:", *(f"  {line}" for line in findings), ""] if findings else []),
        format_plan_headline(plan),
        f"Next: read {folder}/README.md, then run `reconciler plan` in {folder}.",
    ]
    return "\n".join(lines)
