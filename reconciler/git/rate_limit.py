"""A limit for the number of pushes per minute to one remote."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

_MINUTE = 60.0


class PushRateLimiter:
    """Allows at most `per_minute` calls of `acquire` in any 60 seconds. 0 means no limit.

    Further calls wait, but not longer than `max_wait_seconds`: a call that must wait longer is refused. Before a wait,
    `on_wait` is called with the number of seconds to wait. After the wait, it is called with 0. Threads can share one
    limiter. Their calls wait one after the other.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        max_wait_seconds: float = math.inf,
        on_wait: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._max_wait_seconds = max_wait_seconds
        self._on_wait = on_wait
        self._lock = threading.Lock()
        self._call_times: deque[float] = deque(maxlen=max(per_minute, 1))

    def acquire(self, reserved: int = 0) -> float | None:
        """Wait until a push is allowed, and return None. If the wait is too long, return its length in seconds at once.

        Args:
            reserved: The number of pushes per minute that this call must leave to later calls.
        """
        if not self._per_minute:
            return None
        with self._lock:
            # Ignore `reserved` if the maximum wait is infinite: no later call is then refused, because it can wait.
            limit = self._per_minute if math.isinf(self._max_wait_seconds) else self._per_minute - reserved
            wait_seconds = self._compute_wait(limit) if limit > 0 else _MINUTE
            if wait_seconds > self._max_wait_seconds or limit <= 0:
                return wait_seconds
            self._wait_and_count(wait_seconds)
        return None

    def acquire_unconditionally(self) -> None:
        """Count a push that must not be refused, because it completes an earlier push. Wait only for a short time."""
        if self._per_minute:
            with self._lock:
                wait_seconds = self._compute_wait(self._per_minute)
                self._wait_and_count(wait_seconds if wait_seconds <= self._max_wait_seconds else 0.0)

    def _compute_wait(self, limit: int) -> float:
        if len(self._call_times) < limit:
            return 0.0
        return max(0.0, self._call_times[-limit] + _MINUTE - self._clock())

    def _wait_and_count(self, wait_seconds: float) -> None:
        if wait_seconds:
            self._on_wait(wait_seconds)
            self._sleep(wait_seconds)
            self._on_wait(0)
        self._call_times.append(self._clock())


class PushRateLimiters:
    """The rate limiters of a process, one for each remote, so that all pushes to one remote share one limit.

    `on_wait` is called with the address of the remote and the number of seconds that a push waits.
    """

    def __init__(
        self,
        max_wait_seconds: float = math.inf,
        on_wait: Callable[[str, float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_wait_seconds = max_wait_seconds
        self._clock = clock
        self._on_wait = on_wait
        self._rate_limiters: dict[str, PushRateLimiter] = {}

    def get(self, url: str, per_minute: int) -> PushRateLimiter:
        """Return the rate limiter for pushes to a remote. The first call for an address creates the limiter."""
        if url not in self._rate_limiters:
            on_wait = partial(self._on_wait, url) if self._on_wait else lambda seconds: None
            self._rate_limiters[url] = PushRateLimiter(
                per_minute, self._clock, max_wait_seconds=self._max_wait_seconds, on_wait=on_wait
            )
        return self._rate_limiters[url]
