"""Open drafts as text, Markdown and JSON data: a list of all drafts, and one draft with all details."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import PackageChanges, build_changes_data, compare_packages
from reconciler.output.json_data import drop_empty
from reconciler.output.review.action_results import build_reasons_data
from reconciler.output.status.package_sections import (
    format_children,
    format_folded_settings,
    format_overrides,
    format_recorded_conflicts,
    format_recorded_owner,
    format_settings_to_repeat,
    format_task,
    read_inputs,
    read_text,
    read_upstream,
)
from reconciler.output.text import format_code, format_count, format_folded_diffs, format_names, to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedPackage, OpenDraft

_MAX_LINES = 50
_MAX_PATHS = 20
_COMMIT_CHARACTERS = 12
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_LIFECYCLE_LABELS = {"Draft": "Draft", "Proposed": "Proposed", "Stale": "Draft (changed after it was proposed)"}


@dataclass(frozen=True)
class Rejection:
    """The rejection of the current version of a draft. The reason can be ""."""

    by: str
    reason: str

    def format_line(self) -> str:
        """Return the rejection as a phrase."""
        return f"rejected by {self.by}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class DraftPackageDetails:
    """A package of a draft, with its files on the target branch and on the draft branch.

    Attributes:
        before: The files on the target branch.
        after: The files on the draft branch.
        causes: The causes of the draft, from the message of the draft commit.
        templates: The effects of template changes, from the message of the draft commit.
        since: The date of the first draft commit for this package, in seconds since 1970. None if the date is unknown.
    """

    package: DraftedPackage
    before: FileTree
    after: FileTree
    causes: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    since: int | None = None

    @cached_property
    def changes(self) -> PackageChanges:
        """The differences between the target branch and the draft branch."""
        return compare_packages(self.before, self.after)


@dataclass(frozen=True)
class DraftDetails:
    """A draft with data from its Git history.

    Attributes:
        base_seconds: The date of the base commit, in seconds since 1970. None if nothing is published yet.
        behind_count: The number of commits on the target branch after the base commit.
        editors: The authors of commits on the draft branch, without the reconciler.
        packages: The packages to show with all details.
    """

    draft: OpenDraft
    base_seconds: int | None
    behind_count: int
    editors: tuple[str, ...] = ()
    rejection: Rejection | None = None
    packages: tuple[DraftPackageDetails, ...] = ()

    @property
    def extra_paths(self) -> tuple[str, ...]:
        """The paths of files outside packages that have local changes on the draft branch."""
        return tuple(file.path for file in self.draft.files_outside_packages)


def format_drafts_text(drafts: Iterable[DraftDetails], current_seconds: int, unread_count: int = 0) -> str:
    """Return a few lines per draft: its lifecycle, its packages, and the reasons that block its publication.

    Args:
        drafts: The drafts.
        current_seconds: The current time in seconds since 1970, to compute ages.
        unread_count: The number of targets whose drafts are unknown.
    """
    listed = tuple(drafts)
    lines = [
        line
        for details in listed
        for line in (
            _format_headline(details, current_seconds),
            *(f"  {detail}" for detail in _format_packages(details)),
        )
    ]
    proposed = sum(details.draft.lifecycle == "Proposed" for details in listed)
    totals = [f"{format_count(len(listed), 'open draft')}, {proposed} proposed"] if listed else []
    totals += [f"the drafts of {format_count(unread_count, 'target')} are unknown"] if unread_count else []
    return "\n".join(map(to_one_line, (*lines, "; ".join(totals) or "no draft is open")))


def _format_headline(details: DraftDetails, current_seconds: int) -> str:
    draft = details.draft
    parts = [
        _format_base(details, current_seconds),
        _format_editors(details),
        f"pull request {draft.pull_request_number}" if draft.pull_request_number else "",
        details.rejection.format_line() if details.rejection else "",
    ]
    label = _LIFECYCLE_LABELS[draft.lifecycle]
    return f"{draft.target.name}: {draft.branch} {label}; {'; '.join(filter(None, parts))}"


def _format_base(details: DraftDetails, current_seconds: int) -> str:
    seconds, behind = details.base_seconds, details.behind_count
    base = "nothing published yet" if seconds is None else f"base {_format_age(current_seconds - seconds)} old"
    return f"{base}, {format_count(behind, 'commit')} behind" if behind else base


def _format_editors(details: DraftDetails) -> str:
    if not details.draft.is_edited:
        return ""
    return f"edited by {', '.join(details.editors)}" if details.editors else "edited"


def _format_age(seconds: int) -> str:
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= unit:
            return format_count(seconds // unit, name)
    return "less than a minute"


def _format_packages(details: DraftDetails) -> Iterator[str]:
    for package in details.draft.packages:
        yield format_package_title(package)
        lines = (*format_package_conflicts(package), *format_package_gates(details.draft, package))
        yield from (f"  {line}" for line in lines)
    yield from format_draft_lines(details)


def format_package_title(package: DraftedPackage) -> str:
    """Return the package, the task of the draft and the owner, e.g. `web update v1 → v2 (PackageVariant shop/web)`."""
    result = "removed" if package.is_removed else format_task(package.status)
    owner = format_recorded_owner(package.status)
    parts = (package.package, result, f"({owner})" if owner else "", "edited" if package.is_edited else "")
    return " ".join(filter(None, parts))


def format_package_conflicts(package: DraftedPackage) -> tuple[str, ...]:
    """Return one line for each recorded conflict of the package."""
    return tuple(f"conflict: {line}" for line in format_recorded_conflicts(list(package.conflicts)))


def format_package_gates(draft: OpenDraft, package: DraftedPackage) -> Iterator[str]:
    """Yield the reasons that block publication of a package, and warnings.

    An unmet readiness gate blocks publication only in a deployment repository. In other repositories, it is a warning.
    """
    is_deployment = draft.target.is_deployment
    blocking = (*package.errors, *package.unmet_gates) if is_deployment else package.errors
    warnings = () if is_deployment else package.unmet_gates
    yield from (f"blocks publication: {_format_reason(reason)}" for reason in blocking)
    yield from (f"warning: {_format_reason(reason)}" for reason in warnings)


def _format_reason(reason: BlockingReason) -> str:
    return f"{reason.reason}: {reason.message}"


def format_draft_lines(details: DraftDetails) -> Iterator[str]:
    """Yield the lines about a whole draft: files that the target branch changed too, and files outside packages."""
    collisions = [reason for reason in details.draft.list_refusals() if reason.reason == "BranchMoved"]
    yield from (f"blocks publication: {_format_reason(reason)}" for reason in collisions)
    if details.extra_paths:
        yield f"files outside of packages: {format_names(details.extra_paths, _MAX_PATHS)}"


def build_drafts_data(drafts: Iterable[DraftDetails]) -> list[dict[str, Any]]:
    """Return the drafts as JSON data, and omit empty fields."""
    return [_build_summary_data(details) for details in drafts]


def _build_summary_data(details: DraftDetails) -> dict[str, Any]:
    draft = details.draft
    base = drop_empty({"commit": draft.base, "date": _format_date(details.base_seconds)})
    return drop_empty({
        "repository": draft.target.name, "branch": draft.branch, "head": draft.head,
        "lifecycle": "Draft" if draft.lifecycle == "Stale" else draft.lifecycle,
        "staleProposal": draft.proposed_head if draft.lifecycle == "Stale" else None,
        "base": base | {"behind": details.behind_count},
        "pullRequest": draft.pull_request_number or None,
        "edited": draft.is_edited, "editedBy": list(details.editors), "beside": list(details.extra_paths),
        "rejected": drop_empty(vars(details.rejection)) if details.rejection else None,
        "refusals": build_reasons_data(draft.list_refusals()), "warnings": build_reasons_data(draft.list_warnings()),
        "packages": [_build_package_data(package) for package in draft.packages],
    })  # fmt: skip


def _format_date(seconds: int | None) -> str:
    return "" if seconds is None else format_rfc3339(seconds)


def _build_package_data(package: DraftedPackage) -> dict[str, Any]:
    refs = {side: read_text(read_upstream(package.status, side), "ref") for side in ("from", "to")}
    return drop_empty({
        "package": package.package,
        "task": "propose-delete" if package.is_removed else read_text(package.status, "task"),
        "owner": format_recorded_owner(package.status), "upstream": drop_empty(refs), "edited": package.is_edited,
        "labels": {} if package.is_removed else dict(package.record.labels),
        "annotations": {} if package.is_removed else dict(package.record.annotations),
        "conflicts": [dict(conflict) for conflict in package.conflicts],
        "conditions": [drop_empty(condition.as_data()) for condition in package.conditions],
        "unmetGates": build_reasons_data(package.unmet_gates), "faults": build_reasons_data(package.errors),
    })  # fmt: skip


def format_draft_text(details: DraftDetails, current_seconds: int, max_diff_lines: int) -> str:
    """Return a draft as plain text. For each package, list its conflicts, gates, changes, causes and diff."""
    lines = [_format_headline(details, current_seconds), *(f"  {line}" for line in format_draft_lines(details))]
    parts = ["\n".join(map(to_one_line, lines)) + "\n"]
    for package in details.packages:
        settings = format_settings_to_repeat(package.package.status.get("templates"))
        package_lines = [f"  {line}" for line in (*_format_package_lines(details, package), *settings)]
        text = "\n".join(map(to_one_line, [format_package_title(package.package), *package_lines]))
        parts.append(text + "\n" + "".join(diff for _, diff in _format_diffs(details, package, max_diff_lines)))
    return "\n".join(parts)


def format_draft_markdown(details: DraftDetails, current_seconds: int, max_diff_lines: int) -> str:
    """Return a draft as Markdown. User input is formatted as code."""
    sections = [f"# {format_code(to_one_line(_format_headline(details, current_seconds)))}"]
    sections += ["\n".join(f"- {format_code(to_one_line(line))}" for line in format_draft_lines(details))]
    for package in details.packages:
        items = [f"- {format_code(to_one_line(line))}" for line in _format_package_lines(details, package)]
        title = f"## {format_code(to_one_line(format_package_title(package.package)))}"
        settings = format_folded_settings(package.package.status.get("templates"))
        diffs = format_folded_diffs(_format_diffs(details, package, max_diff_lines))
        sections.append("\n".join([title, "", *items, *settings, *diffs]))
    return "\n\n".join(filter(None, sections)) + "\n"


def build_draft_data(details: DraftDetails, max_diff_lines: int) -> dict[str, Any]:
    """Return a draft as JSON data, with the changes and diffs of the packages in `details.packages`."""
    contents = [_build_content_data(details, package, max_diff_lines) for package in details.packages]
    return {**_build_summary_data(details), "contents": contents}


def _build_content_data(details: DraftDetails, package: DraftPackageDetails, max_diff_lines: int) -> dict[str, Any]:
    status, diffs = package.package.status, _format_diffs(details, package, max_diff_lines)
    return drop_empty({
        "package": package.package.package, "causes": list(package.causes),
        "changes": drop_empty(build_changes_data(package.changes)),
        "overridden": list(format_overrides(status.get("overrides"), _MAX_LINES)),
        "templates": list(package.templates), "children": list(format_children(status.get("templates"), _MAX_LINES)),
        "diffs": [{"path": path, "diff": diff} for path, diff in diffs],
        "reproduce": list(format_reproduce_commands(details, package)),
    })  # fmt: skip


def _format_package_lines(details: DraftDetails, content: DraftPackageDetails) -> Iterator[str]:
    package = content.package
    yield from format_package_conflicts(package)
    yield from (f"templates: {line}" for line in content.templates)
    yield from format_package_gates(details.draft, package)
    yield from _format_metadata(package)
    for condition in package.conditions:
        reason = ": ".join(filter(None, (condition.reason, condition.message)))
        yield f"condition {condition.type} is {condition.status}{f': {reason}' if reason else ''}"
    yield from content.changes.format_summary_lines(_MAX_LINES)
    yield from content.changes.format_file_lines(_MAX_LINES)
    yield from (f"child: {line}" for line in format_children(package.status.get("templates"), _MAX_LINES))
    yield from (f"overridden: {line}" for line in format_overrides(package.status.get("overrides"), _MAX_LINES))
    yield from (f"why: {cause}" for cause in content.causes)
    yield from (f"reproduce: {line}" for line in format_reproduce_commands(details, content))


def _format_metadata(package: DraftedPackage) -> Iterator[str]:
    """Yield the labels and annotations that the draft was created with."""
    for name, entries in (("labels", package.record.labels), ("annotations", package.record.annotations)):
        if entries and not package.is_removed:
            yield f"{name}: {', '.join(f'{key}={value}' for key, value in sorted(entries.items()))}"


def format_reproduce_commands(details: DraftDetails, package: DraftPackageDetails) -> Iterator[str]:
    """Yield the commands with which a person can show the change again and render the package again."""
    draft = details.draft
    path = draft.target.get_package_path(package.package.package)
    published, head = draft.published_head[:_COMMIT_CHARACTERS], draft.head[:_COMMIT_CHARACTERS]
    yield f"git diff {published} {head} -- {path}"
    config = read_text(read_inputs(package.package.status), "config")
    if config and not package.package.is_removed:
        version = config if config.startswith("tree:") else f"commit {config[:_COMMIT_CHARACTERS]}"
        output = f"OUT/{draft.target.name}/{path}"
        yield f"reconciler render CONFIG --output OUT, with CONFIG at {version}, writes {output}"


def _format_diffs(details: DraftDetails, package: DraftPackageDetails, max_lines: int) -> tuple[tuple[str, str], ...]:
    folder = details.draft.target.get_package_path(package.package.package)
    return tuple(format_file_diffs(package.before, package.after, folder, max_lines)) if max_lines else ()
