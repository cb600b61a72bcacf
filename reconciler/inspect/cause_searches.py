"""Searches for the cause of a value with the command `reconciler why`, in the background of the console.

A search renders earlier versions of a package and can take minutes. The results are stored in memory.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import Any, Literal

from reconciler.inspect.command_process import ReconcilerCommand
from reconciler.krm.internal_errors import ExpectedError
from reconciler.lazy_dataclasses import dataclass, field, replace

SearchState = Literal["running", "completed", "canceled"]
MAX_RUNNING = 4
_MAX_KEPT = 100
_SECONDS = 300.0
_STOP_SECONDS = 10.0
_ID_BYTES = 16


@dataclass(frozen=True)
class SearchedValue:
    """A value of a package. `is_draft` selects the value on the draft branch."""

    target: str
    package: str
    resource: str
    pointer: str
    is_draft: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `reconciler why`, without options."""
        return f"{self.target}/{self.package}", self.resource, self.pointer


@dataclass(frozen=True)
class CauseSearch:
    """A search with its result.

    Attributes:
        started_at: The start of the search, in seconds since 1970.
        command: The command that prints the result.
        data: The JSON output of the command. {} if there is none.
        error: The reason why there is no result. "" if the search runs or has a result.
    """

    id: str
    value: SearchedValue
    started_at: float
    command: str
    state: SearchState = "running"
    data: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


class TooManySearchesError(ExpectedError):
    """The service already runs the maximum number of searches."""


class CauseSearches:
    """Starts and cancels searches for the commit that caused a value. Threads can share the object.

    Args:
        options: The command-line options that locate the config, the settings and the repositories.
        clock: Returns seconds since 1970.
    """

    def __init__(self, options: Sequence[str], clock: Callable[[], float], seconds: float = _SECONDS) -> None:
        self._options = tuple(options)
        self._clock = clock
        self._seconds = seconds
        self._lock = Lock()
        self._searches: dict[str, CauseSearch] = {}
        # For each running search: the event that cancels the search, and the thread of the search.
        self._running: dict[str, tuple[Event, Thread]] = {}

    def start(self, value: SearchedValue) -> CauseSearch:
        """Start a search in a thread. If a search for the same value runs, return this search.

        Raises:
            TooManySearchesError: The maximum number of searches runs.
        """
        with self._lock:
            running = [self._searches[key] for key in self._running]
            if same := next((search for search in running if search.value == value), None):
                return same
            if len(running) >= MAX_RUNNING:
                raise TooManySearchesError(
                    f"{MAX_RUNNING} searches run already; wait until one is complete, or cancel one"
                )
            search_id = secrets.token_hex(_ID_BYTES)
            command = self._create_command(value)
            search = CauseSearch(search_id, value, self._clock(), command.format_line(value.arguments))
            canceled = Event()
            thread = Thread(target=self._run, args=(search, command, canceled), name="cause-search", daemon=True)
            self._searches[search_id] = search
            self._running[search_id] = canceled, thread
            self._delete_old()
            # Start the thread before another thread can find it and wait for it.
            thread.start()
        return search

    def _create_command(self, value: SearchedValue) -> ReconcilerCommand:
        return ReconcilerCommand("why", (*self._options, *(["--draft"] if value.is_draft else [])))

    def _run(self, search: CauseSearch, command: ReconcilerCommand, canceled: Event) -> None:
        output = command.run(search.value.arguments, self._seconds, is_canceled=canceled.is_set)
        state: SearchState = "canceled" if canceled.is_set() else "completed"
        data = json.loads(output.text) if output.text else {}
        with self._lock:
            self._searches[search.id] = replace(search, state=state, data=data, error=output.error)
            del self._running[search.id]

    def _delete_old(self) -> None:
        ended = [key for key in self._searches if key not in self._running]
        for key in ended[: max(len(self._searches) - _MAX_KEPT, 0)]:
            del self._searches[key]

    def find(self, search_id: str) -> CauseSearch | None:
        """Return the search with this ID. Return None if there is no such search."""
        with self._lock:
            return self._searches.get(search_id)

    def cancel(self, search_id: str) -> None:
        """Stop a search if it runs, and wait until its process has ended."""
        with self._lock:
            running = self._running.get(search_id)
        if running:
            canceled, thread = running
            canceled.set()
            thread.join(_STOP_SECONDS)

    def wait(self, search_id: str) -> None:
        """Wait until a search has ended."""
        with self._lock:
            running = self._running.get(search_id)
        if running:
            running[1].join()

    def close(self) -> None:
        """Cancel all searches."""
        with self._lock:
            running = tuple(self._running)
        for search_id in running:
            self.cancel(search_id)
