"""So many pushes a minute, with time ticked by hand."""

from __future__ import annotations

import pytest

from reconciler.git.rate_limit import PushRateLimiter


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_no_more_than_the_limit_in_any_minute() -> None:
    clock = Clock()
    pace = PushRateLimiter(2, clock, clock.sleep)
    values = []
    for _ in range(6):
        pace.acquire()
        values.append(clock.now)
        clock.now += 1

    assert values == [0, 1, 60, 61, 120, 121]


def test_who_is_slow_anyway_never_waits() -> None:
    clock = Clock()
    pace = PushRateLimiter(1, clock, clock.sleep)
    for _ in range(3):
        pace.acquire()
        clock.now += 100

    assert not any(clock.slept)


def test_zero_is_without_limit() -> None:
    clock = Clock()
    pace = PushRateLimiter(0, clock, clock.sleep)
    for _ in range(1000):
        pace.acquire()

    assert clock.slept == []


def test_who_would_wait_too_long_is_put_off_until_then() -> None:
    clock = Clock()
    pace = PushRateLimiter(2, clock, clock.sleep, max_wait_seconds=10)
    values = []
    for _ in range(4):
        values.append(pace.acquire())
        clock.now += 1
    clock.now = 52
    values.append(pace.acquire())

    assert values == [None, None, 58, 57, None]
    assert clock.slept == [8]


def test_what_has_begun_is_not_put_off_and_counts() -> None:
    clock = Clock()
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
def test_calls_are_left_for_who_comes_later(per_minute: int, expected: list[float | None]) -> None:
    clock = Clock()
    pace = PushRateLimiter(per_minute, clock, clock.sleep, max_wait_seconds=10)

    assert [*(pace.acquire(reserved=1) for _ in range(3)), pace.acquire(), pace.acquire()] == expected


def test_who_has_all_the_time_there_is_leaves_nothing_and_tells_of_each_sleep() -> None:
    clock = Clock()
    values: list[float] = []
    pace = PushRateLimiter(1, clock, clock.sleep, on_wait=values.append)

    assert [pace.acquire(reserved=1), pace.acquire(reserved=1), pace.acquire_unconditionally()] == [None, None, None]
    assert clock.slept == [60, 60]
    assert values == [60, 0, 60, 0]
