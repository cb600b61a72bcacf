"""File trees: the files of a package or repository folder as immutable values, with Git's object ids and file modes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NewType

ObjectId = NewType("ObjectId", str)
CommitId = NewType("CommitId", str)
TreeId = NewType("TreeId", str)
BlobId = NewType("BlobId", str)

EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
DIRECTORY_MODE = "40000"
FILE_MODE = "100644"
EXECUTABLE_MODE = "100755"
SYMLINK_MODE = "120000"
# 2000-01-01, the date of commits without a date of their own. It makes equal input give equal commits.
FALLBACK_COMMIT_SECONDS = 946_684_800
SUBMODULE_MODE = "160000"


def _compute_object_id(kind: bytes, content: bytes) -> str:
    # Git identifies objects by SHA-1. Security does not depend on it.
    return hashlib.sha1(kind + b" %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def compute_blob_id(data: bytes) -> BlobId:
    """Return Git's id of a file with this content."""
    return BlobId(_compute_object_id(b"blob", data))


def compute_tree_id(entries: Iterable[tuple[str, str, str]]) -> TreeId:
    """Return Git's id of a tree of (mode, name, object id) entries, in any order.

    Git sorts names as bytes, and directories as if their names ended in "/".
    """

    def order(entry: tuple[str, str, str]) -> bytes:
        mode, name, _ = entry
        return _encode_name(name) + (b"/" if mode == DIRECTORY_MODE else b"")

    content = b"".join(
        _encode_name(f"{mode} {name}") + b"\0" + bytes.fromhex(object_id)
        for mode, name, object_id in sorted(entries, key=order)
    )
    return TreeId(_compute_object_id(b"tree", content))


def _encode_name(name: str) -> bytes:
    # Bytes that are not UTF-8 are preserved.
    return name.encode(errors="surrogateescape")


@dataclass(frozen=True)
class File:
    """One regular file: its content and whether it is executable."""

    data: bytes
    executable: bool = False

    @cached_property
    def id(self) -> BlobId:
        """The blob id of the content."""
        return compute_blob_id(self.data)

    @property
    def mode(self) -> str:
        """The Git file mode."""
        return EXECUTABLE_MODE if self.executable else FILE_MODE


@dataclass(frozen=True)
class SpecialEntry:
    """A symbolic link or a submodule.

    `id` is the id of the blob with the link's target, or the submodule's commit id.
    """

    mode: str
    id: ObjectId

    @property
    def kind(self) -> str:
        """The name of the kind of entry, for messages."""
        return "symbolic link" if self.mode == SYMLINK_MODE else "submodule"


class FileTree(Mapping[str, File]):
    """Regular files by path. Immutable.

    Paths are relative, sorted, and have "/" as separator.

    `special_entries` are the symbolic links and submodules of a branch. Upstream packages have none. The mapping does
    not contain them, so that no code reads them by mistake. They do count for `id` and for equality.
    """

    def __init__(
        self, files: Mapping[str, File] | None = None, special: Mapping[str, SpecialEntry] | None = None
    ) -> None:
        self._files = dict(sorted((files or {}).items()))
        self._special = dict(sorted((special or {}).items()))

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __contains__(self, path: object) -> bool:
        # Mapping.__contains__ raises and catches an error for every absent path.
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTree) and (self._files, self._special) == (other._files, other._special)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"FileTree({list(self._files)})"

    @property
    def special_entries(self) -> Mapping[str, SpecialEntry]:
        """The symbolic links and submodules, by path."""
        return MappingProxyType(self._special)

    @cached_property
    def id(self) -> TreeId:
        """The Git tree id of all entries. Trees with equal content have equal ids."""
        entries: dict[str, tuple[str, str]] = {path: (file.mode, file.id) for path, file in self._files.items()}
        return _compute_nested_tree_id(
            {**entries, **{path: (entry.mode, entry.id) for path, entry in self._special.items()}}
        )

    def with_special_entries(self, special: Mapping[str, SpecialEntry]) -> FileTree:
        """Return the same files with exactly these symbolic links and submodules."""
        return self if special == self._special else FileTree(self._files, special)

    def with_files(self, changes: Mapping[str, File | bytes]) -> FileTree:
        """Return the tree with files added or replaced. Bytes keep the mode of the file that they replace."""
        changed = dict(self._files)
        for path, change in changes.items():
            old = changed.get(path)
            changed[path] = change if isinstance(change, File) else File(change, old.executable if old else False)
        return FileTree(changed, self._special)

    def without_files(self, *paths: str) -> FileTree:
        """Return the tree without these files. Absent paths are ignored."""
        return FileTree({path: file for path, file in self._files.items() if path not in paths}, self._special)

    def subtree(self, folder: str) -> FileTree:
        """Return the files below a folder, with paths relative to it. "" is the whole tree."""
        if not folder:
            return self
        start = folder.rstrip("/") + "/"
        return FileTree(
            {path.removeprefix(start): file for path, file in self._files.items() if path.startswith(start)},
            {path.removeprefix(start): entry for path, entry in self._special.items() if path.startswith(start)},
        )


def _compute_nested_tree_id(blobs: Mapping[str, tuple[str, str]]) -> TreeId:
    entries: list[tuple[str, str, str]] = []
    folders: dict[str, dict[str, tuple[str, str]]] = {}
    for path, (mode, object_id) in blobs.items():
        name, slash, path_in_folder = path.partition("/")
        if slash:
            folders.setdefault(name, {})[path_in_folder] = (mode, object_id)
        else:
            entries.append((mode, name, object_id))
    entries += [(DIRECTORY_MODE, name, _compute_nested_tree_id(children)) for name, children in folders.items()]
    return compute_tree_id(entries)


if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def parse_ignore_file(content: bytes) -> GitIgnoreSpec:
    """Return the patterns of a `.krmignore` file, which has the syntax of `.gitignore`.

    The pattern library is imported on the first call, because most configs have no such file.
    """
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(content.decode("utf-8", "replace").splitlines())
