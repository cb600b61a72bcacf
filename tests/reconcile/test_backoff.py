"""The back-off of remotes: each failure doubles it up to a limit, and a success or a person ends it."""

from __future__ import annotations

import pytest

from reconciler.reconcile.remotes.scheduling import Backoff


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("failures", "rest"),
    [
        pytest.param(1, 5.0, id="the-first-failure-rests-the-base"),
        pytest.param(2, 10.0, id="the-second-twice-as-long"),
        pytest.param(4, 40.0, id="and-so-on"),
        pytest.param(9, 60.0, id="up-to-the-bound"),
        pytest.param(2_000, 60.0, id="after-days-of-failures-still-the-bound"),
    ],
)
def test_each_failure_increases_the_back_off(failures: int, rest: float) -> None:
    clock = Clock()
    backoff = Backoff(5.0, 60.0, clock)
    for _ in range(failures):
        backoff.record_failure("fleet")

    assert backoff.remaining_seconds == {"fleet": rest}


def test_a_remote_is_fetched_again_after_its_back_off() -> None:
    clock = Clock()
    backoff = Backoff(5.0, 60.0, clock)
    backoff.record_failure("fleet")
    clock.now += 4.9
    before = backoff.is_waiting("fleet")
    clock.now += 0.2

    assert (before, backoff.is_waiting("fleet")) == (True, False)


def test_other_remotes_are_not_held_up() -> None:
    backoff = Backoff(5.0, 60.0, Clock())
    backoff.record_failure("fleet")

    assert not backoff.is_waiting("catalog")


def test_success_resets_the_failures() -> None:
    backoff = Backoff(5.0, 60.0, Clock())
    backoff.record_failure("fleet")
    backoff.record_success("fleet")
    backoff.record_failure("fleet")

    assert backoff.remaining_seconds == {"fleet": 5.0}


def test_remotes_with_an_ended_back_off_are_fetched_at_once_but_their_failures_count() -> None:
    clock = Clock()
    backoff = Backoff(5.0, 60.0, clock)
    backoff.record_failure("fleet")
    backoff.retry_now()
    rests = backoff.is_waiting("fleet")
    backoff.record_failure("fleet")

    assert (rests, backoff.remaining_seconds) == (False, {"fleet": 10.0})


def test_a_person_ends_the_back_off_of_one_remote() -> None:
    backoff = Backoff(5.0, 60.0, Clock())
    backoff.record_failure("fleet")
    backoff.record_failure("other")
    backoff.retry("fleet")
    waiting = [backoff.is_waiting(key) for key in ("fleet", "other")]
    backoff.record_failure("fleet")

    assert waiting == [False, True]
    assert backoff.is_waiting("fleet")
    assert (backoff.count_failures("fleet"), backoff.count_failures("unknown")) == (2, 0)


def test_a_retry_of_a_working_remote_does_not_shorten_its_next_back_off() -> None:
    backoff = Backoff(5.0, 60.0, Clock())
    backoff.retry("fleet")
    backoff.record_failure("fleet")

    assert backoff.is_waiting("fleet")
