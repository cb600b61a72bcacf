"""How often we may change something at one forge, which is never more than the forge itself would bear.

Forges count what an account does, over all of its repositories: one Budget is shared by all drivers of a host
(peers.md, "Limits set by forges": GitHub bears about 80 new things a minute and 500 an hour).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from reconciler.forge.errors import ForgeBusyError

_MINUTE = 60
_HOUR = 3600


class Budget:
    """Lets so many writes through in any minute, and so many new pull requests in any hour; 0 is without limit.

    It never waits: who is too early gets a ForgeBusyError with the moment to come again. `clock` gives seconds since
    1970. Threads may share it.
    """

    def __init__(self, writes_per_minute: int, new_per_hour: int, clock: Callable[[], float]) -> None:
        self._writes = _Window(writes_per_minute, _MINUTE, f"{writes_per_minute} writes a minute")
        self._new = _Window(new_per_hour, _HOUR, f"{new_per_hour} new pull requests an hour")
        self._clock = clock
        self._rests_until = 0.0
        self._lock = Lock()

    def take(self) -> None:
        """Take one write. Raises ForgeBusyError."""
        self._take(self._writes)

    def take_new(self) -> None:
        """Take one new pull request and the write that opens it, both or neither. Raises ForgeBusyError."""
        self._take(self._writes, self._new)

    def check_rest(self) -> None:
        """Raise ForgeBusyError while the forge wants to be left alone, for reads, which are not counted."""
        with self._lock:
            self._refuse_rest(self._clock())

    def rest_until(self, until: float) -> None:
        """Take note that the forge said: not before this moment."""
        with self._lock:
            self._rests_until = max(self._rests_until, until)

    def _take(self, *windows: _Window) -> None:
        with self._lock:
            now = self._clock()
            self._refuse_rest(now)
            for window in windows:
                window.check(now)
            for window in windows:
                window.take(now)

    def _refuse_rest(self, now: float) -> None:
        if now < self._rests_until:
            raise ForgeBusyError("the forge asked for patience", self._rests_until)


class _Window:
    """The moments of the last so many takes."""

    def __init__(self, limit: int, seconds: float, name: str) -> None:
        self._limit = limit
        self._seconds = seconds
        self._name = name
        self._taken: deque[float] = deque()

    def check(self, now: float) -> None:
        # a moment to come is one of before the clock was set back; waiting for it could take hours
        while self._taken and not 0 <= now - self._taken[0] < self._seconds:
            self._taken.popleft()
        if self._limit and len(self._taken) >= self._limit:
            raise ForgeBusyError(f"the budget of {self._name} is used up", self._taken[0] + self._seconds)

    def take(self, now: float) -> None:
        if self._limit:
            self._taken.append(now)
