"""Tests of the limit of pushes per minute, with a fake clock."""

from __future__ import annotations

import pytest

from reconciler.git.rate_limit import PushRateLimiter


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_no_minute_has_more_pushes_than_the_limit() -> None:
    clock = FakeClock()
    pace = PushRateLimiter(2, clock, clock.sleep)
    values = []
    for _ in range(6):
        pace.acquire()
        values.append(clock.now)
        clock.now += 1

    assert values == [0, 1, 60, 61, 120, 121]


def test_slow_caller_never_waits() -> None:
    clock = FakeClock()
    pace = PushRateLimiter(1, clock, clock.sleep)
    for _ in range(3):
        pace.acquire()
        clock.now += 100

    assert not any(clock.slept)


def test_zero_means_no_limit() -> None:
    clock = FakeClock()
    pace = PushRateLimiter(0, clock, clock.sleep)
    for _ in range(1000):
        pace.acquire()

    assert clock.slept == []


def test_caller_with_a_too_long_wait_is_postponed() -> None:
    clock = FakeClock()
    pace = PushRateLimiter(2, clock, clock.sleep, max_wait_seconds=10)
    values = []
    for _ in range(4):
        values.append(pace.acquire())
        clock.now += 1
    clock.now = 52
    values.append(pace.acquire())

    assert values == [None, None, 58, 57, None]
    assert clock.slept == [8]


def test_started_work_is_not_postponed_and_is_counted() -> None:
    clock = FakeClock()
    pace = PushRateLimiter(1, clock, clock.sleep, max_wait_seconds=10)
    pace.acquire()
    clock.now = 30
    pace.acquire_unconditionally()

    assert pace.acquire() == 60
    assert clock.slept == []


@pytest.mark.parametrize(
    ("per_minute", "expected"),
    [
        pytest.param(3, [None, None, 60, None, 60], id="one-of-three"),
        pytest.param(1, [60, 60, 60, None, 60], id="the-only-one"),
        pytest.param(0, [None] * 5, id="without-limit"),
    ],
)
def test_reserved_calls_stay_available(per_minute: int, expected: list[float | None]) -> None:
    clock = FakeClock()
    pace = PushRateLimiter(per_minute, clock, clock.sleep, max_wait_seconds=10)

    assert [*(pace.acquire(reserved=1) for _ in range(3)), pace.acquire(), pace.acquire()] == expected


def test_caller_without_wait_limit_ignores_reserved_calls_and_reports_each_wait() -> None:
    clock = FakeClock()
    values: list[float] = []
    pace = PushRateLimiter(1, clock, clock.sleep, on_wait=values.append)

    assert [pace.acquire(reserved=1), pace.acquire(reserved=1), pace.acquire_unconditionally()] == [None, None, None]
    assert clock.slept == [60, 60]
    assert values == [60, 0, 60, 0]
