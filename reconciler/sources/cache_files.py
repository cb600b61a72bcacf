"""Reads and writes the files of cache folders.

Other processes never read a partly written file. They can delete each file at any time.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

_PRIVATE = 0o700
_TEMPORARY_SUFFIX = ".part"
# The age after which a temporary file is deleted. A killed process leaves such a file. No download takes this long.
_MAX_TEMPORARY_SECONDS = 24 * 3600


class CacheFile(NamedTuple):
    """A file of a cache folder. The modification time is the time of its last use."""

    last_use: float
    size: int
    path: Path


@contextmanager
def create_temporary_file(folder: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Yield a temporary file in a folder. The file is deleted if the caller does not rename it, e.g. on a full disk."""
    folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    descriptor, path = tempfile.mkstemp(_TEMPORARY_SUFFIX, dir=folder)
    temporary = Path(path)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream, temporary
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file. Other processes read either the old content or the new content, and never a part of it."""
    with create_temporary_file(path.parent) as (stream, temporary):
        stream.write(content)
        stream.close()
        temporary.replace(path)


def list_files(folder: Path) -> list[CacheFile]:
    """Return the complete files of a folder, the least recently used file first.

    Temporary files of processes that were killed are deleted.
    """
    return sorted(_iterate_files(folder), key=lambda file: file.last_use)


def _iterate_files(folder: Path) -> Iterator[CacheFile]:
    oldest_temporary = time.time() - _MAX_TEMPORARY_SECONDS
    for path in _list_paths(folder):
        with suppress(FileNotFoundError):
            status = path.stat()
            if path.suffix != _TEMPORARY_SUFFIX:
                yield CacheFile(status.st_mtime, status.st_size, path)
            elif status.st_mtime < oldest_temporary:
                path.unlink()


def _list_paths(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
