"""A plain folder as configuration: what is on disk now, whether or not a repository is around it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.gitio.errors import RepositoryMissingError, TooLargeError
from reconciler.gitio.names import is_path
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import TreeId


@dataclass(frozen=True)
class FolderLimits:
    """How much of a folder is read: the number of files, and bytes of one file and of all together."""

    files: int = 200_000
    file_bytes: int = 64 * 2**20
    total_bytes: int = 2**30


@dataclass(frozen=True)
class FolderContent:
    """The regular files of a folder, and why others could not be read, by path relative to the folder."""

    files: FileTree
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def tree_id(self) -> TreeId:
        """The tree id of the files, as Git would compute it."""
        return self.files.id


def read_folder(folder: Path | str, limits: FolderLimits | None = None) -> FolderContent:
    """Read the regular files below `folder`; links, special files and whatever is called `.git` are left out.

    A file that cannot be read, or is too large, is told in `unreadable` and spoils only itself. Raises
    RepositoryMissingError when there is no such folder, TooLargeError when it holds too much altogether.
    """
    limits = limits or FolderLimits()
    root = Path(folder)
    if not root.is_dir():
        what = "it is none" if root.exists() else "there is nothing"
        raise RepositoryMissingError(f"{root} must be a folder; {what}")
    files: dict[str, File] = {}
    unreadable: dict[str, str] = {}
    left = limits.total_bytes
    for path in _list_files(root, unreadable):
        read = _read_file(root, path, limits.file_bytes)
        if isinstance(read, File):
            files[path] = read
            left -= len(read.data)
        elif read:
            unreadable[path] = read
        if left < 0 or len(files) + len(unreadable) > limits.files:
            raise TooLargeError(f"{root} must hold at most {limits.files} files of {limits.total_bytes} bytes in all")
    return FolderContent(FileTree(files), unreadable)


def _list_files(root: Path, unreadable: dict[str, str]) -> Iterator[str]:
    def note(error: OSError) -> None:
        unreadable[os.path.relpath(error.filename or root, root)] = error.strerror or str(error)

    for place, folders, names in os.walk(root, onerror=note):
        folders[:] = sorted(name for name in folders if name.lower() != ".git")
        start = "" if Path(place) == root else f"{os.path.relpath(place, root)}/"
        yield from (start + name for name in sorted(names) if name.lower() != ".git")


def _read_file(root: Path, path: str, most: int) -> File | str | None:
    """Return the file, why it cannot be read, or None for what is no regular file."""
    if not is_path(path) or not _is_text(path):
        return "the name must be UTF-8 that a repository may hold"
    try:
        # a link is no file of this folder; a pipe must not make us wait
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None if (root / path).is_symlink() else (error.strerror or str(error))
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        data = stream.read(most + 1)
    if len(data) > most:
        return f"the file must have at most {most} bytes"
    return File(data, executable=bool(status.st_mode & stat.S_IXUSR))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
