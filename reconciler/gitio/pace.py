"""Not more than so many pushes a minute."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

_MINUTE = 60.0


class Pace:
    """Lets `per_minute` calls of `wait` through in any 60 seconds, and delays the rest; 0 is without limit.

    Who would have to sleep for longer than `patience_seconds` is put off. `tell` hears how long each sleep is to be, in
    seconds, and 0 when it is over. For several threads: what one of them sleeps for, the others wait for as well.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        patience_seconds: float = math.inf,
        tell: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._patience = patience_seconds
        self._tell = tell
        self._turn = threading.Lock()
        self._taken: deque[float] = deque(maxlen=max(per_minute, 1))

    def wait(self, leave: int = 0) -> float | None:
        """Return None when the next call is allowed, or else in how many seconds it will be.

        `leave` of the calls of a minute are left for others, who come later.
        """
        if not self._per_minute:
            return None
        with self._turn:
            # who has all the time there is need not leave anything
            most = self._per_minute if math.isinf(self._patience) else self._per_minute - leave
            left = self._seconds_left(most) if most > 0 else _MINUTE
            if left > self._patience or most <= 0:
                return left
            self._go_on(left)
        return None

    def take(self) -> None:
        """Return when a call is allowed that cannot be put off, because it ends what another one has begun."""
        if self._per_minute:
            with self._turn:
                left = self._seconds_left(self._per_minute)
                self._go_on(left if left <= self._patience else 0.0)

    def _seconds_left(self, most: int) -> float:
        if len(self._taken) < most:
            return 0.0
        return max(0.0, self._taken[-most] + _MINUTE - self._clock())

    def _go_on(self, left: float) -> None:
        if left:
            self._tell(left)
            self._sleep(left)
            self._tell(0)
        self._taken.append(self._clock())


class Paces:
    """The paces of all remotes of a process: whoever pushes to one keeps to the same.

    `tell` hears of the sleeps of each, by its address.
    """

    def __init__(
        self,
        patience_seconds: float = math.inf,
        tell: Callable[[str, float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._patience = patience_seconds
        self._clock = clock
        self._tell = tell
        self._paces: dict[str, Pace] = {}

    def of(self, url: str, per_minute: int) -> Pace:
        """Return the pace of pushes to an address, at so many a minute."""
        if url not in self._paces:
            tell = partial(self._tell, url) if self._tell else lambda seconds: None
            self._paces[url] = Pace(per_minute, self._clock, patience_seconds=self._patience, tell=tell)
        return self._paces[url]
