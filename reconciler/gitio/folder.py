"""A plain folder as configuration: what is on disk now, whether or not a repository is around it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.gitio.errors import RepositoryMissingError
from reconciler.gitio.names import is_path
from reconciler.gitio.walk import walk
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import TreeId

NAME_NOT_TEXT = "the name must be UTF-8 that a repository may hold"


@dataclass(frozen=True)
class FolderLimits:
    """How much of a folder is read: files in one top-level folder, and bytes of one file and of all together."""

    files: int = 200_000
    file_bytes: int = 64 * 2**20
    total_bytes: int = 2**30


@dataclass(frozen=True)
class FolderContent:
    """The regular files of a folder, and why others could not be read, by path relative to the folder.

    The path of a folder that could not be listed ends in "/".
    """

    files: FileTree
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def tree_id(self) -> TreeId:
        """The tree id of the files, as Git would compute it."""
        return self.files.id


def read_folder(folder: Path | str, limits: FolderLimits | None = None) -> FolderContent:
    """Read the regular files below `folder`; links, special files and whatever is called `.git` are left out.

    A file that cannot be read, or is too large, is in `unreadable` and has no other effect; so is a top-level folder
    with too many files or bytes, with "/" at the end. Raises RepositoryMissingError when there is no such folder.
    """
    limits = limits or FolderLimits()
    root = Path(folder)
    if not root.is_dir():
        what = "it is none" if root.exists() else "there is nothing"
        raise RepositoryMissingError(f"{root} must be a folder; {what}")
    files: dict[str, File] = {}
    unreadable: dict[str, str] = {}
    left = limits.total_bytes
    for start in _top_folders(root, unreadable):
        found, refused, size = _read_top_folder(root, start, limits, left)
        files |= found
        unreadable |= refused
        left -= size
    return FolderContent(FileTree(files), unreadable)


def kind_on_disk(folder: Path, path: str, trusted: str = "") -> str:
    """Return what is at a path below `folder`: `file`, words for anything else, "" for nothing.

    Links are not followed, except within the path `trusted`: what is below a link is described by that.
    """
    segments = path.split("/")
    for count in range(1, len(segments) + 1):
        part = "/".join(segments[:count])
        is_trusted = trusted == part or trusted.startswith(f"{part}/")
        try:
            mode = (folder / part).stat(follow_symlinks=is_trusted).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, ValueError) as error:
            return f"unreadable ({getattr(error, 'strerror', None) or error})"
        if count < len(segments) and not stat.S_ISDIR(mode):
            return f"below {_describe(mode)}"
    return _describe(mode)


def _describe(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a directory" if stat.S_ISDIR(mode) else "a special file"


def _top_folders(root: Path, unreadable: dict[str, str]) -> list[str]:
    """Return "" for the files of the root itself, and its folders."""
    try:
        return ["", *sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))]
    except OSError as error:
        unreadable["./"] = error.strerror or str(error)
        return []


def _read_top_folder(
    root: Path, start: str, limits: FolderLimits, left: int
) -> tuple[dict[str, File], dict[str, str], int]:
    """Return the files of one top-level folder, why others cannot be read, and the bytes of all."""
    files: dict[str, File] = {}
    unreadable: dict[str, str] = {}
    size = 0
    for path in _list_files(root, start, unreadable):
        read = _read_file(root, path, limits.file_bytes)
        if isinstance(read, File):
            files[path] = read
            size += len(read.data)
        elif read:
            unreadable[printable(path)] = read
        if size > left or len(files) + len(unreadable) > limits.files:
            why = (
                f"the folder must have at most {limits.files:,} files, and all folders {limits.total_bytes:,} bytes;"
                " remove files, or raise the setting limits.folder_files"
            )
            return {}, {f"{printable(start) or '.'}/": why}, 0
    return files, unreadable, size


def _list_files(root: Path, start: str, unreadable: dict[str, str]) -> Iterator[str]:
    def note(error: OSError) -> None:
        unreadable[f"{printable(os.path.relpath(error.filename or root, root))}/"] = error.strerror or str(error)

    if start.lower() == ".git":
        return
    for place, folders, names in walk(root / start, note):
        folders[:] = sorted(name for name in folders if name.lower() != ".git") if start else []
        inside = "" if Path(place) == root else f"{os.path.relpath(place, root)}/"
        yield from (inside + name for name in sorted(names) if name.lower() != ".git")


def _read_file(root: Path, path: str, most: int) -> File | str | None:
    """Return the file, why it cannot be read, or None for what is no regular file."""
    if not is_path(path) or not is_text(path):
        return NAME_NOT_TEXT
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


def is_text(name: str) -> bool:
    """Return whether a name is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(path: str) -> str:
    """Return a path as text: bytes that are not UTF-8 become escapes such as \\xe9."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
