"""The limit of write requests to a forge, with a manual clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.forge.errors import ForgeBusyError
from reconciler.forge.rate_limits import RateLimiter
from tests.support.fake_forge.clock import Clock


def has_budget(take: Callable[[], None]) -> bool:
    try:
        take()
    except ForgeBusyError:
        return False
    return True


def test_no_more_writes_than_the_limit_in_any_minute() -> None:
    clock = Clock(0)
    budget = RateLimiter(2, 0, clock)
    moments = []
    while clock.now < 125:
        moments += [clock.now] if has_budget(budget.count_write) else []
        clock.now += 1

    assert moments == [0, 1, 60, 61, 120, 121]


def test_no_more_new_pull_requests_than_the_limit_in_any_hour() -> None:
    clock = Clock(0)
    budget = RateLimiter(0, 2, clock)
    moments = []
    while clock.now < 7300:
        moments += [clock.now] if has_budget(budget.count_new_request) else []
        clock.now += 100

    assert moments == [0, 100, 3600, 3700, 7200]


def test_who_is_refused_hears_when_to_come_again() -> None:
    clock = Clock(1000)
    budget = RateLimiter(1, 0, clock)
    budget.count_write()
    clock.now += 20
    with pytest.raises(ForgeBusyError, match="1 writes per minute") as refused:
        budget.count_write()

    assert refused.value.until == 1060


def test_a_new_pull_request_is_also_a_write() -> None:
    budget = RateLimiter(1, 5, Clock())
    budget.count_new_request()

    assert not has_budget(budget.count_write)


def test_without_a_write_left_no_new_pull_request_is_used_up() -> None:
    clock = Clock()
    budget = RateLimiter(1, 1, clock)
    budget.count_write()
    assert not has_budget(budget.count_new_request)
    clock.now += 60

    assert has_budget(budget.count_new_request)


def test_without_a_new_pull_request_left_no_write_is_used_up() -> None:
    budget = RateLimiter(2, 1, Clock())
    budget.count_new_request()
    assert not has_budget(budget.count_new_request)

    assert has_budget(budget.count_write)


def test_zero_is_without_limit() -> None:
    budget = RateLimiter(0, 0, Clock())

    assert all(has_budget(budget.count_new_request) for _ in range(1000))


@pytest.mark.parametrize("call", ["count_write", "count_new_request", "check_pause"])
def test_a_forge_that_asked_for_patience_is_left_alone(call: str) -> None:
    clock = Clock(0)
    budget = RateLimiter(0, 0, clock)
    budget.pause_until(30)
    budget.pause_until(10)
    clock.now = 29
    with pytest.raises(ForgeBusyError) as refused:
        getattr(budget, call)()
    assert refused.value.until == 30
    clock.now = 30

    assert has_budget(getattr(budget, call))


def test_a_clock_that_is_set_back_does_not_block_for_hours() -> None:
    clock = Clock(100_000)
    budget = RateLimiter(1, 1, clock)
    budget.count_new_request()
    clock.now = 50_000

    assert has_budget(budget.count_new_request)


def test_threads_together_get_no_more_than_the_limit() -> None:
    budget = RateLimiter(50, 0, Clock())
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: has_budget(budget.count_write), range(200)))

    assert sum(got) == 50
