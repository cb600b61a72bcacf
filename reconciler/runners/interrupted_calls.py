"""Limits the repetition of interrupted function calls: a call is not repeated before its back-off has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.processes.backoff import CallBackoff

T = TypeVar("T")


class InterruptedCalls:
    """Stores the error messages of interrupted calls, and raises them again during the back-off.

    Without this class, every pass would wait until the timeout of a call that hangs.
    """

    def __init__(self, backoff: CallBackoff) -> None:
        self._backoff = backoff
        self._messages: dict[str, str] = {}

    def call(self, key: str, work: Callable[[], T]) -> T:
        """Return the result of `work`. During the back-off of `key`, raise the previous error and do not call `work`.

        Raises:
            InterruptedFunctionError: The call was interrupted now, or its back-off has not ended.
        """
        if key in self._messages and self._backoff.is_waiting(key):
            # Repeat the message of the first failure. The status would change in every pass if the message changed.
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
