"""File system operations: reading and deleting folder trees, private folders, cache files, and lock files.

The functions here do not use recursion. Before Python 3.12, `os.walk` and `shutil.rmtree` use recursion. They raise
RecursionError for very deep folders, such as the folder of a ref with a thousand slashes in its name.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.git.errors import CacheRefusedError, CacheUnusableError, MirrorBusyError

_PRIVATE = 0o700
_WRITE_BITS_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_RETRY_SECONDS = 0.01
_TEMPORARY_SUFFIX = ".new"


def walk_folder(
    top: Path, on_error: Callable[[OSError], object] = lambda _: None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk `top` and all folders below it, as `os.walk` does.

    Yield the path of each folder, the names of its subfolders, and the names of its other entries. The caller may
    remove or sort the names of subfolders, to skip or order the subfolders. Links to folders are not followed.
    """
    pending = [os.fspath(top)]
    while pending:
        folder = pending.pop()
        subfolders: list[str] = []
        names: list[str] = []
        links = set()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (subfolders if entry.is_dir() else names).append(entry.name)
                    if entry.is_symlink():
                        links.add(entry.name)
        except OSError as error:
            on_error(error)
            continue
        yield folder, subfolders, names
        pending += (f"{folder}/{subfolder}" for subfolder in reversed(subfolders) if subfolder not in links)


def remove_folder(top: Path) -> None:
    """Delete a folder with its content. Do nothing if the folder does not exist. Links are deleted and not followed.

    Raises:
        OSError: An entry cannot be deleted.
    """
    visited = []
    for path, subfolders, names in walk_folder(top):
        folder = Path(path)
        visited.append(folder)
        links = [subfolder for subfolder in subfolders if (folder / subfolder).is_symlink()]
        for name in (*names, *links):
            (folder / name).unlink()
    for folder in reversed(visited):
        folder.rmdir()


def prepare_private_folder(folder: Path) -> None:
    """Create a folder with mode 0700. If the current user already owns the folder, set its mode to 0700.

    Raises:
        CacheRefusedError: Another user owns the folder or may write to it, so that its content cannot be trusted.
        CacheUnusableError: The folder cannot be created, or its mode cannot be changed.
    """
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        state = folder.stat()
        mode = stat.S_IMODE(state.st_mode)
        _check_owner(folder, state.st_uid)
        if mode & _WRITE_BITS_OF_OTHERS:
            raise CacheRefusedError(
                f"the cache {folder} has mode {mode:04o}, so that other users can write to this folder. Next "
                f'step: delete the folder, or check its content and run "chmod 700 {folder}". If the folder '
                "is a mounted volume, change the setting `cache` to a folder inside the volume"
            )
        if mode != _PRIVATE:
            folder.chmod(_PRIVATE)
    except OSError as error:
        raise CacheUnusableError(f"{folder} cannot be written: {error.strerror or error}") from error


def _check_owner(folder: Path, owner: int) -> None:
    user = os.geteuid()
    if owner != user:
        raise CacheRefusedError(
            f"the cache folder {folder} belongs to the user with ID {owner}, but this process runs as user {user}: "
            "choose another folder with `--cache` or the setting `cache`, or change the owner of the folder"
        )


def replace_file(file: Path, content: str | bytes, *, is_durable: bool = False) -> None:
    """Write a file, and create its folder. A concurrent reader gets the complete old or the complete new content.

    Args:
        is_durable: Whether the file is complete even after a power failure. This takes longer.

    Raises:
        OSError: The file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    temporary = file.with_suffix(_TEMPORARY_SUFFIX)
    temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    if is_durable:
        with temporary.open() as stream:
            os.fsync(stream.fileno())
    temporary.replace(file)


def delete_temporary_files(folder: Path) -> None:
    """Delete the temporary files in a folder that killed processes left during `replace_file`.

    No other process may write files of the folder meanwhile.

    Raises:
        OSError: A file cannot be deleted.
    """
    for file in folder.glob(f"*{_TEMPORARY_SUFFIX}"):
        file.unlink(missing_ok=True)


@contextmanager
def hold_lock(path: Path, timeout_seconds: float) -> Iterator[int]:
    """Lock the file `path` until the context ends, and yield its file descriptor.

    Git processes inherit the descriptor. If this process is killed while such a Git process still writes, the lock
    continues to exist until the Git process ends.

    Raises:
        MirrorBusyError: Another process holds the lock for longer than `timeout_seconds`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path, time.monotonic() + timeout_seconds)
        try:
            yield descriptor
        finally:
            # Unlock explicitly. Closing the descriptor does not release the lock if a process that a hook started has a
            # copy of the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while not _try_lock(descriptor):
        if time.monotonic() >= deadline:
            raise MirrorBusyError(f"another process has held the lock file {path} for too long")
        time.sleep(_RETRY_SECONDS)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
