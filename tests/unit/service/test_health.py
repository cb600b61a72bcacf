"""The health checks, one row per reason, with a manual clock."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from reconciler.service.health import evaluate_health, is_stuck
from reconciler.service.state import FailureTimes, HealthLimits, ServiceState
from reconciler.telemetry.progress import Progress
from tests.support.manual_clock import ManualClock

MINUTE = 60.0
LIMITS = HealthLimits(stuck_after_seconds=600, stale_after_seconds=300, polls_seconds=180)


class Service:
    """The state of a service, with the events that change it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.state = ServiceState(self.clock, Progress(self.clock))
        self.state.limits = LIMITS
        self.secrets_failure: Failure | None = None
        self.state.find_secrets_failure = lambda: self.secrets_failure

    def complete_pass(self, duration: float = 1.0, **failures: object) -> None:
        number = self.state.view.number + 1 if self.state.view else 1
        record = PassRecord(1_700_000_000, duration, "success")
        view = FleetView(number, self.clock.now, record, "c0ffee", 3, **failures)  # type: ignore[arg-type]
        self.state.record_completed_pass(view)

    def fail_passes(self, count: int, *, has_read_config: bool) -> None:
        for _ in range(count):
            self.state.record_failed_pass("it failed", has_read_config=has_read_config)

    def fail(self, **failures: Failure | tuple[Failure, ...]) -> None:
        self.complete_pass(**failures)

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds


def fail_remote(service: Service, minutes: float) -> None:
    """Complete a pass in which a remote fails since some minutes."""
    failure = Failure(service.clock.now - minutes * MINUTE, "no route to host", "https://git.example.com/a.git")
    service.fail(remote_failures=(failure,))


def fail_forge(service: Service, minutes: float) -> None:
    failure = Failure(service.clock.now - minutes * MINUTE, "502 Bad Gateway", "git.example.com")
    service.fail(forge_failures=(failure,))


def fail_one(service: Service, name: str) -> None:
    service.fail(**{name: Failure(service.clock.now, "it failed")})


def fail_secrets(service: Service) -> None:
    service.complete_pass()
    service.secrets_failure = Failure(service.clock.now, "the file is empty")


def run(*steps: Callable[[Service], object]) -> Callable[[Service], None]:
    def run_steps(service: Service) -> None:
        for step in steps:
            step(service)

    return run_steps


def complete(seconds: float = 1.0) -> Callable[[Service], None]:
    return lambda service: service.complete_pass(seconds)


def wait(seconds: float) -> Callable[[Service], None]:
    return lambda service: service.wait(seconds)


def fail_passes(count: int, *, has_read_config: bool = True) -> Callable[[Service], None]:
    return lambda service: service.fail_passes(count, has_read_config=has_read_config)


def stop(service: Service) -> None:
    service.state.stop()


def reload(error: str) -> Callable[[Service], None]:
    return lambda service: service.state.record_reload(error)


READY, DEGRADED, NOT_READY = "ready", "degraded", "not_ready"


@pytest.mark.parametrize(
    ("events", "status", "codes"),
    [
        pytest.param(run(), NOT_READY, ["NoPassYet"], id="start"),
        pytest.param(run(fail_passes(1)), NOT_READY, ["NoPassYet"], id="first-pass-failed"),
        pytest.param(
            run(fail_passes(1, has_read_config=False)), NOT_READY, ["NoPassYet", "ConfigUnavailable"],
            id="config-unavailable-at-start",
        ),
        pytest.param(run(complete()), READY, [], id="first-pass"),
        pytest.param(
            run(complete(), fail_passes(1, has_read_config=False)), DEGRADED, ["ConfigUnavailable"],
            id="config-unavailable-later",
        ),
        pytest.param(
            run(complete(), fail_passes(1, has_read_config=False), complete()), READY, [], id="config-available-again"
        ),
        pytest.param(run(complete(), stop), NOT_READY, ["Stopping"], id="stopping"),
        pytest.param(run(stop), NOT_READY, ["Stopping", "NoPassYet"], id="stopping-before-the-first-pass"),
        pytest.param(run(complete(), reload("bad")), DEGRADED, ["SettingsInvalid"], id="settings-refused"),
        pytest.param(run(complete(), reload("bad"), reload("")), READY, [], id="settings-valid-again"),
        pytest.param(run(complete(0), wait(300)), READY, [], id="pass-not-stale-yet"),
        pytest.param(run(complete(0), wait(301)), DEGRADED, ["PassStale"], id="pass-stale"),
        pytest.param(run(complete(300), wait(480)), READY, [], id="long-pass-not-stale-yet"),
        pytest.param(run(complete(300), wait(481)), DEGRADED, ["PassStale"], id="long-pass-stale"),
        pytest.param(
            run(complete(300), wait(3_500), complete(0), wait(350)), DEGRADED, ["PassStale"],
            id="long-pass-of-more-than-an-hour-ago",
        ),
        pytest.param(
            run(complete(0), wait(200), fail_passes(1), wait(200)), DEGRADED, ["PassStale"],
            id="failed-pass-is-not-completed",
        ),
        pytest.param(run(complete(), fail_passes(2)), READY, [], id="two-failed-passes"),
        pytest.param(run(complete(), fail_passes(3)), DEGRADED, ["PassFailing"], id="three-failed-passes"),
        pytest.param(run(complete(), fail_passes(3), complete()), READY, [], id="recovered"),
        pytest.param(
            run(complete(), fail_passes(3, has_read_config=False)), DEGRADED, ["ConfigUnavailable", "PassFailing"],
            id="config-unavailable-three-times",
        ),
        pytest.param(lambda service: fail_remote(service, 14.9), READY, [], id="remote-failing-for-a-short-time"),
        pytest.param(lambda service: fail_remote(service, 15), DEGRADED, ["RemotesUnavailable"], id="remote-failing"),
        pytest.param(lambda service: fail_forge(service, 14.9), READY, [], id="forge-failing-for-a-short-time"),
        pytest.param(lambda service: fail_forge(service, 15), DEGRADED, ["ForgeUnavailable"], id="forge-failing"),
        pytest.param(
            lambda service: fail_one(service, "status_failure"), DEGRADED, ["StatusNotWritten"], id="status-not-written"
        ),
        pytest.param(
            lambda service: fail_one(service, "executor_failure"), DEGRADED, ["ExecutorUnavailable"], id="no-executor"
        ),
        pytest.param(fail_secrets, DEGRADED, ["WebhookSecretsUnreadable"], id="secrets-unreadable"),
    ],
)  # fmt: skip
def test_readiness(events: Callable[[Service], None], status: str, codes: list[str]) -> None:
    service = Service()
    events(service)

    health = evaluate_health(service.state)

    assert (health.status, health.failed_codes) == (status, codes)


def test_explicit_limit_ignores_the_longest_pass() -> None:
    service = Service()
    service.state.limits = HealthLimits(stale_after_seconds=100, polls_seconds=0)
    service.complete_pass(1_000)
    service.wait(101)

    assert evaluate_health(service.state).failed_codes == ["PassStale"]


def test_failing_passes_keep_the_time_of_the_first() -> None:
    service = Service()
    service.complete_pass()
    for _ in range(3):
        service.wait(10)
        service.fail_passes(1, has_read_config=True)

    (check,) = (check for check in evaluate_health(service.state).checks if check.code == "PassFailing")
    assert [failure.since for failure in check.failures] == [1_010.0]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(600, False, id="within-the-limit"),
        pytest.param(601, True, id="without-progress"),
    ],
)
def test_liveness(seconds: float, expected: bool) -> None:
    service = Service()
    service.state.progress.update("render")
    service.wait(seconds)

    assert is_stuck(service.state) is expected
    service.state.progress.update("render")
    assert not is_stuck(service.state)


def test_process_without_a_main_thread_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    monkeypatch.setattr(threading, "main_thread", lambda: ended)

    assert is_stuck(Service().state)


def test_failure_times_start_with_the_first_failure() -> None:
    clock = ManualClock(1.0)
    times = FailureTimes(clock)
    times.update({"a": "first"})
    clock.now = 2.0
    both = times.update({"b": "second", "a": "third"})
    clock.now = 3.0
    times.update({"b": "second"})

    assert both == (Failure(1.0, "third", "a"), Failure(2.0, "second", "b"))
    assert times.update({"a": "again"}) == (Failure(3.0, "again", "a"),)
