"""The plan as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconciler.krm.numbers import format_count
from reconciler.output.changes.data import FileDiff
from reconciler.output.entries import format_conflict_entries
from reconciler.output.findings.entries import FindingEntry, build_finding_cause
from reconciler.output.findings.formats import group_root_causes
from reconciler.output.plan.models import (
    BlockedPackage,
    ChangeCounts,
    ConfigProposalEntry,
    NewTargetBranch,
    PlannedChange,
    PlannedRemoval,
    PlanResult,
)
from reconciler.output.plan.proposals import format_edit, format_proposal_title
from reconciler.output.release_effects import format_release_effects
from reconciler.output.status.package_sections import (
    format_children,
    format_folded_settings,
    format_overrides,
    format_settings_to_repeat,
    format_template_changes,
)
from reconciler.output.text import format_code, format_diffs, format_folded_diffs, format_names, to_one_line
from reconciler.planning.attribution.impact import UNREADABLE_CODES

_LINES_PER_CHANGE = 20
_MAX_TARGETS = 5
_REMOVAL_ACTIONS = {
    "proposed": "propose removal of",
    "declined": "keep",
    "withdrawn": "withdraw the draft of",
    "orphaned": "orphan",
    "recalled": "keep",
}


def format_plan_text(result: PlanResult, *, has_color: bool = False) -> str:
    """Return the plan as plain text: counts, findings, blocked items, removals, and changes with their diffs.

    Args:
        has_color: Whether diffs are colored for a terminal.
    """
    sections = [
        f"{format_plan_headline(result)}\nConfig: {result.metadata.config}",
        "\n".join(_format_findings(result)),
        _format_proposal_text(result.proposal, has_color=has_color),
        _format_new_branches(result.new_branches),
        "\n".join(
            line
            for removal in result.new_removals
            for line in (_format_removal_title(removal), f"  why: {to_one_line(removal.reason)}")
        ),
        *(_format_change_text(change, has_color=has_color) for change in result.changes),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def format_plan_without_changes(result: PlanResult) -> dict[str, str]:
    """Return a mapping from the names of three formats (text, Markdown, JSON) to the plan in this format.

    Return {} if the plan has changes or blocked packages.
    """
    if result.items:
        return {}
    return {"text": format_plan_text(result), "markdown": format_plan_markdown(result), "json": result.to_json()}


def format_plan_markdown(result: PlanResult) -> str:
    """Return the plan as Markdown. User input is formatted as code."""
    removals = (f"{_format_removal_title(removal)}: {to_one_line(removal.reason)}" for removal in result.new_removals)
    sections = [
        f"# {format_plan_headline(result)}\n\nConfig: `{result.metadata.config}`",
        _format_list("Findings", _format_findings(result)),
        _format_proposal_markdown(result.proposal),
        format_code(branches) if (branches := _format_new_branches(result.new_branches)) else "",
        _format_list("Removals", removals),
        *map(_format_change_markdown, result.changes),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def format_plan_headline(result: PlanResult) -> str:
    """Return the numbers of changed packages of a plan on one line."""
    is_complete = could_read_all(result.findings)
    headline = format_change_counts("Plan", result.summary, is_complete=is_complete)
    return headline if is_complete else f"{headline}; some files or repositories could not be read"


def could_read_all(findings: Iterable[FindingEntry]) -> bool:
    """Return whether no finding reports unreadable data, such as a repository that cannot be reached.

    If the result is False, the plan can be incomplete, even if it contains no changes.
    """
    return not any(finding.code in UNREADABLE_CODES for finding in findings)


def format_change_counts(title: str, counts: ChangeCounts, *, is_complete: bool = True) -> str:
    """Return the counts on one line, such as `Plan: 3 packages to install, 1 to delete on 9 clusters; 1 error`.

    Args:
        counts: The counts. A count of 0 is omitted.
        is_complete: Whether all inputs could be read.
    """
    numbers = (
        (counts.install, "to install"),
        (counts.update, "to update"),
        (counts.delete, "to delete"),
        (counts.withdraw, "to withdraw"),
        (counts.orphan, "to orphan"),
    )
    actions = [(number, action) for number, action in numbers if number]
    changes = "no changes" if is_complete else "no known changes"
    if actions:
        (first, action), *others = actions
        texts = [f"{format_count(first, 'package')} {action}", *(f"{number} {action}" for number, action in others)]
        noun = "cluster" if counts.clusters == counts.targets else "target"
        changes = f"{', '.join(texts)} on {format_count(counts.targets, noun)}"
    parts = [f"{title}: {changes}"]
    parts += [format_count(counts.conflicts, "conflict")] if counts.conflicts else []
    states = ((counts.blocked, "blocked"), (counts.stalled, "stalled"), (counts.held, "held"))
    parts += [f"{number} {state}" for number, state in states if number]
    parts += [format_count(counts.errors, "error")] if counts.errors else []
    return "; ".join([*parts, *([f"{counts.unchanged} unchanged"] if counts.unchanged else [])])


def _format_proposal_text(proposal: ConfigProposalEntry | None, *, has_color: bool) -> str:
    if proposal is None:
        return ""
    lines = "\n".join([format_proposal_title(proposal), *(f"  {format_edit(edit)}" for edit in proposal.edits)])
    return f"{lines}\n{_format_diffs(proposal.diffs, has_color=has_color)}"


def _format_proposal_markdown(proposal: ConfigProposalEntry | None) -> str:
    if proposal is None:
        return ""
    title = f"## {format_code(format_proposal_title(proposal))}"
    items = [f"- {format_code(format_edit(edit))}" for edit in proposal.edits]
    return "\n".join([title, "", *items, *format_folded_diffs(_list_diffs(proposal.diffs))])


def _format_new_branches(branches: Sequence[NewTargetBranch]) -> str:
    """Return the new target branches on one line, so that a person can detect a misspelled branch name.

    Return "" if there are no new branches.
    """
    if not branches:
        return ""
    names = format_names([f"{each.branch} ({each.target})" for each in branches], _MAX_TARGETS)
    return f"new target {'branch' if len(branches) == 1 else 'branches'}: {names}"


def _format_removal_title(removal: PlannedRemoval) -> str:
    return to_one_line(f"{_REMOVAL_ACTIONS[removal.state]} {removal.title} ({removal.owner.title})")


def _format_findings(result: PlanResult) -> Iterator[str]:
    """Yield each root cause. Below a root cause, indent its consequences and blocked items.

    Blocked items without an error come last, for example a package that cannot change because its draft is proposed.
    """
    groups = group_root_causes([entry.to_finding() for entry in result.findings])
    group_indexes = {
        build_finding_cause(finding): index for index, group in enumerate(groups) for finding in group.findings
    }
    blocked: dict[int, list[BlockedPackage]] = {}
    without_finding = []
    for item in result.blocked:
        if item.caused_by:
            blocked.setdefault(group_indexes[item.caused_by[0]], []).append(item)
        else:
            without_finding.append(item)
    for index, group in enumerate(groups):
        yield from group.lines
        yield from (f"  {line}" for line in _format_blocked_packages(blocked.get(index, ())))
    yield from map(_format_blocked_package, without_finding)


def _format_blocked_packages(items: Sequence[BlockedPackage]) -> Iterator[str]:
    for state in dict.fromkeys(item.state for item in items):
        names = [" ".join(filter(None, (item.title, f"({item.owner.title})"))) for item in items if item.state == state]
        yield to_one_line(f"{state}: {format_names(names, _MAX_TARGETS)}")


def _format_blocked_package(item: BlockedPackage) -> str:
    place = f" {item.title}" if item.title else ""
    return to_one_line(f"{item.state}{place} ({item.owner.title}): {item.reason}: {item.message}")


def _format_change_text(change: PlannedChange, *, has_color: bool) -> str:
    details = [*_format_details(change), *format_settings_to_repeat(change.templates)]
    lines = "\n".join([_format_change_title(change), *(f"  {line}" for line in details)])
    return f"{lines}\n{_format_diffs(change.diffs, has_color=has_color)}"


def _format_change_title(change: PlannedChange) -> str:
    first, version = change.packages[0], change.version if change.action != "re-render" else ""
    return to_one_line(" ".join(filter(None, (change.action, first.title, version, f"({first.owner.title})"))))


def _format_details(change: PlannedChange) -> Iterator[str]:
    yield from (f"conflict: {conflict}" for conflict in format_conflict_entries(change.conflicts))
    yield from (f"templates: {line}" for line in format_template_changes(change.template_changes, _LINES_PER_CHANGE))
    yield from change.changes.format_summary_lines(_LINES_PER_CHANGE)
    yield from change.changes.format_file_lines(_LINES_PER_CHANGE)
    yield from format_release_effects(change.release_effects, _LINES_PER_CHANGE)
    yield from (f"child: {line}" for line in format_children(change.templates, _LINES_PER_CHANGE))
    yield from (f"overridden: {line}" for line in format_overrides(change.overrides, _LINES_PER_CHANGE))
    yield from (f"why: {cause}" for cause in change.packages[0].causes)
    yield from (f"blocks publication: {condition}" for condition in change.unmet_gates)
    if others := [package.title for package in change.packages[1:]]:
        yield f"same change on {format_count(len(others), 'other target')}: {format_names(others, _MAX_TARGETS)}"


def _format_diffs(diffs: Iterable[FileDiff], *, has_color: bool) -> str:
    return format_diffs((diff.diff for diff in diffs), has_color=has_color)


def _list_diffs(diffs: Iterable[FileDiff]) -> Iterator[tuple[str, str]]:
    return ((diff.path, diff.diff) for diff in diffs)


def _format_list(title: str, lines: Iterable[str]) -> str:
    items = [_format_item(line) for line in lines]
    return "\n".join((f"## {title}", "", *items)) if items else ""


def _format_item(line: str) -> str:
    """Return a line as a Markdown list item. An indented line becomes an item of a nested list."""
    text = line.lstrip(" ")
    return f"{' ' * (len(line) - len(text))}- {format_code(text)}"


def _format_change_markdown(change: PlannedChange) -> str:
    items = [f"- {format_code(line)}" for line in _format_details(change)]
    diffs = format_folded_diffs(_list_diffs(change.diffs))
    title = f"## {format_code(_format_change_title(change))}"
    return "\n".join([title, "", *items, *format_folded_settings(change.templates), *diffs])
