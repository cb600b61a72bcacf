"""Lanes: work on many remotes at once, each in a thread of its own, of which none waits for the slowest."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")
# how long what was interrupted may take to end
_LAST_SECONDS = 10.0


@dataclass(frozen=True)
class Flow:
    """How many remotes are fetched and written to at once, and how long a pass waits for each of them.

    `wake` is called when one has ended that a pass went on without.
    """

    max_fetches: int = 8
    max_pushes: int = 8
    patience_seconds: float = math.inf
    wake: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic


@dataclass(eq=False)
class _Job(Generic[_T]):
    """One remote's work. `late`: somebody went on without it."""

    do: Callable[[], _T]
    began: float
    ended: float | None = None
    late: bool = False
    result: tuple[_T] | None = None
    error: BaseException | None = None


@dataclass(frozen=True)
class Ended(Generic[_T]):
    """What a job came to, and whether it took no longer than the patience there is."""

    result: _T
    in_time: bool


class Lane(Generic[_T]):
    """Does jobs, `most` at once, and waits for each of them as long as the patience of `flow`, after it began.

    What takes longer is late: it goes on and keeps its name taken, but no place, so that it holds up nobody. When it
    ends, `wake` is called, once it can be taken. What a job raises is raised where it is taken.
    """

    def __init__(self, most: int, flow: Flow) -> None:
        self._most = most
        self._patience = flow.patience_seconds
        self._wake = flow.wake
        self._clock = flow.clock
        self._changed = threading.Condition()
        self._jobs: dict[str, _Job[_T]] = {}

    @property
    def under_way(self) -> Set[str]:
        """The names whose jobs were late and have not been taken, ended or not."""
        with self._changed:
            return frozenset(self._jobs)

    def is_under_way(self, name: str) -> bool:
        """Return whether a job was late and has not been taken."""
        with self._changed:
            return name in self._jobs

    def take(self, name: str) -> Ended[_T] | None:
        """Return what a late job came to, if it has ended, and forget it."""
        with self._changed:
            job = self._jobs.get(name)
            if job is None or job.ended is None:
                return None
            del self._jobs[name]
        return self._told(job)

    def run(self, jobs: Mapping[str, Callable[[], _T]], unawaited: Set[str] = frozenset()) -> dict[str, Ended[_T]]:
        """Do jobs by name, none of them under way, and return what those came to that ended in time.

        `unawaited` ones are late from the start. Of these, too, there are not more than `most` at once; those that
        found no place were not begun.
        """
        waiting = [name for name in jobs if name not in unawaited]
        awaited = set(waiting)
        with self._changed:
            for name in (one for one in jobs if one in unawaited):
                if sum(job.late and job.ended is None for job in self._jobs.values()) < self._most:
                    self._begin(name, jobs[name], late=True)
            while True:
                running = [job for job in map(self._jobs.get, awaited) if job and not job.late and job.ended is None]
                for name in self._some(waiting, self._most - len(running)):
                    running.append(self._begin(name, jobs[name]))
                if not running:
                    break
                left = min(job.began for job in running) + self._patience - self._clock()
                if left > 0:
                    self._changed.wait(None if math.isinf(left) else left)
                for job in running:
                    job.late = job.ended is None and job.began + self._patience <= self._clock()
            ended = [name for name in jobs if name in self._jobs and self._jobs[name].ended is not None]
            done = {name: self._jobs.pop(name) for name in ended}
        return {name: self._told(job) for name, job in done.items()}

    def join(self) -> None:
        """Wait until all that is under way has ended; for who has interrupted it."""
        with self._changed:
            self._changed.wait_for(lambda: all(job.ended is not None for job in self._jobs.values()), _LAST_SECONDS)

    def _some(self, waiting: list[str], most: int) -> Iterator[str]:
        for _ in range(min(most, len(waiting))):
            yield waiting.pop(0)

    def _begin(self, name: str, do: Callable[[], _T], *, late: bool = False) -> _Job[_T]:
        job = self._jobs[name] = _Job(do, self._clock(), late=late)
        # not joined when the process ends: a remote that says nothing must not hold that up
        threading.Thread(target=self._do, args=(job,), name=f"remote {len(self._jobs)}", daemon=True).start()
        return job

    def _do(self, job: _Job[_T]) -> None:
        try:
            job.result = (job.do(),)
        except BaseException as error:  # noqa: BLE001  it is raised in the thread that takes the job
            job.error = error
        with self._changed:
            job.ended = self._clock()
            self._changed.notify_all()
            is_late = job.late
        if is_late:
            self._wake()

    def _told(self, job: _Job[_T]) -> Ended[_T]:
        if job.error:
            raise job.error
        assert job.ended is not None, "nobody takes what has not ended"
        assert job.result, "who ends without an error has a result"
        return Ended(job.result[0], job.ended - job.began <= self._patience)
