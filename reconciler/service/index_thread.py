"""The thread that builds the index of the console after each pass. A pass never waits for this thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from reconciler.git.errors import GitError
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
    from reconciler.output.fleet.model import FleetIndex

_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class IndexProgress:
    """The progress of the index that is being built: the number of completed targets, and of all targets."""

    done: int
    total: int


class IndexThread:
    """Builds an index for the newest observed pass.

    If several passes end during a build, only the newest of them gets an index.

    Attributes:
        index: The newest index. None if no index is complete.
        progress: The progress of the current work. None if the thread waits for a pass.
        error: The reason why the last index could not be built. "" if it was built.

    Args:
        observe: Receives each index before pages show it.
    """

    def __init__(self, indexer: FleetIndexer, observe: Callable[[FleetIndex], object] = lambda _index: None) -> None:
        self._indexer = indexer
        self._observe = observe
        self._changed = threading.Condition()
        self._observed: ObservedPass | None = None
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="console-index", daemon=True)
        self.index: FleetIndex | None = None
        self.progress: IndexProgress | None = None
        self.error = ""

    def continue_from(self, previous: IndexThread, *, keeps_entries: bool) -> None:
        """Show the index of another thread until the first index is complete.

        Args:
            keeps_entries: Whether the first index can use the entries of targets whose refs have not moved.
        """
        self._indexer.continue_from(previous._indexer, keeps_entries=keeps_entries)
        self.index = previous.index

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def observe(self, observed: ObservedPass) -> None:
        """Request an index for a pass. It replaces an earlier request that has not started, except for its removals."""
        with self._changed:
            if self._observed:
                observed = replace(observed, removals=(*self._observed.removals, *observed.removals))
            self._observed = observed
            self._changed.notify_all()

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        with suppress(_IndexStoppedError):
            while (observed := self._wait()) is not None:
                self.build(observed)
        self._indexer.store()

    def _wait(self) -> ObservedPass | None:
        """Wait for a request, and return it. Return None if the thread must stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._observed or self._is_stopping)
            observed, self._observed = self._observed, None
            return None if self._is_stopping else observed

    def build(self, observed: ObservedPass) -> None:
        """Build the index for a pass now, in the thread of the caller."""
        try:
            with repository_boundary("the index of the console"):
                index = self._indexer.update(observed, self._report_progress)
                self._observe(index)
                self.index = index
            self.error = ""
        except GitError as error:
            log_if_internal(error)
            log.warning("console_index_failed", message=error.full_message)
            self.error = error.full_message
        finally:
            self.progress = None

    def _report_progress(self, done: int, total: int) -> None:
        self.progress = IndexProgress(done, total)
        if self._is_stopping:
            raise _IndexStoppedError


class _IndexStoppedError(BaseException):
    """Ends the work of the thread, because the service stops.

    It is not an `Exception`, because the code that isolates unexpected exceptions must not catch it.
    """
