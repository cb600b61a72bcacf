"""The interface of the back-off of calls that failed, but that can succeed later without a change."""

from __future__ import annotations

from typing import Protocol


class CallBackoff(Protocol):
    """The back-off of failed calls, by the key of the call."""

    def is_waiting(self, key: str) -> bool:
        """Return whether the back-off of a call has not ended yet."""
        ...

    def record_failure(self, key: str, min_seconds: float = 0.0) -> float:
        """Record a failure of a call, start its back-off, and return its duration in seconds.

        `min_seconds` is the time that the called service asks to wait.
        """
        ...

    def record_success(self, key: str) -> None:
        """Delete the recorded failures of a call."""
        ...
