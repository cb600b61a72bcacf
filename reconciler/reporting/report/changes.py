"""Changes of a report: what drafts change, equal changes told once, with the diff of the first (porch 15.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote

from reconciler.krm.digest import digest
from reconciler.reporting.changes import Changes, compare
from reconciler.reporting.diffs import file_diffs
from reconciler.reporting.open_drafts import PackageSheet, Sheet, reproduce_lines
from reconciler.reporting.package_status import owner_of, task_words
from reconciler.reporting.report.alike import Own
from reconciler.reporting.report.fleet import Change, Place, earlier
from reconciler.reporting.review import sameness
from reconciler.snapshot.files import FileTree

_LINES = 50
# a reader opens a few; all in one file must still open, and whoever wants more has the command beside it
_DIFF_LINES = 40_000


@dataclass
class _Group:
    """Drafts with one change; all but `since`, `varies` and the places is that of the first."""

    place: Place
    folder: str
    before: FileTree
    after: FileTree
    sheet: PackageSheet
    reproduce: str
    literal: str
    since: int | None = None
    varies: bool = False
    places: list[Place] = field(default_factory=list)


class ChangeGroups:
    """Gathers drafts by what they change; nothing but the first of each is kept."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._known: dict[str, str] = {}

    def add(self, place: Place, sheet: Sheet, one: PackageSheet, own: Own) -> str:
        """Take a package of a draft in, and return the key of its change."""
        before, after = _changed(one.before, one.after), _changed(one.after, one.before)
        told = [place.package, owner_of(one.package.status).partition(" ")[0], task_words(one.package.status)]
        literal = digest([*told, before.id, after.id])
        key = self._known.get(literal) or self._group(told, before, after, own)
        self._known[literal] = key
        group = self._groups.get(key)
        if group is None:
            folder = sheet.draft.destination.path(place.package)
            reproduce = next(reproduce_lines(sheet, one))
            group = self._groups[key] = _Group(place, folder, before, after, one, reproduce, literal)
        group.places.append(place)
        group.varies = group.varies or group.literal != literal
        group.since = earlier(group.since, one.since)
        return key

    def _group(self, told: list[str], before: FileTree, after: FileTree, own: Own) -> str:
        """Return the key of a change: equal where the files are, but for the names of each cluster."""
        old, new = own.files_apart(before), own.files_apart(after)
        text = digest([*told, old.id, new.id])
        if text not in self._known:
            self._known[text] = digest([*told, sameness(compare(old, new).sameness, own.owner)])
        return self._known[text]

    def changes(self) -> tuple[Change, ...]:
        """Return every change, the one that most places get first, as long as there is room with its diff."""
        # sorting is stable: among equally large groups the one with the first place stays first
        ordered = sorted(self._groups.items(), key=lambda item: len(item[1].places), reverse=True)
        return tuple(_with_diffs(ordered))


def _changed(files: FileTree, others: FileTree) -> FileTree:
    return FileTree({path: file for path, file in files.items() if others.get(path) != file})


def _with_diffs(ordered: list[tuple[str, _Group]]) -> Iterator[Change]:
    room = _DIFF_LINES
    for key, group in ordered:
        diffs = tuple(file_diffs(group.before, group.after, group.folder)) if room > 0 else ()
        room -= sum(diff.count("\n") for _, diff in diffs)
        yield _change(key, group, compare(group.before, group.after), diffs, unshown=room <= 0 and not diffs)


def _change(key: str, group: _Group, changes: Changes, diffs: tuple[tuple[str, str], ...], *, unshown: bool) -> Change:
    one = group.sheet.package
    what = "remove" if one.removed else task_words(one.status) or "change"
    lines = (*changes.summary_lines(_LINES), *changes.file_lines(_LINES))
    return Change(
        key, group.place.package, what, owner_of(one.status), tuple(group.places), group.since, lines,
        group.sheet.causes, group.sheet.templates, diffs, f"reconciler show {quote(str(group.place))}", group.reproduce,
        group.varies, unshown,
    )  # fmt: skip
