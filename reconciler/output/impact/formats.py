"""The impact of a config change as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconciler.krm.findings import Finding, Severity
from reconciler.krm.numbers import format_count
from reconciler.output.findings.formats import format_findings
from reconciler.output.impact.models import FindingStatus, ImpactChange, ImpactResult, RiskEntry
from reconciler.output.impact.overview import ImpactKind
from reconciler.output.plan.formats import format_change_counts
from reconciler.output.status.package_sections import format_children
from reconciler.output.text import (
    format_code,
    format_diffs,
    format_folded_diffs,
    format_names,
    list_first_lines,
    shorten,
    shorten_id,
    to_one_line,
)

COMMENT_MARKER = "<!-- reconciler impact -->"
"""The first line of the Markdown. A pipeline finds its own comment by this invisible line."""
MAX_COMMENT_CHARACTERS = 65_000
"""The maximum length of the Markdown. A comment on GitHub has at most 65,536 characters."""
_MAX_LINES = 20
_MAX_ROWS = 30
_MAX_LINE_CHARACTERS = 400
_MAX_TARGETS = 10
_MAX_CLUSTERS = 5
_MAX_CAUSES = 5
_MAX_FINDINGS_PER_CODE = 3
_KIND_LABELS: dict[ImpactKind, str] = {
    "removed": "proposed for removal",
    "blocked": "blocked",
    "changed": "changed",
    "new": "new",
    "unrendered": "no longer rendered",
    "orphaned": "orphaned",
    "kept": "removal canceled",
    "unblocked": "no longer blocked",
}
_LINE_LABELS = frozenset({"conflict", "templates", "child", "overridden", "blocks publication", "why", "on"})


def format_impact_text(result: ImpactResult, *, has_color: bool = False) -> str:
    """Return the impact as plain text: counts, risks, findings, config changes and changes of packages.

    Equal changes of several packages are shown once.

    Args:
        result: The impact.
        has_color: Whether diffs are colored for a terminal.
    """
    sections = [
        _format_headline(result),
        _format_section("Unknown", _format_unknown(result)),
        _format_section("Risks", (f"{risk.kind}: {risk.packages}: {risk.reason}" for risk in result.risks)),
        _format_section("New warnings", _format_by_code(_list_new_warnings(result))),
        _format_section("Fixed findings", _format_by_code(_list_findings(result, "fixed"))),
        _format_section("Config changes", (change.summary for change in result.config_changes)),
        *(_format_change_text(change, has_color=has_color) for change in result.changes),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def format_impact_markdown(result: ImpactResult) -> str:
    """Return the impact as Markdown for a comment. The Markdown begins with `COMMENT_MARKER`.

    User input is formatted as code. If the comment is too long, groups of changes are replaced by their number.
    """
    headline, config = _format_headline(result).split("\n")
    sections = [
        f"{COMMENT_MARKER}\n# {headline}\n\n{config}",
        _format_list("Unknown", _format_unknown(result)),
        _format_risk_table(result.risks),
        _format_list("New warnings", _format_by_code(_list_new_warnings(result))),
        _format_list("Fixed findings", _format_by_code(_list_findings(result, "fixed"))),
        _format_list("Config changes", [change.summary for change in result.config_changes]),
    ]
    changes = [_format_change_markdown(change) for change in result.changes]
    return _join_within_limit([section for section in sections if section], changes)


def _format_headline(result: ImpactResult) -> str:
    summary = result.summary
    parts = [format_change_counts("Impact", summary, is_complete=not summary.is_unknown)]
    parts += [_format_unknown_clusters(result)] if summary.is_unknown else []
    parts += [f"{format_count(summary.kept, 'removal')} canceled"] if summary.kept else []
    existing = summary.existing_errors
    parts += [f"{format_count(existing, 'error')} that existed before"] if existing else []
    return f"{'; '.join(parts)}\nConfig: {shorten_id(summary.base)} → {shorten_id(summary.head)}"


def _format_unknown_clusters(result: ImpactResult) -> str:
    names = result.summary.unknown_clusters
    if not names:
        return "the impact is unknown for objects without a cluster"
    count = format_count(len(names), "cluster")
    return f"the impact is unknown on {count} ({format_names(names, _MAX_CLUSTERS)})"


def _format_unknown(result: ImpactResult) -> list[str]:
    """Return the reasons why the impact is unknown, and the next step."""
    if not result.summary.is_unknown:
        return []
    next_step = "next step: fix these findings, and run the command again"
    return [*format_findings(_list_findings(result, "unknown")), next_step]


def _list_findings(result: ImpactResult, status: FindingStatus) -> list[Finding]:
    return [entry.to_finding() for entry in result.select_findings(status)]


def _list_new_warnings(result: ImpactResult) -> list[Finding]:
    """Return the new findings that are not errors. The list of risks contains the new errors."""
    return [finding for finding in _list_findings(result, "new") if finding.severity is not Severity.ERROR]


def _format_change_text(change: ImpactChange, *, has_color: bool) -> str:
    title = f"{_KIND_LABELS[change.kind]}: {change.location}"
    lines = "\n".join([title, *(f"  {line}" for line in _format_details(change))])
    return f"{lines}\n{format_diffs((diff.diff for diff in change.diffs), has_color=has_color)}"


def _format_change_markdown(change: ImpactChange) -> str:
    title = f"## {_KIND_LABELS[change.kind].capitalize()}: {format_code(change.location)}"
    items = [_format_item(line) for line in _format_details(change)]
    diffs = format_folded_diffs((diff.path, diff.diff) for diff in change.diffs)
    return "\n".join([title, "", *items, *diffs])


def _format_item(line: str) -> str:
    """Return a line as a Markdown list item. A known label at its start is plain text, and the rest is code."""
    label, colon, text = line.partition(": ")
    if colon and label in _LINE_LABELS:
        return f"- {label}: {format_code(shorten(text, _MAX_LINE_CHARACTERS))}"
    return f"- {format_code(shorten(line, _MAX_LINE_CHARACTERS))}"


def _format_details(change: ImpactChange) -> Iterator[str]:
    if change.blocked_reason:
        yield to_one_line(change.blocked_reason)
    yield from (f"conflict: {line}" for line in change.conflicts)
    if change.changes is None:
        yield "too large to compare"
    elif change.changes:
        yield from change.changes.format_summary_lines(_MAX_LINES)
        yield from change.changes.format_file_lines(_MAX_LINES)
    elif change.kind in ("changed", "new"):
        yield "no file differs"
    yield from (f"templates: {line}" for line in change.template_effects)
    yield from (f"child: {line}" for line in format_children(change.templates, _MAX_LINES))
    yield from (f"overridden: {line}" for line in change.overrides)
    yield from (f"blocks publication: {condition}" for condition in change.unmet_gates)
    yield from (f"why: {line}" for line in list_first_lines(change.causes, _MAX_CAUSES))
    if len(change.packages) > 1:
        yield f"on: {format_names(_list_names(change), _MAX_TARGETS)}"


def _format_by_code(findings: Iterable[Finding]) -> list[str]:
    """Format findings. Limit the number of lines per finding code, because a fleet can have thousands of findings."""
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    lines: list[str] = []
    for code, same_code in by_code.items():
        code_lines = format_findings(same_code)
        rest = len(code_lines) - _MAX_FINDINGS_PER_CODE
        lines += [*code_lines[:_MAX_FINDINGS_PER_CODE], *([f"and {rest} more of {code}"] if rest > 0 else [])]
    return lines


def _list_names(change: ImpactChange) -> Sequence[str]:
    is_one_package = len({package.package for package in change.packages}) == 1
    return [package.target or package.title if is_one_package else package.title for package in change.packages]


def _format_section(title: str, lines: Iterable[str]) -> str:
    indented = [f"  {line}" for line in lines]
    return "\n".join([title, *indented]) if indented else ""


def _format_list(title: str, lines: Sequence[str]) -> str:
    items = [f"- {format_code(shorten(line, _MAX_LINE_CHARACTERS))}" for line in lines[:_MAX_ROWS]]
    more = [f"- and {len(lines) - _MAX_ROWS} more"] if len(lines) > _MAX_ROWS else []
    return "\n".join([f"## {title}", "", *items, *more]) if items else ""


def _format_risk_table(risks: Sequence[RiskEntry]) -> str:
    if not risks:
        return ""
    rows = [
        f"| {risk.kind} | {_format_cell(risk.packages)} | {_format_cell(risk.reason)} |" for risk in risks[:_MAX_ROWS]
    ]
    more = [f"\nand {len(risks) - _MAX_ROWS} more"] if len(risks) > _MAX_ROWS else []
    return "\n".join(["## Risks", "", "| risk | where | reason |", "|---|---|---|", *rows, *more])


def _format_cell(text: str) -> str:
    # Escape vertical bars, because a vertical bar ends a table cell, even inside code.
    return format_code(shorten(text, _MAX_LINE_CHARACTERS)).replace("|", "\\|")


def _join_within_limit(sections: Sequence[str], groups: Sequence[str]) -> str:
    """Return the sections and as many groups as a comment can contain, with the number of the omitted groups."""
    space = MAX_COMMENT_CHARACTERS - sum(len(section) + 2 for section in sections) - _MAX_LINE_CHARACTERS
    included: list[str] = []
    for group in groups:
        space -= len(group) + 2
        if space < 0:
            break
        included.append(group)
    dropped = len(groups) - len(included)
    count = format_count(dropped, "more group")
    note = f"{count} of equal changes did not fit into this comment. Text and JSON output have all groups."
    return "\n\n".join([*sections, *included, *([note] if dropped else [])]) + "\n"
