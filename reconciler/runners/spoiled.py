"""Calls that the world spoiled: told as they were, and not made again before they have rested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from reconciler.packages.functions.function import InterruptedFunctionError

T = TypeVar("T")


class Patience(Protocol):
    """How long what failed is to rest."""

    def rests(self, key: str) -> bool:
        """Return whether it is not to be tried yet."""
        ...

    def failed(self, key: str) -> None:
        """Take note of a failure."""
        ...

    def worked(self, key: str) -> None:
        """Forget its failures."""
        ...


class SpoiledCalls:
    """Remembers which calls the world spoiled. One that hangs costs its time once per rest, not once per pass."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._why: dict[str, str] = {}

    def call(self, key: str, work: Callable[[], T]) -> T:
        """Return what `work` does; while it rests, its last failure stands. Raises InterruptedFunctionError."""
        if key in self._why and self._patience.rests(key):
            # the same words every time, or the status would change with every pass
            raise InterruptedFunctionError(self._why[key])
        try:
            done = work()
        except InterruptedFunctionError as error:
            self._patience.failed(key)
            self._why[key] = str(error)
            raise
        if self._why.pop(key, None):
            self._patience.worked(key)
        return done
