"""Open drafts as text and Markdown: a list of all drafts, and one draft with all details."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.krm.numbers import format_count
from reconciler.krm.times import parse_rfc3339_seconds
from reconciler.output.entries import format_conflict_entries
from reconciler.output.release_effects import format_release_effects
from reconciler.output.review.models import DraftContent, DraftEntry, DraftListResult, DraftPackageEntry
from reconciler.output.status.package_sections import (
    format_children,
    format_folded_settings,
    format_overrides,
    format_settings_to_repeat,
)
from reconciler.output.text import format_code, format_diffs, format_folded_diffs, format_names, to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason

_MAX_LINES = 50
_MAX_PATHS = 20
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def format_draft_list_text(result: DraftListResult, current_seconds: int) -> str:
    """Return a few lines per draft: its lifecycle, its packages, and the reasons that block its publication.

    The last page of the list ends with a summary: the numbers of open drafts, proposed drafts and unreadable targets.

    Args:
        current_seconds: The current time in seconds since 1970, to compute ages.
    """
    lines = [f"error: {finding.message}" for finding in result.findings]
    for draft in result.items:
        lines.append(_format_headline(draft, current_seconds))
        lines += [f"  {line}" for line in _format_packages(draft)]
    summary = result.summary
    totals = [f"{format_count(summary.drafts, 'open draft')}, {summary.proposed} proposed"] if summary.drafts else []
    unread = format_count(summary.unreadable_targets, "target")
    totals += [f"the drafts of {unread} are unknown"] if summary.unreadable_targets else []
    lines += [] if result.next else ["; ".join(totals) or "no draft is open"]
    return "\n".join(map(to_one_line, lines))


def _format_headline(draft: DraftEntry, current_seconds: int) -> str:
    label = "Draft (changed after it was proposed)" if draft.stale_proposal else draft.lifecycle
    parts = [
        _format_base(draft, current_seconds),
        _format_editors(draft),
        f"pull request {draft.pull_request}" if draft.pull_request else "",
        draft.rejection.line if draft.rejection else "",
        f"approved by {format_names(draft.approved_by, _MAX_PATHS)}" if draft.approved_by else "",
    ]
    return f"{draft.target}: {draft.branch} {label}; {'; '.join(filter(None, parts))}"


def _format_base(draft: DraftEntry, current_seconds: int) -> str:
    date, behind = draft.base.date, draft.base.behind
    age = f"base {_format_age(current_seconds - parse_rfc3339_seconds(date))} old" if date else "nothing published yet"
    return f"{age}, {format_count(behind, 'commit')} behind" if behind else age


def _format_editors(draft: DraftEntry) -> str:
    if not draft.is_edited:
        return ""
    return f"edited by {', '.join(draft.edited_by)}" if draft.edited_by else "edited"


def _format_age(seconds: int) -> str:
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= unit:
            return format_count(seconds // unit, name)
    return "less than a minute"


def _format_packages(draft: DraftEntry) -> Iterator[str]:
    for package in draft.packages:
        yield format_package_title(package)
        yield from (f"  {line}" for line in (*format_package_conflicts(package), *format_package_gates(draft, package)))
    yield from format_draft_lines(draft)


def format_package_title(package: DraftPackageEntry) -> str:
    """Return the package, the action and the owner, e.g. `web update v1 → v2 (PackageVariant shop/web)`."""
    owner = to_one_line(package.owner.title)
    parts = (package.package, package.action, f"({owner})" if owner else "", "edited" if package.is_edited else "")
    return " ".join(filter(None, parts))


def format_package_conflicts(package: DraftPackageEntry) -> tuple[str, ...]:
    """Return one line for each recorded conflict of the package."""
    return tuple(f"conflict: {line}" for line in format_conflict_entries(package.conflicts))


def format_package_gates(draft: DraftEntry, package: DraftPackageEntry) -> Iterator[str]:
    """Yield the reasons that block publication of a package, and warnings.

    An unmet readiness gate blocks publication only in a deployment repository. In other repositories, it is a warning.
    """
    blocking = (*package.errors, *package.unmet_gates) if draft.is_deployment else package.errors
    warnings = () if draft.is_deployment else package.unmet_gates
    yield from (f"blocks publication: {_format_reason(reason)}" for reason in blocking)
    yield from (f"warning: {_format_reason(reason)}" for reason in warnings)


def _format_reason(reason: BlockingReason) -> str:
    return f"{reason.reason}: {reason.message}"


def format_draft_lines(draft: DraftEntry) -> Iterator[str]:
    """Yield the lines about a whole draft: files that the target branch changed too, and files outside packages."""
    collisions = [reason for reason in draft.refusals if reason.reason == "BranchMoved"]
    yield from (f"blocks publication: {_format_reason(reason)}" for reason in collisions)
    if draft.files_outside_packages:
        yield f"files outside of packages: {format_names(draft.files_outside_packages, _MAX_PATHS)}"


def format_draft_text(draft: DraftEntry, current_seconds: int, *, has_color: bool = False) -> str:
    """Return a draft as plain text. For each package, list its conflicts, gates, changes, causes and diff."""
    lines = [_format_headline(draft, current_seconds), *(f"  {line}" for line in format_draft_lines(draft))]
    parts = ["\n".join(map(to_one_line, lines)) + "\n"]
    for package, content in _list_contents(draft):
        settings = format_settings_to_repeat(content.templates)
        package_lines = [f"  {line}" for line in (*_format_package_lines(draft, package, content), *settings)]
        text = "\n".join(map(to_one_line, [format_package_title(package), *package_lines]))
        parts.append(f"{text}\n{format_diffs((diff.diff for diff in content.diffs), has_color=has_color)}")
    return "\n".join(parts)


def format_draft_markdown(draft: DraftEntry, current_seconds: int) -> str:
    """Return a draft as Markdown. User input is formatted as code."""
    sections = [f"# {format_code(to_one_line(_format_headline(draft, current_seconds)))}"]
    sections += ["\n".join(_format_items(format_draft_lines(draft)))]
    for package, content in _list_contents(draft):
        items = _format_items(_format_package_lines(draft, package, content))
        title = f"## {format_code(to_one_line(format_package_title(package)))}"
        settings = format_folded_settings(content.templates)
        diffs = format_folded_diffs((diff.path, diff.diff) for diff in content.diffs)
        sections.append("\n".join([title, "", *items, *settings, *diffs]))
    return "\n\n".join(filter(None, sections)) + "\n"


def _list_contents(draft: DraftEntry) -> Iterator[tuple[DraftPackageEntry, DraftContent]]:
    return ((package, package.content) for package in draft.packages if package.content)


def _format_items(lines: Iterable[str]) -> list[str]:
    return [f"- {format_code(to_one_line(line))}" for line in lines]


def _format_package_lines(draft: DraftEntry, package: DraftPackageEntry, content: DraftContent) -> Iterator[str]:
    yield from format_package_conflicts(package)
    yield from (f"templates: {line}" for line in content.template_effects)
    yield from format_package_gates(draft, package)
    yield from _format_metadata(package)
    for condition in package.conditions:
        reason = ": ".join(filter(None, (condition.reason, condition.message)))
        yield f"condition {condition.type} is {condition.status}{f': {reason}' if reason else ''}"
    yield from format_content_lines(content, _MAX_LINES)


def _format_metadata(package: DraftPackageEntry) -> Iterator[str]:
    """Yield the labels and annotations that the draft was created with."""
    for name, entries in (("labels", package.labels), ("annotations", package.annotations)):
        if entries:
            yield f"{name}: {', '.join(f'{key}={value}' for key, value in sorted(entries.items()))}"


def format_content_lines(content: DraftContent, limit: int) -> Iterator[str]:
    """Yield the changes of a package, at most `limit` of each type, their causes, and commands to reproduce them."""
    yield from content.changes.format_summary_lines(limit)
    yield from content.changes.format_file_lines(limit)
    yield from format_release_effects(content.release_effects, limit)
    yield from (f"child: {line}" for line in format_children(content.templates, limit))
    yield from (f"overridden: {line}" for line in format_overrides(content.overrides, limit))
    yield from (f"why: {cause}" for cause in content.causes)
    yield from (f"reproduce: {line}" for line in content.commands)
