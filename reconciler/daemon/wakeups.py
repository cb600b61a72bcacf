"""Wakeups: what ends a sleep of the service. They carry no facts, and any number of them is one (design 4.1)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import watchfiles

# The watcher looks at its stop event twice a second; it ends with the process if it does not.
_LAST_SECONDS = 5.0


class Wakeup(StrEnum):
    """Why the service wakes."""

    TIMER = "timer"
    FOLDER = "folder"
    NOW = "now"
    WEBHOOK = "webhook"
    REMOTE = "remote"
    RELOAD = "reload"
    STOP = "stop"


_AT_ONCE = frozenset({Wakeup.NOW, Wakeup.RELOAD, Wakeup.STOP})


class Wakeups:
    """Reasons to wake, gathered until somebody waits for them. May be called from signal handlers and threads."""

    def __init__(self) -> None:
        # the lock can be taken twice by one thread: a signal handler may run inside `wait`
        self._changed = threading.Condition(threading.RLock())
        self._reasons: set[Wakeup] = set()

    def wake(self, reason: Wakeup) -> None:
        """Add a reason and end the wait, if anybody waits."""
        with self._changed:
            self._reasons.add(reason)
            self._changed.notify_all()

    def wait(self, seconds: float) -> frozenset[Wakeup]:
        """Wait for a reason, at most `seconds`; return all that came since the last call, TIMER if none did."""
        with self._changed:
            self._changed.wait_for(lambda: self._reasons, max(seconds, 0))
            reasons, self._reasons = frozenset(self._reasons), set()
        return reasons or frozenset({Wakeup.TIMER})

    def gather(self, seconds: float) -> frozenset[Wakeup]:
        """Let `seconds` pass for others to wake us, too; return their reasons. Who cannot wait ends it."""
        with self._changed:
            self._changed.wait_for(lambda: self._reasons & _AT_ONCE, max(seconds, 0))
            reasons, self._reasons = frozenset(self._reasons), set()
        return reasons


@contextmanager
def watching(folders: Sequence[Path], wakeups: Wakeups) -> Iterator[None]:
    """Wake with FOLDER whenever a file below one of the folders changes, until the block is left."""
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(folders, wakeups, stop), name="watch", daemon=True)
    if folders:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if folders:
            thread.join(_LAST_SECONDS)


def _watch(folders: Sequence[Path], wakeups: Wakeups, stop: threading.Event) -> None:
    for _ in watchfiles.watch(*folders, stop_event=stop, rust_timeout=500, watch_filter=_counts, raise_interrupt=False):
        wakeups.wake(Wakeup.FOLDER)


def _counts(_: watchfiles.Change, path: str) -> bool:
    # git's own lock files and new objects say nothing yet: what counts is the ref that moves last
    return not path.endswith(".lock") and "/objects/" not in path
