"""The service: the schedule of passes, the effect of failures, its end and its reload."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from structlog.testing import capture_logs

from reconciler.git.errors import UnreachableError
from reconciler.service import loop
from reconciler.service.loop import (
    PollSchedule,
    ServiceWork,
    StopRequested,
    UnusableSettingsError,
    Wakeup,
    WakeupQueue,
)

RHYTHM = PollSchedule(poll_seconds=60, jitter_percent=10, max_backoff_seconds=900)


@pytest.mark.parametrize(
    ("failures", "chance", "expected"),
    [
        pytest.param(0, 0.5, 60.0, id="no-failure-is-the-poll"),
        pytest.param(0, 0.0, 54.0, id="jitter-may-shorten"),
        pytest.param(0, 1.0, 66.0, id="jitter-may-lengthen"),
        pytest.param(1, 0.5, 120.0, id="a-failure-doubles"),
        pytest.param(10, 0.5, 900.0, id="up-to-the-bound"),
    ],
)
def test_pause(failures: int, chance: float, expected: float) -> None:
    assert RHYTHM.delay_seconds(failures, chance) == pytest.approx(expected)


def serve(build: Callable[[], ServiceWork], wakeups: WakeupQueue, *arguments: Callable[[], float]) -> None:
    """Run the service with work that `build` builds at the start and at each reload."""
    loop.serve(build(), build, wakeups, *arguments)


class Scripted(WakeupQueue):
    """Wakeups that come from a list. It records how long the service waits."""

    def __init__(self, *answers: set[Wakeup]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.pauses: list[float] = []
        self.gathered: list[float] = []
        self.late: list[set[Wakeup]] = []

    def wait(self, seconds: float) -> frozenset[Wakeup]:
        self.pauses.append(seconds)
        return frozenset(self.answers.pop(0))

    def wait_for_more(self, seconds: float) -> frozenset[Wakeup]:
        self.gathered.append(seconds)
        return frozenset(self.late.pop(0) if self.late else set())


class Passes:
    """Counts passes and early fetches. The results of the passes come from a list."""

    def __init__(self, *ends: bool | Exception) -> None:
        self.ends = list(ends)
        self.ran = 0
        self.hurried = 0
        self.reasons: list[frozenset[Wakeup]] = []

    def run(self, reasons: frozenset[Wakeup]) -> bool:
        self.ran += 1
        self.reasons.append(reasons)
        end = self.ends.pop(0) if self.ends else True
        if isinstance(end, Exception):
            raise end
        return end

    def hurry(self) -> None:
        self.hurried += 1

    def work(self) -> ServiceWork:
        return ServiceWork(self.run, self.hurry, RHYTHM, ())


def test_passes_run_until_a_stop() -> None:
    passes = Passes()
    serve(passes.work, Scripted({Wakeup.TIMER}, {Wakeup.TIMER}, {Wakeup.STOP}), lambda: 0.5)

    assert passes.ran == 3


def test_a_pass_receives_its_reasons() -> None:
    first, second = Passes(), Passes()
    works = [first.work(), second.work()]
    wakeups = Scripted({Wakeup.TIMER}, {Wakeup.WEBHOOK}, {Wakeup.RELOAD, Wakeup.NOW}, {Wakeup.STOP})
    wakeups.late = [{Wakeup.REMOTE}]
    serve(lambda: works.pop(0), wakeups, lambda: 0.5)

    assert first.reasons == [{Wakeup.START}, {Wakeup.TIMER}, {Wakeup.WEBHOOK, Wakeup.REMOTE}]
    assert second.reasons == [{Wakeup.RELOAD, Wakeup.NOW}]


def test_a_failed_pass_is_reported_with_the_time_until_the_next_pass() -> None:
    error, reports = UnreachableError("down"), []
    passes = Passes(error, False, error)
    work = replace(passes.work(), report_failure=lambda *report: reports.append(report))
    serve(lambda: work, Scripted({Wakeup.TIMER}, {Wakeup.TIMER}, {Wakeup.STOP}), lambda: 0.5)

    assert reports == [(error, 120.0), (error, 480.0)]


def test_failures_lengthen_the_pause_and_a_clean_pass_ends_that() -> None:
    wakeups = Scripted({Wakeup.TIMER}, {Wakeup.TIMER}, {Wakeup.TIMER}, {Wakeup.STOP})
    serve(Passes(False, UnreachableError("down"), True, True).work, wakeups, lambda: 0.5)

    assert wakeups.pauses == [120.0, 240.0, 60.0, 60.0]


@pytest.mark.parametrize(
    ("due_in", "ends", "pause"),
    [
        pytest.param(math.inf, True, 60.0, id="nothing-is-due"),
        pytest.param(20.0, True, 20.0, id="what-is-due-sooner-shortens-the-pause"),
        pytest.param(90.0, True, 60.0, id="what-is-due-later-does-not-lengthen-it"),
        pytest.param(-5.0, True, 0.0, id="what-came-due-meanwhile-is-done-at-once"),
        pytest.param(-5.0, False, 120.0, id="after-a-failure-it-waits-too"),
    ],
)
def test_the_service_starts_a_pass_when_one_is_due(due_in: float, ends: bool, pause: float) -> None:
    passes, wakeups = Passes(ends), Scripted({Wakeup.STOP})
    serve(lambda: replace(passes.work(), seconds_until_due=lambda: due_in), wakeups, lambda: 0.5)

    assert wakeups.pauses == [pause]


@pytest.mark.parametrize(
    ("reason", "hurried"),
    [
        pytest.param(Wakeup.TIMER, 1, id="the-timer-lets-remotes-rest"),
        pytest.param(Wakeup.NOW, 2, id="now-fetches-them-at-once"),
        pytest.param(Wakeup.FOLDER, 2, id="a-changed-folder-too"),
        pytest.param(Wakeup.WEBHOOK, 1, id="a-webhook-lets-them-rest"),
        pytest.param(Wakeup.RETRY, 1, id="a-retry-of-one-remote-lets-the-others-rest"),
    ],
)
def test_a_request_of_a_person_ends_the_back_off_of_remotes(reason: Wakeup, hurried: int) -> None:
    passes = Passes()
    serve(passes.work, Scripted({reason}, {Wakeup.STOP}), lambda: 0.5)

    assert passes.hurried == hurried


@pytest.mark.parametrize(
    ("reasons", "late", "gathered", "ran", "hurried"),
    [
        pytest.param({Wakeup.WEBHOOK}, {Wakeup.WEBHOOK}, [2.0], 2, 1, id="those-that-follow-end-in-the-same-pass"),
        pytest.param({Wakeup.WEBHOOK}, set(), [2.0], 2, 1, id="none-follows"),
        pytest.param({Wakeup.WEBHOOK}, {Wakeup.NOW}, [2.0], 2, 2, id="request-during-the-wait"),
        pytest.param({Wakeup.WEBHOOK}, {Wakeup.STOP}, [2.0], 1, 1, id="a-stop-meanwhile"),
        pytest.param({Wakeup.WEBHOOK, Wakeup.NOW}, set(), [], 2, 2, id="request-of-a-person-does-not-wait"),
        pytest.param({Wakeup.TIMER}, set(), [], 2, 1, id="nor-does-the-timer"),
        pytest.param({Wakeup.REMOTE}, {Wakeup.REMOTE}, [2.0], 2, 1, id="late-remotes-end-in-the-same-pass"),
    ],
)
def test_webhooks_are_gathered(
    reasons: set[Wakeup], late: set[Wakeup], gathered: list[float], ran: int, hurried: int
) -> None:
    passes, wakeups = Passes(), Scripted(reasons, {Wakeup.STOP})
    wakeups.late = [late]
    serve(lambda: replace(passes.work(), debounce_seconds=2.0), wakeups, lambda: 0.5)

    assert (wakeups.gathered, passes.ran, passes.hurried) == (gathered, ran, hurried)


@pytest.mark.parametrize(
    ("reasons", "late", "collected"),
    [
        pytest.param({Wakeup.REMOTE}, set(), 1, id="a-late-remote"),
        pytest.param({Wakeup.REMOTE}, {Wakeup.WEBHOOK}, 0, id="webhook-fetches-all"),
        pytest.param({Wakeup.REMOTE, Wakeup.NOW}, set(), 0, id="request-for-all-targets"),
        pytest.param({Wakeup.TIMER}, set(), 0, id="the-timer-too"),
    ],
)
def test_a_late_remote_causes_no_fetch_of_other_remotes(
    reasons: set[Wakeup], late: set[Wakeup], collected: int
) -> None:
    passes, wakeups, collects = Passes(), Scripted(reasons, {Wakeup.STOP}), []
    wakeups.late = [late]
    serve(lambda: replace(passes.work(), collect_late_results=lambda: collects.append(1)), wakeups, lambda: 0.5)

    assert (passes.ran, len(collects)) == (2, collected)


def test_a_late_remote_does_not_put_off_the_next_poll() -> None:
    now = [0.0]

    class Ticking(Scripted):
        def wait(self, seconds: float) -> frozenset[Wakeup]:
            now[0] += 45
            return super().wait(seconds)

    wakeups = Ticking({Wakeup.REMOTE}, {Wakeup.REMOTE}, {Wakeup.TIMER}, {Wakeup.STOP})
    serve(Passes().work, wakeups, lambda: 0.5, lambda: now[0])

    assert wakeups.pauses == [60.0, 15.0, 0.0, 60.0]


def test_background_work_ends_with_the_service_work() -> None:
    closed: list[str] = []
    works = [replace(Passes().work(), close=partial(closed.append, name)) for name in ("first", "second")]
    serve(lambda: works.pop(0), Scripted({Wakeup.RELOAD}, {Wakeup.STOP}), lambda: 0.5)

    assert closed == ["first", "second"]


@pytest.mark.emits("daemon_stopping", "settings_reloaded", "wakeup_received")
def test_a_reload_builds_the_work_anew() -> None:
    first, second = Passes(), Passes()
    works = [first.work(), replace(second.work(), changed_settings=("shard",))]
    with capture_logs() as events:
        serve(lambda: works.pop(0), Scripted({Wakeup.RELOAD}, {Wakeup.STOP}), lambda: 0.5)

    assert (first.ran, second.ran) == (1, 1)
    assert [event["changed"] for event in events if event["event"] == "settings_reloaded"] == [["shard"]]


@pytest.mark.emits("settings_refused")
def test_a_reload_that_cannot_be_used_keeps_what_there_is() -> None:
    passes = Passes()
    tries = iter([passes.work(), None])

    def build() -> ServiceWork:
        work = next(tries)
        if work is None:
            raise UnusableSettingsError("reconciler.yaml:1: poll_second: unknown setting")
        return work

    serve(build, Scripted({Wakeup.RELOAD}, {Wakeup.STOP}), lambda: 0.5)

    assert passes.ran == 2


def test_an_unexpected_exception_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        serve(Passes(ZeroDivisionError()).work, Scripted(), lambda: 0.5)


def test_a_signal_can_stop_the_service_before_its_first_pass() -> None:
    passes, wakeups = Passes(), WakeupQueue()
    wakeups.add(Wakeup.STOP)
    wakeups.stop_signal = "SIGTERM"
    closed: list[int] = []
    with capture_logs() as log_events:
        serve(lambda: replace(passes.work(), close=lambda: closed.append(1)), wakeups)

    assert (passes.ran, closed) == (0, [1])
    assert log_events == [{"event": "daemon_stopping", "signal": "SIGTERM", "log_level": "info"}]


def test_a_signal_can_end_a_pass() -> None:
    def run_pass(_: frozenset[Wakeup]) -> bool:
        raise StopRequested

    closed: list[int] = []
    work = replace(Passes().work(), run_pass=run_pass, close=lambda: closed.append(1))
    serve(lambda: work, Scripted())

    assert closed == [1]
