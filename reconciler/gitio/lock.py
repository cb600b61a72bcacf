"""One process at a time in a mirror: a lock that ends with its holder, however the holder ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.gitio.errors import MirrorBusyError

_PATIENCE_SECONDS = 0.01


@contextmanager
def locked(path: Path, timeout_seconds: float) -> Iterator[int]:
    """Hold the lock file `path` and yield its descriptor; raises MirrorBusyError after `timeout_seconds`.

    Children of git are given the descriptor too, so that the lock outlives a killed parent for as long as
    an orphan of it still writes.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path, time.monotonic() + timeout_seconds)
        try:
            yield descriptor
        finally:
            # said aloud, because a child that a hook left running may still have the descriptor
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while not _try(descriptor):
        if time.monotonic() >= deadline:
            raise MirrorBusyError(f"another process has held {path.parent.name} for too long")
        time.sleep(_PATIENCE_SECONDS)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
