"""Not more than so many pushes a minute."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable


class Pace:
    """Lets `per_minute` calls of `wait` through in any 60 seconds, and delays the rest; 0 is without limit."""

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._taken: deque[float] = deque(maxlen=max(per_minute, 1))

    def wait(self) -> None:
        """Return when the next call is allowed."""
        if not self._per_minute:
            return
        if len(self._taken) == self._per_minute:
            self._sleep(max(0.0, self._taken[0] + 60 - self._clock()))
        self._taken.append(self._clock())
