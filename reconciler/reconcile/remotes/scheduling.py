"""Schedules the work on remotes: back-off after failures, and a worker pool that does not wait for slow remotes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Generic, TypeVar

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.telemetry.metrics import QUEUE_LENGTH


@dataclass(frozen=True)
class _Wait:
    failures: int
    until: float


class Backoff:
    """Exponential back-off by key. A key is, for example, the URL of a remote.

    After the first failure, the wait takes `base_seconds`. Each further failure doubles the wait, up to `max_seconds`.
    `clock` returns the seconds of a monotonic clock.
    """

    def __init__(self, base_seconds: float, max_seconds: float, clock: Callable[[], float]) -> None:
        self._base = base_seconds
        self._max = max_seconds
        self._clock = clock
        self._waits: dict[str, _Wait] = {}
        # The keys whose wait another thread has ended. Such a thread must not change `_waits`, because the pass
        # iterates over it.
        self._retried: set[str] = set()

    def is_waiting(self, key: str) -> bool:
        """Return whether the wait after the last failure of a key has not ended yet."""
        wait = self._waits.get(key)
        return wait is not None and key not in self._retried and self._clock() < wait.until

    def record_failure(self, key: str, min_seconds: float = 0.0) -> float:
        """Record a failure of a key, and start a wait of at least `min_seconds`.

        Return the length of the wait in seconds.
        """
        self._retried.discard(key)
        failures = self.count_failures(key)
        seconds = max(min(self._base * 2.0 ** min(failures, 30), self._max), min_seconds)
        self._waits[key] = _Wait(failures + 1, self._clock() + seconds)
        return seconds

    def record_success(self, key: str) -> None:
        """Delete the failures of a key, so that the next failure starts with the shortest wait."""
        self._retried.discard(key)
        self._waits.pop(key, None)

    def count_failures(self, key: str) -> int:
        """Return the number of failures of a key since its last success."""
        wait = self._waits.get(key)
        return wait.failures if wait else 0

    def retry(self, key: str) -> None:
        """End the wait of one key, because a person requested a retry. Any thread can call this function."""
        self._retried.add(key)

    def retry_now(self) -> None:
        """End all waits, because a person requested a pass now. The numbers of failures are kept."""
        now = self._clock()
        self._waits = {key: replace(wait, until=now) for key, wait in self._waits.items()}

    @property
    def remaining_seconds(self) -> Mapping[str, float]:
        """The remaining seconds of each wait, by key."""
        now = self._clock()
        return {key: max(wait.until - now, 0.0) for key, wait in self._waits.items()}


_T = TypeVar("_T")
# The maximal time to wait for the end of interrupted jobs.
_INTERRUPT_SECONDS = 10.0


@dataclass(frozen=True)
class RemoteLimits:
    """Limits of the work on remotes.

    Attributes:
        max_pushes: The maximal number of remotes that are pushed to at the same time.
        max_wait_seconds: The maximal time that a pass waits for one remote.
        notify: Called when a late job ends. A job is late if the pass does not wait for it any longer.
        clock: Returns the seconds of a monotonic clock.
        should_log_outages: Whether an event is logged when a remote becomes unavailable, and when it recovers.
    """

    max_fetches: int = 8
    max_pushes: int = 8
    max_wait_seconds: float = math.inf
    notify: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    should_log_outages: bool = False


@dataclass(eq=False)
class _Job(Generic[_T]):
    """The work on one remote. A job is late if it takes longer than the pass waits."""

    call: Callable[[], _T]
    started: float
    ended: float | None = None
    is_late: bool = False
    result: tuple[_T] | None = None
    error: BaseException | None = None


@dataclass(frozen=True)
class WorkerResult(Generic[_T]):
    """The result of a job, and whether the job ended within the maximal wait."""

    result: _T
    is_in_time: bool


class WorkerPool(Generic[_T]):
    """Runs up to `max_jobs` jobs at the same time, and waits a limited time for each of them.

    A job that takes longer is late. A late job continues, but it is not included in `max_jobs`. No other job can have
    its name until its result is taken. When a late job ends, `limits.notify` is called. An exception in a job is raised
    when the result of the job is taken. `queue` is the name of the pool in metrics.
    """

    def __init__(self, queue: str, max_jobs: int, limits: RemoteLimits) -> None:
        self._queue = queue
        self._max_jobs = max_jobs
        self._max_wait = limits.max_wait_seconds
        self._notify = limits.notify
        self._clock = limits.clock
        self._changed = threading.Condition()
        self._jobs: dict[str, _Job[_T]] = {}

    @property
    def late_jobs(self) -> Set[str]:
        """The names of all late jobs whose results were not taken yet."""
        with self._changed:
            return frozenset(self._jobs)

    def is_late(self, name: str) -> bool:
        """Return whether a job is late and its result was not taken yet."""
        with self._changed:
            return name in self._jobs

    def take_result(self, name: str) -> WorkerResult[_T] | None:
        """Remove a late job that has ended, and return its result. Return None if no such job has ended."""
        with self._changed:
            job = self._jobs.get(name)
            if job is None or job.ended is None:
                return None
            del self._jobs[name]
        return self._unwrap(job)

    def run(
        self, jobs: Mapping[str, Callable[[], _T]], background: Set[str] = frozenset()
    ) -> dict[str, WorkerResult[_T]]:
        """Run jobs by name, and return the results of the jobs that ended in time.

        A job must not have the name of a late job. The jobs in `background` are late from their start, so that the call
        does not wait for them. If `max_jobs` late jobs are running, a background job does not start.
        """
        waiting = [name for name in jobs if name not in background]
        awaited = set(waiting)
        with self._changed:
            for name in (name for name in jobs if name in background):
                if sum(job.is_late and job.ended is None for job in self._jobs.values()) < self._max_jobs:
                    self._start(name, jobs[name], is_late=True)
            while True:
                running = [job for job in map(self._jobs.get, awaited) if job and not job.is_late and job.ended is None]
                for name in self._take_first(waiting, self._max_jobs - len(running)):
                    running.append(self._start(name, jobs[name]))
                QUEUE_LENGTH.set(len(waiting), self._queue)
                if not running:
                    break
                remaining = min(job.started for job in running) + self._max_wait - self._clock()
                if remaining > 0:
                    self._changed.wait(None if math.isinf(remaining) else remaining)
                for job in running:
                    job.is_late = job.ended is None and job.started + self._max_wait <= self._clock()
            ended = [name for name in jobs if name in self._jobs and self._jobs[name].ended is not None]
            done = {name: self._jobs.pop(name) for name in ended}
        return {name: self._unwrap(job) for name, job in done.items()}

    def join(self) -> None:
        """Wait a limited time until all interrupted jobs have ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: all(job.ended is not None for job in self._jobs.values()), _INTERRUPT_SECONDS
            )

    def _take_first(self, names: list[str], count: int) -> Iterator[str]:
        for _ in range(min(count, len(names))):
            yield names.pop(0)

    def _start(self, name: str, call: Callable[[], _T], *, is_late: bool = False) -> _Job[_T]:
        job = self._jobs[name] = _Job(call, self._clock(), is_late=is_late)
        # Use a daemon thread, because a remote that does not respond must not delay the end of the process.
        threading.Thread(target=self._run_job, args=(job,), name=f"remote {len(self._jobs)}", daemon=True).start()
        return job

    def _run_job(self, job: _Job[_T]) -> None:
        try:
            job.result = (job.call(),)
        except BaseException as error:  # noqa: BLE001  it is raised in the thread that takes the result
            job.error = error
        with self._changed:
            job.ended = self._clock()
            self._changed.notify_all()
            is_late = job.is_late
        if is_late:
            self._notify()

    def _unwrap(self, job: _Job[_T]) -> WorkerResult[_T]:
        if job.error:
            raise job.error
        assert job.ended is not None, "only ended jobs are unwrapped"
        assert job.result, "a job without an error has a result"
        return WorkerResult(job.result[0], job.ended - job.started <= self._max_wait)
