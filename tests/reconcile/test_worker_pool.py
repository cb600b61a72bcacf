"""The worker pool: jobs that it waits for, late jobs, and free threads, with a manual clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from reconciler.reconcile.remotes.scheduling import RemoteLimits, WorkerPool

TIMEOUT_SECONDS = 60.0


class Remotes:
    """Jobs that end when the test releases them, and a clock that advances after a number of ended jobs."""

    def __init__(self) -> None:
        self.ended = 0
        self.jumps_after = 2
        self.gates: dict[str, threading.Event] = {}
        self.woken = threading.Semaphore(0)
        self.limits = RemoteLimits(max_wait_seconds=10, notify=self.woken.release, clock=self.clock)

    def clock(self) -> float:
        # The pool reads the clock when one of its threads has ended.
        self.ended += threading.current_thread() is not threading.main_thread()
        return 11.0 if self.ended >= self.jumps_after else 0.0

    def make_fast_job(self, name: str) -> Callable[[], str]:
        """Return a job that ends at once."""

        def job() -> str:
            return f"{name} finished"

        return job

    def make_blocked_job(self, name: str) -> Callable[[], str]:
        """Return a job that does not respond until the test releases it."""
        gate = self.gates[name] = threading.Event()

        def job() -> str:
            assert gate.wait(TIMEOUT_SECONDS)
            return f"{name} finished"

        return job

    def release(self, name: str) -> None:
        """Release a late job, and wait until it has ended."""
        self.gates[name].set()
        assert self.woken.acquire(timeout=TIMEOUT_SECONDS)


@pytest.fixture
def remotes() -> Iterator[Remotes]:
    new_remotes = Remotes()
    yield new_remotes
    for gate in new_remotes.gates.values():
        gate.set()


def run_jobs(
    pool: WorkerPool[str], jobs: dict[str, Callable[[], str]], unawaited: frozenset[str] = frozenset()
) -> list[str]:
    return sorted(end.result for end in pool.run(jobs, unawaited).values())


def test_without_a_limit_the_pool_waits_for_all_jobs(remotes: Remotes) -> None:
    pool: WorkerPool[str] = WorkerPool("fetch", 2, RemoteLimits())

    assert run_jobs(pool, {name: remotes.make_fast_job(name) for name in "abc"}) == [
        "a finished",
        "b finished",
        "c finished",
    ]
    assert not pool.late_jobs


def test_a_blocked_job_is_late_and_its_result_is_taken_later(remotes: Remotes) -> None:
    pool: WorkerPool[str] = WorkerPool("fetch", 8, remotes.limits)
    jobs = {"dead": remotes.make_blocked_job("dead"), "a": remotes.make_fast_job("a"), "b": remotes.make_fast_job("b")}

    assert run_jobs(pool, jobs) == ["a finished", "b finished"]
    assert (pool.late_jobs, pool.take_result("dead")) == ({"dead"}, None)

    remotes.release("dead")
    worker_result = pool.take_result("dead")

    assert worker_result is not None
    assert (worker_result.result, worker_result.is_in_time) == ("dead finished", False)
    assert not pool.late_jobs


def test_blocked_jobs_occupy_no_thread(remotes: Remotes) -> None:
    # The clock advances after both jobs have started.
    result = count()
    pool: WorkerPool[str] = WorkerPool(
        "fetch", 2, replace(remotes.limits, clock=lambda: 0.0 if next(result) < 2 else 11.0)
    )
    jobs = {
        "dead": remotes.make_blocked_job("dead"),
        "gone": remotes.make_blocked_job("gone"),
        "a": remotes.make_fast_job("a"),
    }

    assert run_jobs(pool, jobs) == ["a finished"]
    assert pool.late_jobs == {"dead", "gone"}


def test_no_wait_for_unawaited_jobs_and_a_limited_number_starts(remotes: Remotes) -> None:
    pool: WorkerPool[str] = WorkerPool("fetch", 2, remotes.limits)
    slow = {name: remotes.make_blocked_job(name) for name in "xyz"}

    assert run_jobs(pool, {**slow, "a": remotes.make_fast_job("a")}, frozenset("xyz")) == ["a finished"]
    assert pool.late_jobs == {"x", "y"}

    remotes.release("x")
    pool.run({"z": slow["z"]}, frozenset("z"))

    assert pool.late_jobs == {"x", "y", "z"}


def test_an_unexpected_exception_is_raised_when_the_result_is_taken(remotes: Remotes) -> None:
    pool: WorkerPool[str] = WorkerPool("fetch", 1, remotes.limits)

    def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pool.run({"a": broken})
