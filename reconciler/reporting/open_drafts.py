"""Open drafts for the people who review them: a list in a few lines, and one draft whole, conflicts first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.krm.dates import rfc3339
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft, Reason
from reconciler.reporting.acted import reasons_data
from reconciler.reporting.changes import Changes, compare
from reconciler.reporting.conflicts import recorded_conflict_lines
from reconciler.reporting.diffs import file_diffs
from reconciler.reporting.markdown import code, folded
from reconciler.reporting.overrides import override_lines
from reconciler.reporting.package_status import inputs, owner_of, task_words, text, upstream
from reconciler.reporting.plan import changes_data
from reconciler.reporting.status_file import told
from reconciler.reporting.templates import child_lines, folded_repeats, repeat_lines
from reconciler.reporting.values import count, one_line
from reconciler.snapshot.files import FileTree

_CHANGES = 50
_NAMED_PATHS = 20
_SHORT = 12
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_LIFECYCLE = {"Draft": "Draft", "Proposed": "Proposed", "Stale": "Draft (it moved on since it was proposed)"}


@dataclass(frozen=True)
class Rejection:
    """Who rejected a draft as it stands, and why; the reason may be ""."""

    by: str
    reason: str

    def words(self) -> str:
        """Return it in a phrase."""
        return f"rejected by {self.by}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class PackageSheet:
    """A package of a draft with its files on both branches.

    As our commit says: what caused it, and what it does to pods and other objects by templates. `since` is the date of
    the first commit on the draft that is about it, in seconds since 1970; None where none has one.
    """

    package: DraftedPackage
    before: FileTree
    after: FileTree
    causes: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    since: int | None = None

    @cached_property
    def changes(self) -> Changes:
        """What the draft changes, by resources."""
        return compare(self.before, self.after)


@dataclass(frozen=True)
class Sheet:
    """A draft with what its history tells; `contents` are the packages that are to be shown whole.

    The base's date is in seconds since 1970, None where nothing was published yet; `behind` counts what the cluster
    branch has committed since, `people` are those who committed to the draft besides us.
    """

    draft: OpenDraft
    base_seconds: int | None
    behind: int
    people: tuple[str, ...] = ()
    rejection: Rejection | None = None
    contents: tuple[PackageSheet, ...] = ()

    @property
    def beside(self) -> tuple[str, ...]:
        """The paths that people offer beside the packages."""
        return tuple(one.path for one in self.draft.beside)


def drafts_text(sheets: Iterable[Sheet], now: int, unread: int = 0) -> str:
    """Return a few lines for each draft: its lifecycle, its changes and what blocks it; `now` is needed for ages.

    `unread` counts the destinations whose drafts are unknown.
    """
    listed = tuple(sheets)
    lines = [line for sheet in listed for line in (_headline(sheet, now), *(f"  {one}" for one in _listed(sheet)))]
    proposed = sum(sheet.draft.lifecycle == "Proposed" for sheet in listed)
    totals = [f"{count(len(listed), 'open draft')}, {proposed} proposed"] if listed else []
    totals += [f"the drafts of {count(unread, 'destination')} are unknown"] if unread else []
    return "\n".join(map(one_line, (*lines, "; ".join(totals) or "no draft is open")))


def _headline(sheet: Sheet, now: int) -> str:
    draft = sheet.draft
    parts = [_base(sheet, now), _edited(sheet), f"pull request {draft.request}" if draft.request else ""]
    parts += [sheet.rejection.words()] if sheet.rejection else []
    return f"{draft.destination.name}: {draft.branch} {_LIFECYCLE[draft.lifecycle]}; {'; '.join(filter(None, parts))}"


def _base(sheet: Sheet, now: int) -> str:
    age = "nothing published before" if sheet.base_seconds is None else f"base {_age(now - sheet.base_seconds)} old"
    return f"{age}, {count(sheet.behind, 'commit')} behind" if sheet.behind else age


def _edited(sheet: Sheet) -> str:
    if not sheet.draft.edited:
        return ""
    return f"edited by {', '.join(sheet.people)}" if sheet.people else "edited by people"


def _age(seconds: int) -> str:
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= unit:
            return count(seconds // unit, name)
    return "less than a minute"


def _listed(sheet: Sheet) -> Iterator[str]:
    for one in sheet.draft.packages:
        yield package_title(one)
        yield from (f"  {line}" for line in (*package_conflicts(one), *package_gates(sheet.draft, one)))
    yield from draft_lines(sheet)


def package_title(one: DraftedPackage) -> str:
    """Return a package with what the draft does to it, for whom."""
    what = "removed" if one.removed else task_words(one.status)
    owner = owner_of(one.status)
    return " ".join(filter(None, (one.package, what, f"({owner})" if owner else "", "edited" if one.edited else "")))


def package_conflicts(one: DraftedPackage) -> tuple[str, ...]:
    """Return a line for each conflict that is recorded of the package."""
    return tuple(f"conflict: {line}" for line in recorded_conflict_lines(list(one.conflicts)))


def package_gates(draft: OpenDraft, one: DraftedPackage) -> Iterator[str]:
    """Yield what keeps a package from being published, and what is only to be known."""
    held, told_only = ((*one.faults, *one.unmet), ()) if draft.destination.deployment else (one.faults, one.unmet)
    yield from (f"not to be published before: {_words(reason)}" for reason in held)
    yield from (f"warning: {_words(reason)}" for reason in told_only)


def _words(reason: Reason) -> str:
    return f"{reason.reason}: {reason.message}"


def draft_lines(sheet: Sheet) -> Iterator[str]:
    """Yield what is to be known of a draft as a whole."""
    clashes = [reason for reason in sheet.draft.refusals() if reason.reason == "BranchMoved"]
    yield from (f"not to be published before: {_words(reason)}" for reason in clashes)
    if sheet.beside:
        more = f" and {len(sheet.beside) - _NAMED_PATHS} more" if len(sheet.beside) > _NAMED_PATHS else ""
        yield f"beside the packages: {', '.join(sheet.beside[:_NAMED_PATHS])}{more}"


def drafts_data(sheets: Iterable[Sheet]) -> list[dict[str, Any]]:
    """Return drafts as JSON data; what is empty is left out."""
    return [_draft_data(sheet) for sheet in sheets]


def _draft_data(sheet: Sheet) -> dict[str, Any]:
    draft = sheet.draft
    return told({
        "repository": draft.destination.name, "branch": draft.branch, "head": draft.head,
        "lifecycle": "Draft" if draft.lifecycle == "Stale" else draft.lifecycle,
        "staleProposal": draft.proposed if draft.lifecycle == "Stale" else None,
        "base": told({"commit": draft.base, "date": _date(sheet.base_seconds)}) | {"behind": sheet.behind},
        "pullRequest": draft.request or None,
        "edited": draft.edited, "editedBy": list(sheet.people), "beside": list(sheet.beside),
        "rejected": told(vars(sheet.rejection)) if sheet.rejection else None,
        "refusals": reasons_data(draft.refusals()), "warnings": reasons_data(draft.warnings()),
        "packages": [_package_data(one) for one in draft.packages],
    })  # fmt: skip


def _date(seconds: int | None) -> str:
    return "" if seconds is None else rfc3339(seconds)


def _package_data(one: DraftedPackage) -> dict[str, Any]:
    ways = {side: text(upstream(one.status, side), "ref") for side in ("from", "to")}
    return told({
        "package": one.package, "task": "propose-delete" if one.removed else text(one.status, "task"),
        "owner": owner_of(one.status), "upstream": told(ways), "edited": one.edited,
        "labels": {} if one.removed else dict(one.record.labels),
        "annotations": {} if one.removed else dict(one.record.annotations),
        "conflicts": [dict(conflict) for conflict in one.conflicts],
        "conditions": [told(condition.as_data()) for condition in one.conditions],
        "unmetGates": reasons_data(one.unmet), "faults": reasons_data(one.faults),
    })  # fmt: skip


def sheet_text(sheet: Sheet, now: int, max_diff_lines: int) -> str:
    """Return a draft as plain text: of each package what is in the way, what changes, why, and its diff."""
    lines = [_headline(sheet, now), *(f"  {line}" for line in draft_lines(sheet))]
    parts = ["\n".join(map(one_line, lines)) + "\n"]
    for one in sheet.contents:
        told = [*_sheet_lines(sheet, one), *repeat_lines(one.package.status.get("templates"))]
        body = "\n".join(map(one_line, [package_title(one.package), *(f"  {line}" for line in told)]))
        parts.append(body + "\n" + "".join(diff for _, diff in _diffs(sheet, one, max_diff_lines)))
    return "\n".join(parts)


def sheet_markdown(sheet: Sheet, now: int, max_diff_lines: int) -> str:
    """Return a draft as Markdown; whatever people wrote stands as code."""
    sections = [f"# {code(one_line(_headline(sheet, now)))}"]
    sections += ["\n".join(f"- {code(one_line(line))}" for line in draft_lines(sheet))]
    for one in sheet.contents:
        items = [f"- {code(one_line(line))}" for line in _sheet_lines(sheet, one)]
        title = f"## {code(one_line(package_title(one.package)))}"
        more = [
            *folded_repeats(one.package.status.get("templates")), *folded(_diffs(sheet, one, max_diff_lines)),
        ]  # fmt: skip
        sections.append("\n".join([title, "", *items, *more]))
    return "\n\n".join(filter(None, sections)) + "\n"


def sheet_data(sheet: Sheet, max_diff_lines: int) -> dict[str, Any]:
    """Return a draft as JSON data, with changes and diffs of the packages that are shown."""
    shown = [
        told({
            "package": one.package.package, "causes": list(one.causes), "changes": told(changes_data(one.changes)),
            "overridden": list(override_lines(one.package.status.get("overrides"), _CHANGES)),
            "templates": list(one.templates),
            "children": list(child_lines(one.package.status.get("templates"), _CHANGES)),
            "diffs": [{"path": path, "diff": diff} for path, diff in _diffs(sheet, one, max_diff_lines)],
            "reproduce": list(reproduce_lines(sheet, one)),
        })
        for one in sheet.contents
    ]  # fmt: skip
    return {**_draft_data(sheet), "contents": shown}


def _sheet_lines(sheet: Sheet, one: PackageSheet) -> Iterator[str]:
    package = one.package
    yield from package_conflicts(package)
    yield from (f"templates: {line}" for line in one.templates)
    yield from package_gates(sheet.draft, package)
    yield from _metadata_lines(package)
    for condition in package.conditions:
        why = ": ".join(filter(None, (condition.reason, condition.message)))
        yield f"condition {condition.type} is {condition.status}{f': {why}' if why else ''}"
    yield from one.changes.summary_lines(_CHANGES)
    yield from one.changes.file_lines(_CHANGES)
    yield from (f"child: {line}" for line in child_lines(package.status.get("templates"), _CHANGES))
    yield from (f"overridden: {line}" for line in override_lines(package.status.get("overrides"), _CHANGES))
    yield from (f"why: {cause}" for cause in one.causes)
    yield from (f"reproduce: {line}" for line in reproduce_lines(sheet, one))


def _metadata_lines(one: DraftedPackage) -> Iterator[str]:
    """Yield the labels and annotations that the draft was created with."""
    for name, found in (("labels", one.record.labels), ("annotations", one.record.annotations)):
        if found and not one.removed:
            yield f"{name}: {', '.join(f'{key}={value}' for key, value in sorted(found.items()))}"


def reproduce_lines(sheet: Sheet, one: PackageSheet) -> Iterator[str]:
    """Yield how a reader comes to the same change."""
    draft = sheet.draft
    path = draft.destination.path(one.package.package)
    yield f"git diff {draft.published[:_SHORT]} {draft.head[:_SHORT]} -- {path}"
    config = text(inputs(one.package.status), "config")
    if config and not one.package.removed:
        at = f"with CONFIG at {config}" if config.startswith("tree:") else f"with CONFIG at commit {config[:_SHORT]}"
        yield f"reconciler render CONFIG --output OUT, {at}, writes OUT/{draft.destination.name}/{path}"


def _diffs(sheet: Sheet, one: PackageSheet, max_lines: int) -> tuple[tuple[str, str], ...]:
    folder = sheet.draft.destination.path(one.package.package)
    return tuple(file_diffs(one.before, one.after, folder, max_lines)) if max_lines else ()
