"""Refs of a repository: loose and packed refs, without reftables."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.support.in_process_git.objects import UnsupportedError, read_text

_ID = re.compile(r"[0-9a-f]{40}\Z")
_SYMBOLIC = "ref: "


class RefStore:
    """The refs of one repository, read once. Changes write the loose refs.

    Attributes:
        symbolic: The targets of symbolic refs.
        malformed: The refs that are neither an ID nor a reference to another ref that exists.
    """

    def __init__(self, repository: Path) -> None:
        self._folder = str(repository)
        self.symbolic: dict[str, str] = {}
        self.malformed: set[str] = set()
        self._packed = self._read_packed()
        self._values = self._packed | dict(self._read_loose())
        for ref, target in list(self.symbolic.items()):
            if target in self._values and target not in self.symbolic:
                self._values[ref] = self._values[target]
            else:
                self.malformed.add(ref)
                del self._values[ref]

    @property
    def values(self) -> dict[str, str]:
        """All refs in the order of Git, each with the ID that it or its target has."""
        return dict(sorted(self._values.items(), key=lambda item: item[0].encode(errors="surrogateescape")))

    @property
    def head(self) -> str:
        """The target of HEAD, for example `refs/heads/main`, or the ID of a commit."""
        return read_text(f"{self._folder}/HEAD").strip().removeprefix(_SYMBOLIC)

    def apply(self, changes: dict[str, str | None]) -> None:
        """Set or delete refs. Refuse changes for which Git could report an error."""
        remaining = self._values.keys() - {ref for ref, value in changes.items() if value is None}
        created = {ref for ref, value in changes.items() if value is not None}
        folders = {folder for ref in remaining | created for folder in _list_folders(ref)}
        if created & folders or self.symbolic.keys() & changes.keys():
            raise UnsupportedError
        deleted = sorted(changes.keys() - created)
        if any(ref in self._packed for ref in deleted):
            self._remove_packed(deleted)
        for ref in deleted:
            self._delete(ref)
        for ref in sorted(created):
            self._write(ref, changes[ref] or "")

    def _write(self, ref: str, value: str) -> None:
        if self._values.get(ref) == value:
            return
        path = f"{self._folder}/{ref}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(path):
            _remove_empty_folders(path)
        with open(f"{path}.lock", "x", encoding="utf-8") as file:
            file.write(f"{value}\n")
        os.rename(f"{path}.lock", path)
        self._values[ref] = value

    def _delete(self, ref: str) -> None:
        path = f"{self._folder}/{ref}"
        if os.path.exists(path):
            os.unlink(path)
        self._values.pop(ref, None)
        # Git deletes empty folders, but keeps `refs/heads` and the other folders at this level.
        folder = os.path.dirname(ref)
        while folder.count("/") > 1:
            try:
                os.rmdir(f"{self._folder}/{folder}")
            except OSError:
                return
            folder = os.path.dirname(folder)

    def _read_packed(self) -> dict[str, str]:
        path = f"{self._folder}/packed-refs"
        if not os.path.exists(path):
            return {}
        rows = [line.split() for line in read_text(path).splitlines() if not line.startswith(("#", "^"))]
        return {ref: value for value, ref in rows}

    def _remove_packed(self, deleted: list[str]) -> None:
        path = f"{self._folder}/packed-refs"
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        kept, is_kept = [], True
        for line in lines:
            # A line with ^ contains the commit of the tag in the line before.
            is_kept = is_kept if line.startswith("^") else line.rstrip("\n").partition(" ")[2] not in deleted
            kept += [line] if is_kept or line.startswith("#") else []
        with open(f"{path}.lock", "x", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(kept)
        os.rename(f"{path}.lock", path)

    def _read_loose(self) -> list[tuple[str, str]]:
        found, pending = [], ["refs"]
        while pending:
            folder = pending.pop()
            try:
                entries = list(os.scandir(f"{self._folder}/{folder}"))
            except FileNotFoundError:
                continue
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if entry.is_dir():
                    pending.append(name)
                elif not name.endswith(".lock"):
                    found += self._read_ref(name)
        return found

    def _read_ref(self, ref: str) -> list[tuple[str, str]]:
        try:
            value = read_text(f"{self._folder}/{ref}").rstrip("\n")
        except FileNotFoundError:
            return []
        if value.startswith(_SYMBOLIC):
            self.symbolic[ref] = value.removeprefix(_SYMBOLIC)
        elif not _ID.match(value):
            self.malformed.add(ref)
        return [(ref, value)]


def _list_folders(ref: str) -> list[str]:
    parts = ref.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]


def _remove_empty_folders(path: str) -> None:
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError as error:
            raise UnsupportedError from error
