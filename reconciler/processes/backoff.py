"""The back-off of calls that failed, but that can succeed later without a change."""

from __future__ import annotations

from threading import Lock
from typing import Generic, Protocol, TypeVar

Failure = TypeVar("Failure")


class CallBackoff(Protocol):
    """The back-off of failed calls, by the key of the call."""

    def is_waiting(self, key: str) -> bool:
        """Return whether the back-off of a call has not ended yet."""
        ...

    def record_failure(self, key: str, min_seconds: float = 0.0) -> float:
        """Record a failure of a call, start its back-off, and return the duration of the back-off in seconds.

        `min_seconds` is the time that the called service asks to wait.
        """
        ...

    def record_success(self, key: str) -> None:
        """Delete the recorded failures of a call."""
        ...


class RecordedFailures(Generic[Failure]):
    """The last failure of each call. During its back-off, a call is not repeated. Its last failure is used instead.

    Without this class, every pass would wait until the timeout of a call that hangs. The recorded failure is reused,
    because a new failure with a different message would change the status in every pass. The object is thread-safe.
    """

    def __init__(self, backoff: CallBackoff) -> None:
        self._backoff = backoff
        self._failures: dict[str, Failure] = {}
        self._lock = Lock()

    def find(self, key: str) -> Failure | None:
        """Return the last failure of a call. Return None if the call has not failed, or its back-off has ended."""
        with self._lock:
            return self._failures.get(key) if self._backoff.is_waiting(key) else None

    def add(self, key: str, failure: Failure, min_seconds: float = 0.0) -> None:
        """Record a failure of a call, and start its back-off of at least `min_seconds`."""
        with self._lock:
            self._failures[key] = failure
            self._backoff.record_failure(key, min_seconds)

    def remove(self, key: str) -> None:
        """Record the success of a call."""
        with self._lock:
            if key in self._failures:
                del self._failures[key]
                self._backoff.record_success(key)
