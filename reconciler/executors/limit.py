"""The limit of every wait for a worker: a batch that takes longer is rendered in this process instead."""

from __future__ import annotations

from reconciler.executors.errors import ExecutorUnusableError

TIMEOUT_SECONDS = 600.0


class WaitLimit:
    """How long one executor session waits for a batch. After the first batch that takes longer, nothing is waited for.

    Without that, a cluster that lost all its workers would hold up a pass once for every batch.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._is_reached = False

    def seconds(self) -> float:
        """Return the seconds to wait for the next batch. Raises ExecutorUnusableError after a timeout."""
        if self._is_reached:
            raise self.reached()
        return self._timeout_seconds

    def reached(self) -> ExecutorUnusableError:
        """Return the error for a batch that took too long."""
        self._is_reached = True
        return ExecutorUnusableError(
            f"no worker returned a batch of packages within {self._timeout_seconds:g} seconds"
            " (setting rendering.timeout_seconds)"
        )
