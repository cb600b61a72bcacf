"""The rate limiter for write requests to one forge.

Forges limit all requests of an account together. Therefore, the clients of all repositories on a forge share one
RateLimiter. GitHub allows about 80 new objects per minute and 500 per hour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from reconciler.forge.errors import ForgeBusyError
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ForgeQuota:
    """The number of requests that a forge allows, as its last response reported. None means that a value is unknown.

    Attributes:
        resets_at: The end of the current period, in seconds since 1970.
        clock_difference: The clock of the forge minus the local clock, in seconds.
        token_expires_at: The expiry of the token, in seconds since 1970. Only GitHub reports this time.
    """

    limit: int | None = None
    remaining: int | None = None
    resets_at: int | None = None
    clock_difference: float | None = None
    token_expires_at: int | None = None


@dataclass(frozen=True)
class ForgeLimit:
    """The rate limit of the API of a forge, for the pages of the console.

    Attributes:
        name: The host, with the path if the forge has only the repositories below a path. "" means this machine.
        kind: The kind of the forge, for example `github`.
        paused_until: The end of the pause that the forge requested, in seconds since 1970. 0 if it requested no pause.
    """

    name: str
    kind: str
    quota: ForgeQuota
    paused_until: float = 0.0


_MINUTE = 60
_HOUR = 3600


class RateLimiter:
    """Limits the writes per minute and the new pull requests per hour. 0 means no limit.

    `quota` contains the number of requests that the last response reported. The methods do not wait. If a limit is
    reached, they raise ForgeBusyError with the time of the next attempt. `clock` returns seconds since 1970. The object
    is thread-safe.
    """

    def __init__(self, writes_per_minute: int, new_per_hour: int, clock: Callable[[], float]) -> None:
        self._writes = _Window(writes_per_minute, _MINUTE, f"{writes_per_minute} writes per minute")
        self._new = _Window(new_per_hour, _HOUR, f"{new_per_hour} new pull requests per hour")
        self._clock = clock
        self.quota = ForgeQuota()
        self._paused_until = 0.0
        self._lock = Lock()

    def count_write(self) -> None:
        """Count one write. Raises ForgeBusyError if the limit is reached."""
        self._take(self._writes)

    def count_new_request(self) -> None:
        """Count one write and one new pull request. If a limit is reached, count nothing and raise ForgeBusyError."""
        self._take(self._writes, self._new)

    def check_pause(self) -> None:
        """Raise ForgeBusyError during a pause. Call this method before read requests, which are not counted."""
        with self._lock:
            self._check_pause(self._clock())

    @property
    def paused_until(self) -> float:
        """The end of the last pause that the forge requested, in seconds since 1970. 0 if it requested no pause."""
        return self._paused_until

    def pause_until(self, until: float) -> None:
        """Reject all requests until the time that the forge requested, in seconds since 1970."""
        with self._lock:
            self._paused_until = max(self._paused_until, until)

    def _take(self, *windows: _Window) -> None:
        with self._lock:
            now = self._clock()
            self._check_pause(now)
            for window in windows:
                window.check(now)
            for window in windows:
                window.take(now)

    def _check_pause(self, now: float) -> None:
        if now < self._paused_until:
            raise ForgeBusyError("the forge requested a pause", self._paused_until)


class _Window:
    """The times of the requests in the last `seconds`, at most `limit` of them. The limit 0 means no limit."""

    def __init__(self, limit: int, seconds: float, name: str) -> None:
        self._limit = limit
        self._seconds = seconds
        self._name = name
        self._taken: deque[float] = deque()

    def check(self, now: float) -> None:
        # Also remove times in the future, because a clock that was set back would otherwise block requests for hours.
        while self._taken and not 0 <= now - self._taken[0] < self._seconds:
            self._taken.popleft()
        if self._limit and len(self._taken) >= self._limit:
            raise ForgeBusyError(f"the limit of {self._name} is reached", self._taken[0] + self._seconds)

    def take(self, now: float) -> None:
        if self._limit:
            self._taken.append(now)
