"""File trees: the files of a package or a repository folder as an immutable value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from reconciler.snapshot.objects import DIRECTORY, EXECUTABLE, FILE, LINK, BlobId, ObjectId, TreeId, blob_id, tree_id


@dataclass(frozen=True)
class File:
    """One regular file: its bytes and whether it is executable."""

    data: bytes
    executable: bool = False

    @cached_property
    def id(self) -> BlobId:
        """The blob id of the content."""
        return blob_id(self.data)

    @property
    def mode(self) -> str:
        """The Git file mode."""
        return EXECUTABLE if self.executable else FILE


@dataclass(frozen=True)
class SpecialEntry:
    """A symbolic link or a submodule: its Git mode, and the id of the target's blob or of the submodule's commit."""

    mode: str
    id: ObjectId

    @property
    def kind(self) -> str:
        """What a message calls it."""
        return "symbolic link" if self.mode == LINK else "submodule"


class FileTree(Mapping[str, File]):
    """Regular files by path; paths are relative, with "/" between segments, in sorted order.

    `special` are the symbolic links and submodules of a branch, by path. No package of an upstream has any, and the
    mapping does not contain them, so that nothing reads them by mistake; they count for `id` and equality, so that a
    package with one is never taken for the package without it. Values are never changed: `with_files`
    and `without` return new trees that share the files.
    """

    def __init__(
        self, files: Mapping[str, File] | None = None, special: Mapping[str, SpecialEntry] | None = None
    ) -> None:
        self._files = dict(sorted((files or {}).items()))
        self._special = dict(sorted((special or {}).items()))

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __contains__(self, path: object) -> bool:
        # what a Mapping has in its place raises and catches an error for every path that is absent
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
    def special(self) -> Mapping[str, SpecialEntry]:
        """The symbolic links and submodules, by path."""
        return MappingProxyType(self._special)

    @cached_property
    def id(self) -> TreeId:
        """The Git tree id of all entries: equal content, equal id."""
        entries: dict[str, tuple[str, str]] = {path: (file.mode, file.id) for path, file in self._files.items()}
        return _tree_id({**entries, **{path: (one.mode, one.id) for path, one in self._special.items()}})

    def with_special(self, special: Mapping[str, SpecialEntry]) -> FileTree:
        """Return the same files with exactly these symbolic links and submodules."""
        return self if special == self._special else FileTree(self._files, special)

    def with_files(self, changes: Mapping[str, File | bytes]) -> FileTree:
        """Return this tree with files added or replaced; bytes keep the mode of the file they replace."""
        changed = dict(self._files)
        for path, change in changes.items():
            old = changed.get(path)
            changed[path] = change if isinstance(change, File) else File(change, old.executable if old else False)
        return FileTree(changed, self._special)

    def without(self, *paths: str) -> FileTree:
        """Return this tree without these files; absent ones are fine."""
        return FileTree({path: file for path, file in self._files.items() if path not in paths}, self._special)

    def below(self, folder: str) -> FileTree:
        """Return the files below a folder, with paths relative to it; "" is the whole tree."""
        if not folder:
            return self
        start = folder.rstrip("/") + "/"
        return FileTree(
            {p.removeprefix(start): file for p, file in self._files.items() if p.startswith(start)},
            {p.removeprefix(start): one for p, one in self._special.items() if p.startswith(start)},
        )


def _tree_id(blobs: Mapping[str, tuple[str, str]]) -> TreeId:
    entries: list[tuple[str, str, str]] = []
    folders: dict[str, dict[str, tuple[str, str]]] = {}
    for path, (mode, object_id) in blobs.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = (mode, object_id)
        else:
            entries.append((mode, name, object_id))
    entries += [(DIRECTORY, name, _tree_id(inside)) for name, inside in folders.items()]
    return tree_id(entries)
