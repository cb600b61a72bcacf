"""Tests of the durations of phases: nested phases, repeated phases, and phases that are not measured."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from reconciler.telemetry.phases import measure_phases, phase
from reconciler.telemetry.progress import progress


class ManualClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run_nested(clock: ManualClock) -> None:
    with phase("plan"):
        clock.now += 1
        with phase("render"):
            clock.now += 10
        clock.now += 100
    clock.now += 1_000


def run_twice(clock: ManualClock) -> None:
    for seconds in (1, 20):
        with phase("fetch"):
            clock.now += seconds


def run_in_a_thread(clock: ManualClock) -> None:
    def work() -> None:
        with phase("push"):
            clock.now += 1

    with phase("fetch"):
        thread = Thread(target=work)
        thread.start()
        thread.join()


def run_with_an_error(clock: ManualClock) -> None:
    def fail() -> None:
        with phase("fetch"):
            clock.now += 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with phase("plan"):
        clock.now += 5


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        pytest.param(run_nested, {"plan": 101, "render": 10}, id="an-inner-phase-is-not-counted-twice"),
        pytest.param(run_twice, {"fetch": 21}, id="a-repeated-phase-is-added"),
        pytest.param(run_in_a_thread, {"fetch": 1}, id="other-threads-have-no-phases"),
        pytest.param(run_with_an_error, {"fetch": 1, "plan": 5}, id="an-exception-ends-a-phase"),
    ],
)
def test_durations(work: Callable[[ManualClock], None], expected: dict[str, float]) -> None:
    clock = ManualClock()
    with measure_phases(clock) as phases:
        work(clock)
    run_twice(clock)

    assert phases.durations == expected


def test_a_new_phase_is_progress() -> None:
    with measure_phases(ManualClock()), phase("render"):
        assert progress.last[1] == "render"
    assert progress.last[1] == "pass"
