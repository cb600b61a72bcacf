"""Folders that only this user may enter: the cache contains drafts, and drafts may contain values of Secrets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reconciler.gitio.errors import CacheRefusedError, CacheUnusableError

_PRIVATE = 0o700
_WRITABLE_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def prepare_private_folder(folder: Path) -> None:
    """Create a folder with mode 0700, or restrict an existing one of this user to that mode.

    Raises:
        CacheRefusedError: Another user owns the folder or may write to it, so that its content cannot be trusted.
        CacheUnusableError: The folder cannot be created.
    """
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        state = folder.stat()
        mode = stat.S_IMODE(state.st_mode)
        _check_owner(folder, state.st_uid)
        if mode & _WRITABLE_FOR_OTHERS:
            raise CacheRefusedError(
                f"the cache {folder} has mode {mode:04o}, so that other users can write to it: delete it, or check its"
                f' content and run "chmod 700 {folder}". For a mounted volume, set the setting cache to a folder'
                " inside the volume"
            )
        if mode != _PRIVATE:
            folder.chmod(_PRIVATE)
    except OSError as error:
        raise CacheUnusableError(f"{folder} cannot be written: {error.strerror or error}") from error


def _check_owner(folder: Path, owner: int) -> None:
    user = os.geteuid()
    if owner != user:
        raise CacheRefusedError(
            f"the cache {folder} belongs to the user with id {owner}, and this process runs as {user}: choose another"
            " folder with --cache or the setting cache, or change the owner"
        )
