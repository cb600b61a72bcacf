"""Limits the repetition of interrupted function calls: a call is not repeated before its back-off has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.processes.backoff import CallBackoff, RecordedFailures

T = TypeVar("T")


class InterruptedCalls:
    """Stores the error messages of interrupted calls. During the back-off of a call, its error is raised again."""

    def __init__(self, backoff: CallBackoff) -> None:
        self._failures: RecordedFailures[str] = RecordedFailures(backoff)

    def call(self, key: str, work: Callable[[], T]) -> T:
        """Return the result of `work`. During the back-off of `key`, raise the previous error and do not call `work`.

        Raises:
            InterruptedFunctionError: The call was interrupted now, or its back-off has not ended.
        """
        if (message := self._failures.find(key)) is not None:
            raise InterruptedFunctionError(message)
        try:
            result = work()
        except InterruptedFunctionError as error:
            self._failures.add(key, str(error))
            raise
        self._failures.remove(key)
        return result
