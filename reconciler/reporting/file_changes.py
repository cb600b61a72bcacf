"""File changes: files whose change no object tells, by their paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.reporting.file_objects import is_kptfile
from reconciler.reporting.object_changes import ObjectChange, is_only_objects
from reconciler.reporting.values import one_line
from reconciler.snapshot.files import File, FileTree

FileHow = Literal["removed", "changed", "added", "moved", "reformatted", "made executable", "made not executable"]


@dataclass(frozen=True)
class FileChange:
    """One file. `was` is its former path when it only moved; `reformatted`: objects that say what they said.

    `blobs` are the content ids before and now, "" where there was no such file.
    """

    path: str
    how: FileHow
    was: str = ""
    blobs: tuple[str, str] = ("", "")

    def words(self) -> str:
        """Return the change on one line."""
        came = f" from {one_line(self.was)}" if self.was else ""
        return f"{one_line(self.path)}: {self.how}{came}"


def file_changes(old: FileTree, new: FileTree, objects: Sequence[ObjectChange]) -> tuple[FileChange, ...]:
    """Return the files of `old` and `new`, which differ all, that neither `objects` nor a Kptfile tells."""
    moves = _moves(old, new)
    touched = {path for change in objects for path in change.files}
    told = {path for path in touched if _only_objects(path, old, new)}
    left = {*old, *new} - told - set(moves.values())
    return tuple(_change(path, old, new, moves.get(path, "")) for path in sorted(left) if not is_kptfile(path))


def _moves(old: FileTree, new: FileTree) -> dict[str, str]:
    """Return the former path of each file that now stands elsewhere, byte for byte."""
    gone: dict[File, list[str]] = {}
    for path in sorted(old, reverse=True):
        if path not in new:
            gone.setdefault(old[path], []).append(path)
    came = [path for path in new if path not in old] if gone else []
    return {path: gone[new[path]].pop() for path in came if gone.get(new[path])}


def _only_objects(path: str, old: FileTree, new: FileTree) -> bool:
    return is_only_objects(path, old) and is_only_objects(path, new)


def _change(path: str, old: FileTree, new: FileTree, was: str) -> FileChange:
    before, after = old.get(was or path), new.get(path)
    blobs = before.id if before else "", after.id if after else ""
    return FileChange(path, "moved" if was else _how(path, old, new), was, blobs)


def _how(path: str, old: FileTree, new: FileTree) -> FileHow:
    before, after = old.get(path), new.get(path)
    if before is None or after is None:
        return "added" if after else "removed"
    if before.data == after.data:
        return "made executable" if after.executable else "made not executable"
    return "reformatted" if _only_objects(path, old, new) else "changed"
