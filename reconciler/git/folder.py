"""Plain folders on disk: read as configuration or as a package, and written as a package.

A folder is read as it is on disk, even if it is part of a Git repository. If a package cannot be written completely,
all changes are undone.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from reconciler.catalog.files import File, FileTree, TreeId
from reconciler.git.errors import FolderChangedError, PathRefusedError, RepositoryMissingError
from reconciler.git.filesystem import walk_folder
from reconciler.git.names import is_tree_path
from reconciler.lazy_dataclasses import dataclass, field

NAME_NOT_UTF8 = "the name must be valid UTF-8 and allowed in a Git repository"
_ALL_READ = 0o444
_ALL_EXECUTE = 0o111
UndoSteps = list[Callable[[], object]]


@dataclass(frozen=True)
class FolderLimits:
    """Limits for reading a folder. `max_files` applies to each top-level folder, `max_total_bytes` to all files."""

    max_files: int = 200_000
    max_file_bytes: int = 64 * 2**20
    max_total_bytes: int = 2**30


@dataclass(frozen=True)
class FolderContent:
    """The regular files of a folder, and the reasons why other files cannot be read. Paths are relative to the folder.

    In `unreadable_reasons`, the path of a folder ends with "/".
    """

    files: FileTree
    unreadable_reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def tree_id(self) -> TreeId:
        """The ID of the Git tree that contains the files."""
        return self.files.id


def read_folder(folder: Path | str, limits: FolderLimits | None = None) -> FolderContent:
    """Read the regular files below `folder`. Skip links, special files and all entries with the name `.git`.

    If a file cannot be read or is too large, `unreadable_reasons` contains its path, and the other files are read. If a
    top-level folder has too many files or bytes, `unreadable_reasons` contains its path with "/" at the end.

    Raises:
        RepositoryMissingError: The folder does not exist, or is not a folder.
    """
    limits = limits or FolderLimits()
    root = Path(folder)
    if not root.is_dir():
        reason = "this path is not a folder" if root.exists() else "this path does not exist"
        raise RepositoryMissingError(f"{root} must be a folder; {reason}")
    files: dict[str, File] = {}
    unreadable: dict[str, str] = {}
    remaining_bytes = limits.max_total_bytes
    for top_folder in _list_top_folders(root, unreadable):
        found_files, reasons, size = _read_top_folder(root, top_folder, limits, remaining_bytes)
        files |= found_files
        unreadable |= reasons
        remaining_bytes -= size
    return FolderContent(FileTree(files), unreadable)


def describe_path_type(folder: Path, path: str, followed_path: str = "") -> str:
    """Return the type of the entry at a path below `folder`, e.g. "file" or "a symbolic link".

    Return "" if there is no entry. If a parent folder of `path` is a link, return "below a symbolic link".

    Args:
        followed_path: The path at which links are followed. Links at its parent folders are followed too.
    """
    segments = path.split("/")
    for count in range(1, len(segments) + 1):
        part = "/".join(segments[:count])
        is_followed = followed_path == part or followed_path.startswith(f"{part}/")
        try:
            mode = (folder / part).stat(follow_symlinks=is_followed).st_mode
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


def _list_top_folders(root: Path, unreadable: dict[str, str]) -> list[str]:
    """Return the names of the folders in `root`. The first name is "", which stands for the files in `root` itself."""
    try:
        return ["", *sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))]
    except OSError as error:
        unreadable["./"] = error.strerror or str(error)
        return []


def _read_top_folder(
    root: Path, top_folder: str, limits: FolderLimits, remaining_bytes: int
) -> tuple[dict[str, File], dict[str, str], int]:
    """Return the files of one top-level folder, the reasons why other files are unreadable, and the total size."""
    files: dict[str, File] = {}
    unreadable: dict[str, str] = {}
    size = 0
    for path in _list_files(root, top_folder, unreadable):
        file_or_reason = _read_file(root, path, limits.max_file_bytes)
        if isinstance(file_or_reason, File):
            files[path] = file_or_reason
            size += len(file_or_reason.data)
        elif file_or_reason:
            unreadable[escape_path(path)] = file_or_reason
        if size > remaining_bytes or len(files) + len(unreadable) > limits.max_files:
            reason = (
                f"the folder must have at most {limits.max_files:,} files, and all folders together at most"
                f" {limits.max_total_bytes:,} bytes; remove files, or raise the setting `limits.folder_files`"
            )
            return {}, {f"{escape_path(top_folder) or '.'}/": reason}, 0
    return files, unreadable, size


def _list_files(root: Path, top_folder: str, unreadable: dict[str, str]) -> Iterator[str]:
    def note_error(error: OSError) -> None:
        unreadable[f"{escape_path(os.path.relpath(error.filename or root, root))}/"] = error.strerror or str(error)

    if top_folder.lower() == ".git":
        return
    for folder, subfolders, names in walk_folder(root / top_folder, note_error):
        subfolders[:] = sorted(name for name in subfolders if name.lower() != ".git") if top_folder else []
        prefix = "" if Path(folder) == root else f"{os.path.relpath(folder, root)}/"
        yield from (prefix + name for name in sorted(names) if name.lower() != ".git")


def _read_file(root: Path, path: str, max_bytes: int) -> File | str | None:
    """Return the file. Return a reason if the file cannot be read. Return None for a link or a special file."""
    if not is_tree_path(path) or not is_utf8(path):
        return NAME_NOT_UTF8
    try:
        # O_NOFOLLOW skips links, because a link is not a file of this folder. Without O_NONBLOCK, opening a named pipe
        # would wait for a writer.
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None if (root / path).is_symlink() else (error.strerror or str(error))
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        return f"the file must have at most {max_bytes} bytes"
    return File(data, executable=bool(status.st_mode & stat.S_IXUSR))


def is_utf8(name: str) -> bool:
    """Return whether a file name from the file system is valid UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape_path(path: str) -> str:
    r"""Return a path in which each byte that is not UTF-8 is replaced by an escape such as \xe9."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_package(folder: Path) -> FileTree:
    """Return the regular files of a package. Skip links and all entries with the name `.git`.

    Raises:
        GitError: A file cannot be read, or the path is not a folder. An unreadable file is not skipped, because it
            would then look like a deleted file.
    """
    content = read_folder(folder)
    for path, reason in content.unreadable_reasons.items():
        raise PathRefusedError(f"{folder / path} must be readable: {reason}")
    return content.files


def check_new_folder(folder: Path) -> None:
    """Check that a new package can be written to `folder`.

    Raises:
        PathRefusedError: The folder exists and is not empty, or is not a folder.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise PathRefusedError(f"{folder} must not exist, or must be an empty folder")


def write_new_package(folder: Path, files: FileTree) -> None:
    """Write a package to a folder that does not exist or is empty. After a failure, delete the created folders.

    Raises:
        GitError: The folder has content, or a path of the package is not allowed.
        OSError: A file cannot be written.
    """
    check_new_folder(folder)
    created_folders = [created for created in (folder, *folder.parents) if not created.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_package(folder, FileTree(), files)
    except BaseException:
        for created in created_folders:
            created.rmdir()
        raise


def write_package(folder: Path, before: FileTree, after: FileTree) -> None:
    """Replace the files `before` of a folder by the files `after`. Files that neither tree contains are not changed.

    Links are never followed. A changed file keeps its mode, except for the executable bit. After a failure, all changes
    are undone.

    Raises:
        FolderChangedError: A file that must be changed or deleted no longer has the content that `before` contains.
        PathRefusedError: A path is not allowed, or an entry that is not in `before` exists at the path.
        OSError: A file cannot be written.
    """
    changed = {path: file for path, file in after.items() if before.get(path) != file}
    deleted = [path for path in before if path not in after]
    if not changed and not deleted:
        return
    for path in (*changed, *deleted):
        _check_path(folder, path, before, after)
    with (
        tempfile.TemporaryDirectory(prefix=".reconciler-", dir=_find_staging_parent(folder)) as staging_folder,
        _undo_on_failure() as undo,
    ):
        staged_files = {path: _write_staged_file(Path(staging_folder) / f"new-{n}", folder / path, file)
                  for n, (path, file) in enumerate(changed.items())}  # fmt: skip
        for number, path in enumerate([*deleted, *(path for path in changed if path in before)]):
            _check_content(folder / path, before[path])
            _set_aside(folder / path, Path(staging_folder) / f"old-{number}", undo, keep=path in changed)
        for path in deleted:
            _remove_empty(folder, (folder / path).parent, undo)
        for path, staged_file in staged_files.items():
            _move_into_place(staged_file, folder / path, undo)


@contextmanager
def _undo_on_failure() -> Iterator[UndoSteps]:
    """Yield a list to which the block appends undo steps. If the block fails, run the steps in reverse order."""
    undo_steps: UndoSteps = []
    try:
        yield undo_steps
    except BaseException:
        for step in reversed(undo_steps):
            step()
        raise


def _check_path(folder: Path, path: str, before: FileTree, after: FileTree) -> None:
    if not is_tree_path(path):
        raise PathRefusedError(f'"{path}" must be a relative path that does not contain .git')
    parent = folder
    for name in path.split("/")[:-1]:
        parent /= name
        parent_path = parent.relative_to(folder).as_posix()
        if path in after and parent_path in after:
            raise PathRefusedError(f"{parent} cannot be a file, because {path} needs a folder with this name")
        if parent.is_symlink() or (parent.exists() and not parent.is_dir() and parent_path not in before):
            raise PathRefusedError(
                f"{parent} must be a folder, not a link or a special file, because {path} is written below this folder"
            )
    target = folder / path
    if path not in before and (target.is_symlink() or (target.exists() and not target.is_dir())):
        raise PathRefusedError(
            f"{target} must be a regular file, because a file is written to this path: remove the existing entry"
        )


def _check_content(target: Path, expected: File) -> None:
    try:
        # O_NOFOLLOW detects a link that has replaced the regular file since the file was read.
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            is_unchanged = stat.S_ISREG(os.fstat(descriptor).st_mode) and stream.read() == expected.data
    except OSError:
        is_unchanged = False
    if not is_unchanged:
        raise FolderChangedError(f"{target} changed during the operation; nothing was written")


def _find_staging_parent(folder: Path) -> Path:
    # Create the staging folder next to the package, so that a killed process leaves no temporary files in the package.
    parent = folder.resolve().parent
    is_usable = os.access(parent, os.W_OK | os.X_OK) and parent.stat().st_dev == folder.stat().st_dev
    return parent if is_usable else folder


def _write_staged_file(staged: Path, target: Path, file: File) -> Path:
    mode = 0o777 if file.executable else 0o666
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(file.data)
        if target.is_file():
            os.fchmod(descriptor, _compute_mode(target.stat().st_mode, file.executable))
    return staged


def _compute_mode(old_mode: int, executable: bool) -> int:
    mode = stat.S_IMODE(old_mode)
    if executable == bool(mode & stat.S_IXUSR):
        return mode
    return mode | (mode & _ALL_READ) >> 2 if executable else mode & ~_ALL_EXECUTE


def _set_aside(target: Path, saved: Path, undo: UndoSteps, *, keep: bool) -> None:
    """Save the file `target` as `saved`, and add a step to `undo` that restores `target`.

    If `keep` is False, delete `target`.
    """
    if keep:
        _copy_or_link(target, saved)
    else:
        target.replace(saved)
    undo.append(lambda: saved.replace(target))


def _copy_or_link(target: Path, saved: Path) -> None:
    try:
        os.link(target, saved, follow_symlinks=False)
    except OSError:
        # Copy the file instead of creating a hard link, because some file systems do not support hard links.
        descriptor = os.open(saved, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(target.read_bytes())
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))


def _remove_empty(folder: Path, subfolder: Path, undo: UndoSteps) -> None:
    while subfolder != folder and subfolder.is_dir() and not any(subfolder.iterdir()):
        mode = stat.S_IMODE(subfolder.stat().st_mode)
        subfolder.rmdir()
        undo += [partial(subfolder.chmod, mode), subfolder.mkdir]
        subfolder = subfolder.parent


def _move_into_place(staged_file: Path, target: Path, undo: UndoSteps) -> None:
    for parent in reversed([ancestor for ancestor in target.parents if not ancestor.exists()]):
        parent.mkdir()
        undo.append(parent.rmdir)
    existed = target.exists()
    staged_file.replace(target)
    if not existed:
        undo.append(target.unlink)
