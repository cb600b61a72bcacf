"""File trees: the files of a folder as immutable values, with the object ids and file modes of Git."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NewType

from reconciler.lazy_dataclasses import dataclass

ObjectId = NewType("ObjectId", str)
CommitId = NewType("CommitId", str)
TreeId = NewType("TreeId", str)
BlobId = NewType("BlobId", str)

EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
DIRECTORY_MODE = "40000"
FILE_MODE = "100644"
EXECUTABLE_MODE = "100755"
REGULAR_FILE_MODES = frozenset({FILE_MODE, EXECUTABLE_MODE})
SYMLINK_MODE = "120000"
# 2000-01-01 in UTC: the date of all commits for which no other date is known. This date is constant, so that equal
# content gives equal commit ids.
FALLBACK_COMMIT_SECONDS = 946_684_800
SUBMODULE_MODE = "160000"


def _compute_object_id(kind: bytes, content: bytes) -> str:
    # Use SHA-1, because Git identifies objects by SHA-1 digests. The digest has no security function here.
    return hashlib.sha1(kind + b" %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def compute_blob_id(data: bytes) -> BlobId:
    """Return the Git object id of a blob with the content `data`."""
    return BlobId(_compute_object_id(b"blob", data))


def compute_tree_id(entries: Iterable[tuple[str, str, str]]) -> TreeId:
    """Return the Git object id of the tree with these entries.

    Args:
        entries: Tuples of file mode, name and object id, in any order. They are sorted as in Git: by the bytes of the
            name, with "/" after the name of a directory.
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
    # File names in Git are bytes. "surrogateescape" preserves bytes that are not valid UTF-8.
    return name.encode(errors="surrogateescape")


@dataclass(frozen=True)
class File:
    """The content of one regular file, and whether the file is executable."""

    data: bytes
    executable: bool = False

    @cached_property
    def id(self) -> BlobId:
        """The Git blob id of the content."""
        return compute_blob_id(self.data)

    @property
    def mode(self) -> str:
        """The Git file mode: "100755" for an executable file, and "100644" for any other file."""
        return EXECUTABLE_MODE if self.executable else FILE_MODE


@dataclass(frozen=True)
class SpecialEntry:
    """A symbolic link or a submodule in a Git tree.

    The attribute `id` is the blob id of a symbolic link, or the commit id of a submodule.
    """

    mode: str
    id: ObjectId

    @property
    def kind(self) -> str:
        """The kind of this entry as a text for messages: "symbolic link" or "submodule"."""
        return "symbolic link" if self.mode == SYMLINK_MODE else "submodule"


class FileTree(Mapping[str, File]):
    """An immutable mapping from paths to regular files.

    Paths are relative and sorted. Their separator is "/".

    `special_entries` contains the symbolic links and submodules of a branch. The mapping does not contain these
    entries, so that no code reads them by mistake. The tree id and the comparison of trees include them.
    """

    def __init__(
        self, files: Mapping[str, File] | None = None, special: Mapping[str, SpecialEntry] | None = None
    ) -> None:
        self._files = dict(sorted((files or {}).items()))
        self._special = dict(sorted((special or {}).items()))

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __contains__(self, path: object) -> bool:
        # Override Mapping.__contains__, because it is slow: it raises and catches a KeyError for each absent path.
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTree) and (self._files, self._special) == (other._files, other._special)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Do not derive the hash from the tree id. The id is slow to compute, and most trees between two steps of a
        # render do not need an id.
        return hash((tuple(self._files.items()), tuple(self._special.items())))

    def __getstate__(self) -> dict[str, object]:
        # Omit the hash, because the same content has a different hash in each process.
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    def __repr__(self) -> str:
        return f"FileTree({list(self._files)})"

    @property
    def special_entries(self) -> Mapping[str, SpecialEntry]:
        """The symbolic links and submodules, by path."""
        return MappingProxyType(self._special)

    @cached_property
    def id(self) -> TreeId:
        """The Git tree id of the regular files and special entries. Trees with equal content have equal ids."""
        entries: dict[str, tuple[str, str]] = {path: (file.mode, file.id) for path, file in self._files.items()}
        return _compute_nested_tree_id(
            {**entries, **{path: (entry.mode, entry.id) for path, entry in self._special.items()}}
        )

    @cached_property
    def byte_count(self) -> int:
        """The number of bytes in all regular files."""
        return sum(len(file.data) for file in self._files.values())

    def with_special_entries(self, special: Mapping[str, SpecialEntry]) -> FileTree:
        """Return a tree with the same regular files, and with `special` as its only symbolic links and submodules."""
        return self if special == self._special else FileTree(self._files, special)

    def with_files(self, changes: Mapping[str, File | bytes]) -> FileTree:
        """Return a tree in which the files in `changes` are added or replaced.

        If a change has the type `bytes`, the file keeps its mode. A new file is then not executable. If no file
        changes, return this tree, so that its hash and its id are not computed again.
        """
        changed = dict(self._files)
        for path, change in changes.items():
            old = changed.get(path)
            changed[path] = change if isinstance(change, File) else File(change, old.executable if old else False)
        return self if changed == self._files else FileTree(changed, self._special)

    def without_files(self, *paths: str) -> FileTree:
        """Return a tree without the files at `paths`. Paths that do not exist are ignored."""
        return FileTree({path: file for path, file in self._files.items() if path not in paths}, self._special)

    def subtree(self, folder: str) -> FileTree:
        """Return the tree of a folder, with paths relative to this folder. If `folder` is "", return the whole tree."""
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

    The library pathspec is imported on the first call, because most configs have no `.krmignore` file.
    """
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(content.decode("utf-8", "replace").splitlines())
