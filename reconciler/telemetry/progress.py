"""The last sign of progress of the daemon. If there is none for a long time, the process is stuck.

A phase of a pass, a Git call, a batch of renders and each part of a wait are progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Progress:
    """The last activity of the process. All threads can update it, and reading it needs no lock.

    Args:
        clock: Returns the seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = (clock(), "start")

    def update(self, activity: str) -> None:
        """Record that the process works. `activity` names the work, for example a phase or a Git command."""
        self._last = (self._clock(), activity)

    @property
    def last(self) -> tuple[float, str]:
        """The time and the name of the last activity. The time is that of the monotonic clock."""
        return self._last


progress = Progress()
