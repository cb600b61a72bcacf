"""The phases of a pass, and their durations.

Only the thread that runs the pass can enter a phase. In all other threads, and outside of a measured pass, `phase` does
nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

from reconciler.telemetry.progress import progress
from reconciler.telemetry.traces import span

PHASES = ("fetch", "snapshot", "plan", "render", "commit", "push", "pull_requests", "status")


class PhaseClock:
    """Measures the phases of one pass. The duration of a phase does not include the phases inside of it.

    Attributes:
        durations: The seconds of each phase that the pass has entered.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._thread = threading.get_ident()
        self._names: list[str] = []
        self._changed_at = 0.0
        self.durations: dict[str, float] = {}

    @contextmanager
    def enter(self, name: str, counts: Mapping[str, int]) -> Iterator[None]:
        """Measure the `with` block as a part of the phase `name`. The span of the phase has `counts` as attributes."""
        if threading.get_ident() != self._thread:
            yield
            return
        self._add_elapsed_time()
        self._names.append(name)
        progress.update(name)
        try:
            # A phase inside of another phase has no span, because there can be one such phase for each package.
            with span(f"reconciler.{name}", counts) if len(self._names) == 1 else nullcontext():
                yield
        finally:
            self._add_elapsed_time()
            self._names.pop()
            progress.update("pass")

    def _add_elapsed_time(self) -> None:
        now = self._clock()
        if self._names:
            self.durations[self._names[-1]] = self.durations.get(self._names[-1], 0.0) + now - self._changed_at
        self._changed_at = now


_current: PhaseClock | None = None


@contextmanager
def measure_phases(clock: Callable[[], float] = time.perf_counter) -> Iterator[PhaseClock]:
    """Measure the phases of the pass that runs in the `with` block."""
    global _current  # noqa: PLW0603 - a process runs one pass at a time
    _current = phases = PhaseClock(clock)
    try:
        yield phases
    finally:
        _current = None


@contextmanager
def phase(name: str, **counts: int) -> Iterator[None]:
    """Measure the `with` block as a phase of the running pass. `name` is one of `PHASES`.

    Args:
        counts: The numbers of objects that the phase processes, for its span. The plural noun is the key.
    """
    if _current is None:
        yield
        return
    with _current.enter(name, counts):
        yield
