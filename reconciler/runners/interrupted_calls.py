"""Calls that the environment interrupted: they are not repeated before their back-off time has passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from reconciler.packages.functions.function import InterruptedFunctionError

T = TypeVar("T")


class CallBackoff(Protocol):
    """Back-off times of failed calls."""

    def is_waiting(self, key: str) -> bool:
        """Return whether the call must not be repeated yet."""
        ...

    def record_failure(self, key: str) -> None:
        """Record a failure."""
        ...

    def record_success(self, key: str) -> None:
        """Delete the recorded failures."""
        ...


class InterruptedCalls:
    """Messages of interrupted calls. A call that hangs costs its timeout once per back-off time, not once per pass."""

    def __init__(self, backoff: CallBackoff) -> None:
        self._backoff = backoff
        self._messages: dict[str, str] = {}

    def call(self, key: str, work: Callable[[], T]) -> T:
        """Return the result of `work`. During the back-off time, raise the previous error without calling it.

        Raises InterruptedFunctionError.
        """
        if key in self._messages and self._backoff.is_waiting(key):
            # Repeat the message unchanged, because the status must not change in every pass.
            raise InterruptedFunctionError(self._messages[key])
        try:
            result = work()
        except InterruptedFunctionError as error:
            self._backoff.record_failure(key)
            self._messages[key] = str(error)
            raise
        if self._messages.pop(key, None):
            self._backoff.record_success(key)
        return result
