"""Changes: what differs between two versions of a package, told by its resources rather than by its lines."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any

from reconciler.reporting.fields import ABSENT, FieldChange
from reconciler.reporting.file_changes import FileChange, file_changes
from reconciler.reporting.file_objects import is_kptfile
from reconciler.reporting.kptfile_changes import KptfileChange, kptfile_change
from reconciler.reporting.object_changes import ORDER, How, ObjectChange, object_changes
from reconciler.reporting.values import count, one_line
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId

_NAMED_ONE_BY_ONE = 3
# one change goes to many clusters, and is told on each; room for as many different ones as come together
_REMEMBERED_CHANGES = 128


@dataclass(frozen=True)
class Changes:
    """All that differs between two versions of a package; empty (and false) when nothing does."""

    objects: tuple[ObjectChange, ...] = ()
    kptfiles: tuple[KptfileChange, ...] = ()
    files: tuple[FileChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.objects or self.kptfiles or self.files)

    @property
    def sameness(self) -> list[Any]:
        """Data that is equal for equal changes, whichever packages they are made to."""
        return [
            [[*change.key, change.how, change.digest] for change in self.objects],
            [[kptfile.path, kptfile.upstream, *map(_told, kptfile.fields)] for kptfile in self.kptfiles],
            [[*vars(file).values()] for file in self.files],
        ]

    def summary_lines(self, limit: int = 10) -> tuple[str, ...]:
        """Return at most `limit` (from 1) lines on what changed in objects, the most important first."""
        return limited([line for how in ORDER for line in self._lines(how)], limit)

    def file_lines(self, limit: int = 10) -> tuple[str, ...]:
        """Return at most `limit` (from 1) lines on Kptfiles and on files that no object tells."""
        kptfiles = [change.words() for change in self.kptfiles]
        return limited([*kptfiles, *(change.words() for change in self.files)], limit)

    def _lines(self, how: How) -> list[str]:
        objects = [change for change in self.objects if change.how == how]
        if how == "changed" or len(objects) <= _NAMED_ONE_BY_ONE:
            return [change.words() for change in objects]
        kinds = Counter(one_line(change.key.kind) for change in objects)
        return [f"{count(len(objects), 'object')} {how}: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}"]


_remembered: OrderedDict[tuple[TreeId, TreeId], Changes] = OrderedDict()


def compare(before: FileTree, after: FileTree) -> Changes:
    """Return what differs between two versions of a package.

    Objects are the same by group, kind, namespace and name, in whatever file they stand. Only files that
    differ are read, equal bytes once; what cannot be read as KRM is told as a file.
    """
    known = _remembered.pop((before.id, after.id), None)
    return remember(before.id, after.id, known if known is not None else _compared(before, after))


def remember(before: TreeId, after: TreeId, changes: Changes) -> Changes:
    """Take note of what differs between two versions, as somebody else has found out; return it."""
    _remembered[before, after] = changes
    if len(_remembered) > _REMEMBERED_CHANGES:
        _remembered.popitem(last=False)
    return changes


def _compared(before: FileTree, after: FileTree) -> Changes:
    old, new = _differing(before, after), _differing(after, before)
    objects = object_changes(old, new)
    kptfiles = tuple(kptfile_change(path, old, new) for path in sorted({*old, *new}) if is_kptfile(path))
    return Changes(objects, kptfiles, file_changes(old, new, objects))


def limited(lines: list[str], limit: int) -> tuple[str, ...]:
    """Return the lines, or `limit` of them of which the last says how many are left out."""
    if len(lines) <= limit:
        return tuple(lines)
    return (*lines[: limit - 1], f"and {len(lines) - limit + 1} more")


def _told(change: FieldChange) -> list[Any]:
    return [change.where, *([] if value is ABSENT else [value] for value in (change.before, change.after))]


def _differing(files: FileTree, others: FileTree) -> FileTree:
    # nothing of a package that was not there before stands on the other side
    return FileTree({path: file for path, file in files.items() if others.get(path) != file}) if others else files
