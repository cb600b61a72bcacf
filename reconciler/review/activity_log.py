"""The log of the activity, as JSON lines in a file of the cache.

Only the last publication of each package can be read quickly from Git. This file contains the other events of the
last 30 days. If the file is lost or damaged, pages show less history.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from reconciler.git.filesystem import replace_file
from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.activity import ActivityEvent, create_publication_event
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from reconciler.output.fleet.model import FleetIndex

DAY_SECONDS = 24 * 60 * 60
KEPT_SECONDS = 30 * DAY_SECONDS
MAX_BYTES = 16 * 1024 * 1024
"""The size at which the oldest events are deleted. An event has about 200 bytes."""
MAX_TEXT_CHARACTERS = 1_000
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


class ActivityLog:
    """Appends events to the file, and reads the file when a page or an index needs it for the first time.

    Several threads can use one object. Only one object may write to a file.

    Args:
        clock: Returns seconds since 1970.
    """

    def __init__(self, file: Path, clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock
        self._lock = Lock()
        # The events of the file. None if the file was not read yet.
        self._events: list[ActivityEvent] | None = None
        self._publications: set[tuple[str, str, str]] = set()
        # The size of the file, and the time of its first event. The size is None before the first write.
        self._size: int | None = None
        self._started_at = 0

    def append(self, events: Sequence[ActivityEvent]) -> None:
        """Add events to the file with a single write. Long texts are shortened. An error is logged and not raised."""
        if not events:
            return
        events = [_shorten(event) for event in events]
        with self._lock:
            self._append(events)

    def update(self, index: FleetIndex) -> None:
        """Add the publications that the index contains and the log does not contain yet.

        An index contains only the last publication of each package. The log also keeps the publications before it.
        """
        oldest = int(self._clock()) - KEPT_SECONDS
        with self._lock:
            self._read()
            missing = [
                _shorten(create_publication_event(row, publication, index.completed_at))
                for row, publication in index.publications
                if publication.seconds > oldest
                and (row.target, row.package, publication.commit) not in self._publications
            ]
            if missing:
                self._append(missing[::-1])

    def read(self) -> tuple[ActivityEvent, ...]:
        """Return the events of the last 30 days in the order in which they were recorded."""
        oldest = int(self._clock()) - KEPT_SECONDS
        with self._lock:
            return tuple(event for event in self._read() if event.seconds > oldest)

    @cached_property
    def _adapter(self) -> TypeAdapter[ActivityEvent]:
        from pydantic import TypeAdapter

        return TypeAdapter(ActivityEvent)

    def _append(self, events: Sequence[ActivityEvent]) -> None:
        lines = self._format(events)
        try:
            self._write(lines)
        except OSError as error:
            # Reset the size, so that the next write calls `_open`, because the file can now end with a part of a line.
            self._size = None
            log.warning("activity_store_failed", file=str(self._file), message=error.strerror)
        if self._events is not None:
            self._add(events)

    def _write(self, lines: bytes) -> None:
        now = int(self._clock())
        size = self._open(now) if self._size is None else self._size
        if size and (size + len(lines) > MAX_BYTES or self._started_at < now - KEPT_SECONDS - DAY_SECONDS):
            size = self._delete_oldest(now, MAX_BYTES // 2)
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
        # The file is unbuffered, so that another process never reads a part of the events of one write.
        with open(self._file, "ab", buffering=0, opener=_open_private) as file:
            file.write(lines)
        self._size = size + len(lines)

    def _open(self, now: int) -> int:
        """Prepare the file for the first write of this process, and return its size."""
        self._started_at = now
        if not self._file.exists():
            return 0
        with self._file.open("r+b") as file:
            first = self._parse(file.readline())
            self._started_at = first.recorded_at if first else 0
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            if file.read(1) in (b"", b"\n"):
                return size
            # Add the missing line end: an earlier write was interrupted, and the next event must start on a new line.
            file.write(b"\n")
            return size + 1

    def _delete_oldest(self, now: int, max_bytes: int) -> int:
        """Delete the old events, and return the new size. The events that remain have at most `max_bytes`."""
        events = [event for event in self._read() if event.seconds > now - KEPT_SECONDS]
        kept: list[bytes] = []
        size = 0
        for event in reversed(events):
            line = self._format([event])
            size += len(line)
            if size > max_bytes:
                break
            kept.append(line)
        content = b"".join(reversed(kept))
        replace_file(self._file, content)
        self._file.chmod(_PRIVATE_FILE)
        self._events = None
        self._started_at = events[-len(kept)].recorded_at if kept else now
        return len(content)

    def _read(self) -> list[ActivityEvent]:
        if self._events is None:
            self._events, self._publications = [], set()
            self._add(self._read_file())
        return self._events

    def _add(self, events: Iterable[ActivityEvent]) -> None:
        if self._events is not None:
            for event in events:
                self._events.append(event)
                if event.revision and event.publication_key:
                    self._publications.add(event.publication_key)

    def _read_file(self) -> list[ActivityEvent]:
        try:
            lines = self._file.read_bytes().splitlines() if self._file.exists() else []
        except OSError as error:
            log.warning("activity_unreadable", file=str(self._file), message=error.strerror)
            return []
        events = [self._parse(line) for line in lines]
        damaged = events.count(None)
        if damaged:
            message = f"{damaged} of {len(events)} lines are not valid; pages show less history"
            log.warning("activity_unreadable", file=str(self._file), message=message)
        return [event for event in events if event]

    def _parse(self, line: bytes) -> ActivityEvent | None:
        try:
            return self._adapter.validate_json(line)
        except ValueError:
            # A different version of the program can have written the line, or a write was interrupted.
            return None

    def _format(self, events: Iterable[ActivityEvent]) -> bytes:
        return b"".join(self._adapter.dump_json(event, exclude_defaults=True) + b"\n" for event in events)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE_FILE)


def _shorten(event: ActivityEvent) -> ActivityEvent:
    if max(len(event.message), len(event.reason)) <= MAX_TEXT_CHARACTERS:
        return event
    return replace(event, message=event.message[:MAX_TEXT_CHARACTERS], reason=event.reason[:MAX_TEXT_CHARACTERS])
