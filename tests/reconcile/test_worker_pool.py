"""Lanes: who is waited for, who is left behind, and who finds a place; time is ticked by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from reconciler.reconcile.remotes.scheduling import RemoteLimits, WorkerPool

GENEROUS = 60.0


class Remotes:
    """Jobs that end when they are let go, and a clock that jumps once so many of them have ended."""

    def __init__(self) -> None:
        self.ended = 0
        self.jumps_after = 2
        self.gates: dict[str, threading.Event] = {}
        self.woken = threading.Semaphore(0)
        self.flow = RemoteLimits(max_wait_seconds=10, notify=self.woken.release, clock=self.clock)

    def clock(self) -> float:
        # the lane asks for the time when one of its threads has ended
        self.ended += threading.current_thread() is not threading.main_thread()
        return 11.0 if self.ended >= self.jumps_after else 0.0

    def quick(self, name: str) -> Callable[[], str]:
        """Return a job that ends at once."""

        def job() -> str:
            return f"{name} came"

        return job

    def hanging(self, name: str) -> Callable[[], str]:
        """Return a job that says nothing until it is let go."""
        gate = self.gates[name] = threading.Event()

        def job() -> str:
            assert gate.wait(GENEROUS)
            return f"{name} came"

        return job

    def let_go(self, name: str) -> None:
        """Let a late job end, and wait until it has."""
        self.gates[name].set()
        assert self.woken.acquire(timeout=GENEROUS)


@pytest.fixture
def remotes() -> Iterator[Remotes]:
    new_remotes = Remotes()
    yield new_remotes
    for gate in new_remotes.gates.values():
        gate.set()


def came(
    lane: WorkerPool[str], jobs: dict[str, Callable[[], str]], unawaited: frozenset[str] = frozenset()
) -> list[str]:
    return sorted(end.result for end in lane.run(jobs, unawaited).values())


def test_without_an_end_to_patience_all_are_waited_for(remotes: Remotes) -> None:
    lane: WorkerPool[str] = WorkerPool("fetch", 2, RemoteLimits())

    assert came(lane, {name: remotes.quick(name) for name in "abc"}) == ["a came", "b came", "c came"]
    assert not lane.late_jobs


def test_one_that_hangs_is_left_behind_and_taken_later(remotes: Remotes) -> None:
    lane: WorkerPool[str] = WorkerPool("fetch", 8, remotes.flow)
    jobs = {"dead": remotes.hanging("dead"), "a": remotes.quick("a"), "b": remotes.quick("b")}

    assert came(lane, jobs) == ["a came", "b came"]
    assert (lane.late_jobs, lane.take_result("dead")) == ({"dead"}, None)

    remotes.let_go("dead")
    worker_result = lane.take_result("dead")

    assert worker_result is not None
    assert (worker_result.result, worker_result.is_in_time) == ("dead came", False)
    assert not lane.late_jobs


def test_those_that_hang_keep_no_place(remotes: Remotes) -> None:
    # the clock jumps once both have begun
    result = count()
    lane: WorkerPool[str] = WorkerPool(
        "fetch", 2, replace(remotes.flow, clock=lambda: 0.0 if next(result) < 2 else 11.0)
    )
    jobs = {"dead": remotes.hanging("dead"), "gone": remotes.hanging("gone"), "a": remotes.quick("a")}

    assert came(lane, jobs) == ["a came"]
    assert lane.late_jobs == {"dead", "gone"}


def test_nobody_waits_for_the_unawaited_and_only_so_many_begin(remotes: Remotes) -> None:
    lane: WorkerPool[str] = WorkerPool("fetch", 2, remotes.flow)
    slow = {name: remotes.hanging(name) for name in "xyz"}

    assert came(lane, {**slow, "a": remotes.quick("a")}, frozenset("xyz")) == ["a came"]
    assert lane.late_jobs == {"x", "y"}

    remotes.let_go("x")
    lane.run({"z": slow["z"]}, frozenset("z"))

    assert lane.late_jobs == {"x", "y", "z"}


def test_a_mistake_of_ours_comes_to_light_where_it_is_taken(remotes: Remotes) -> None:
    lane: WorkerPool[str] = WorkerPool("fetch", 1, remotes.flow)

    def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lane.run({"a": broken})
