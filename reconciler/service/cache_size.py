"""Exports the size of the cache folder, at most once per hour, because a large cache has many files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

from reconciler.telemetry.metrics import CACHE_BYTES, CACHES

_INTERVAL_SECONDS = 3_600.0
_MIRROR_SUFFIX = ".git"


class CacheSize:
    """Measures the cache folder in a thread, so that no pass waits. If `folder` is None, nothing is measured.

    Attributes:
        thread: The thread of the last measurement. None before the first measurement.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.thread: Thread | None = None
        self._due_at = 0.0

    def update(self, now: float) -> None:
        """Measure the folder if the last measurement is at least an hour old.

        `now` is the time of a monotonic clock.
        """
        is_running = self.thread is not None and self.thread.is_alive()
        if self.folder is None or now < self._due_at or is_running:
            return
        self._due_at = now + _INTERVAL_SECONDS
        self.thread = Thread(target=_export_sizes, args=(self.folder,), name="cache-size", daemon=True)
        self.thread.start()


def _export_sizes(folder: Path) -> None:
    sizes = dict.fromkeys(CACHES, 0)
    for path, size in _list_sizes(folder):
        is_mirror = path.relative_to(folder).parts[0].endswith(_MIRROR_SUFFIX)
        sizes["mirrors" if is_mirror else "other"] += size
    for cache, size in sizes.items():
        CACHE_BYTES.set(size, cache)


def _list_sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    # Ignore missing files, because Git can delete files at any time. `os.walk` ignores missing folders.
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            try:
                yield path, path.lstat().st_size
            except FileNotFoundError:
                continue
