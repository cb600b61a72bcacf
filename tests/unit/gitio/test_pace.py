"""So many pushes a minute, with time ticked by hand."""

from __future__ import annotations

from reconciler.gitio.pace import Pace


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
    pace = Pace(2, clock, clock.sleep)
    taken = []
    for _ in range(6):
        pace.wait()
        taken.append(clock.now)
        clock.now += 1

    assert taken == [0, 1, 60, 61, 120, 121]


def test_who_is_slow_anyway_never_waits() -> None:
    clock = Clock()
    pace = Pace(1, clock, clock.sleep)
    for _ in range(3):
        pace.wait()
        clock.now += 100

    assert not any(clock.slept)


def test_zero_is_without_limit() -> None:
    clock = Clock()
    pace = Pace(0, clock, clock.sleep)
    for _ in range(1000):
        pace.wait()

    assert clock.slept == []
