"""A clock that only the test advances."""

from __future__ import annotations


class ManualClock:
    """Returns `now`, in seconds. It can replace a clock of the system in a constructor."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
