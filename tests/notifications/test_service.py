"""The notification thread: passes do not wait for channels, and a restart continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as ThreadEvent

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.notifications import build_notifications
from reconciler.git.errors import GitError, UnreachableError
from reconciler.krm.findings import Finding, Severity
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.delivery import Delivery
from reconciler.notifications.events import Event
from reconciler.notifications.ledger import Ledger
from reconciler.notifications.messages import Message
from reconciler.notifications.observation import Observation
from reconciler.notifications.pass_observer import PassObserver
from reconciler.notifications.routes import Route
from reconciler.notifications.service import NoNotifications, Notifications, NotificationService, NotificationWork
from reconciler.notifications.tracker import Tracker, TrackerOptions
from reconciler.planning.model.shard import Shard
from reconciler.reconcile.pass_runner import PassSummary
from reconciler.reconcile.reconcile_pass import PassReport
from reconciler.settings import Settings
from tests.support.notifications import START, NotificationHarness

WAIT_SECONDS = 60


@dataclass
class Passes:
    """A pass runner with the results of passes in `results`: an error, or the summary of a pass."""

    results: list[GitError | PassSummary]
    summary: PassSummary = field(default_factory=lambda: PassSummary("", {}))

    def run(self) -> bool:
        result = self.results.pop(0)
        if isinstance(result, GitError):
            raise result
        self.summary = result
        return True


@dataclass
class BlockingChannel:
    """A channel that waits until `go` is set. `started` and `sent` report its progress."""

    go: ThreadEvent = field(default_factory=ThreadEvent)
    started: ThreadEvent = field(default_factory=ThreadEvent)
    sent: ThreadEvent = field(default_factory=ThreadEvent)
    titles: list[str] = field(default_factory=list)

    def send(self, message: Message) -> Mapping[str, str]:
        self.started.set()
        assert self.go.wait(WAIT_SECONDS)
        self.titles.append(message.title)
        self.sent.set()
        return {}

    def format(self, message: Message) -> str:
        return message.title


@pytest.fixture
def channel() -> Iterator[BlockingChannel]:
    channel = BlockingChannel()
    yield channel
    channel.go.set()


@pytest.fixture
def start(tmp_path: Path, channel: BlockingChannel) -> Iterator[Callable[[], Notifications]]:
    """Return a function that starts the notifications, as a new process would do. They have no gather time."""
    started: list[Notifications] = []

    def build() -> NotificationWork:
        ledger = Ledger(tmp_path / "ledger.json")
        tracker = Tracker([Route("ops", tuple(Event))], ledger, TrackerOptions(gather_seconds=0))
        return NotificationWork(ledger, tracker, Delivery({"ops": channel}, tracker.record, ChannelFindings()))

    def start() -> Notifications:
        started.append(Notifications(PassObserver(Shard()), ChannelFindings(), build, lambda: START))
        return started[-1]

    yield start
    channel.go.set()
    for notifications in started:
        notifications.close()


def run_pass(service: NotificationService, passes: Passes) -> bool:
    return service.run_pass(passes, passes.run)  # type: ignore[arg-type]


def fail(notifications: Notifications, count: int) -> None:
    passes = Passes([UnreachableError("no route to host") for _ in range(count)])
    for _ in range(count):
        with pytest.raises(UnreachableError):
            run_pass(notifications, passes)


def test_a_pass_does_not_wait_for_a_channel(start: Callable[[], Notifications], channel: BlockingChannel) -> None:
    notifications = start()
    fail(notifications, 3)
    assert channel.started.wait(WAIT_SECONDS)
    # The channel does not respond, and the next passes still run.
    fail(notifications, 5)
    assert channel.titles == []
    channel.go.set()
    assert channel.sent.wait(WAIT_SECONDS)

    assert channel.titles == ["Passes fail on shard 1/1"]


class RecordingObserver(PassObserver):
    """An observer that records the number of consecutive failed passes."""

    def __init__(self) -> None:
        super().__init__(Shard())
        self.failed_passes: list[int] = []

    def observe(self, report: PassReport, failures: Mapping[str, GitError]) -> Observation:
        return Observation((), "c1")

    def observe_failed_pass(self, message: str, failed_passes: int) -> Observation:
        self.failed_passes.append(failed_passes)
        return super().observe_failed_pass(message, failed_passes)


@pytest.mark.parametrize("is_skipped", [True, False], ids=["skipped", "complete"])
def test_a_successful_pass_ends_the_count_of_failed_passes(tmp_path: Path, is_skipped: bool) -> None:
    observer = RecordingObserver()
    ledger = Ledger(tmp_path / "ledger.json")
    tracker = Tracker([], ledger, TrackerOptions())
    work = NotificationWork(ledger, tracker, Delivery({}, tracker.record, ChannelFindings()))
    notifications = Notifications(observer, ChannelFindings(), lambda: work)
    fail(notifications, 2)
    if is_skipped:
        run_pass(notifications, Passes([PassSummary("c1", {}, is_skipped=True)]))
    else:
        notifications.observe(None, {})  # type: ignore[arg-type]
    fail(notifications, 2)
    notifications.close()

    assert observer.failed_passes == [1, 2, 1, 2]


EXPIRY = START + 14 * 86_400


@pytest.mark.parametrize(
    ("days_later", "severities"),
    [(-0.1, []), (0, [Severity.WARNING]), (10.9, [Severity.WARNING]), (11, [Severity.ERROR]), (15, [Severity.ERROR])],
)
def test_a_credential_is_reported_14_and_3_days_before_it_expires(
    days_later: float, severities: list[Severity]
) -> None:
    now = START + days_later * 86_400
    expiries = {("api.github.com", "api"): EXPIRY}
    observations = [PassObserver(Shard(index, 2)).observe_credentials(expiries, now) for index in (1, 2)]

    assert [condition.severity for condition in observations[0].conditions] == severities
    assert observations[1].conditions == ()


def test_each_step_of_an_expiry_is_one_message_until_the_credential_is_replaced(harness: NotificationHarness) -> None:
    observer, sent = PassObserver(Shard()), []
    for days, expiry in ((0, EXPIRY), (1, EXPIRY), (12, EXPIRY), (13, EXPIRY), (14, EXPIRY + 90 * 86_400)):
        harness.now = START + days * 86_400
        sent.append(harness.settle(observer.observe_credentials({("server", "tls"): expiry}, harness.now)))

    assert sent == [["Credential expires soon: tls of server"], [], ["Credential expires soon: tls of server"], [], []]


def test_the_thread_reports_credentials(
    start: Callable[[], Notifications], channel: BlockingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reconciler.telemetry.credential_expiry._expiries", {("server", "tls"): EXPIRY, ("x", "api"): 0}
    )
    channel.go.set()
    fail(start(), 1)
    assert channel.sent.wait(WAIT_SECONDS)

    assert channel.titles == ["Credential expires soon: tls of server"]


@pytest.mark.parametrize(("failed_passes", "expected"), [(2, 0), (3, 1)])
def test_three_failed_passes_are_a_condition(failed_passes: int, expected: int) -> None:
    observation = PassObserver(Shard(2, 3)).observe_failed_pass("no route to host", failed_passes)

    assert len(observation.conditions) == expected
    assert not observation.covers("berlin")
    if expected:
        assert observation.conditions[0].data == {"shard": "2/3"}


def test_a_recovered_pass_is_reported_after_a_restart(
    start: Callable[[], Notifications], channel: BlockingChannel
) -> None:
    channel.go.set()
    first = start()
    fail(first, 3)
    assert channel.sent.wait(WAIT_SECONDS)
    first.close()
    channel.sent.clear()
    second = start()
    fail(second, 1)
    run_pass(second, Passes([PassSummary("c1", {}, is_skipped=True)]))
    assert channel.sent.wait(WAIT_SECONDS)

    assert channel.titles == ["Passes fail on shard 1/1", "Passes succeed again on shard 1/1"]


def test_a_pass_that_an_exception_ended_is_a_failed_pass(
    start: Callable[[], Notifications], channel: BlockingChannel
) -> None:
    channel.go.set()
    notifications = start()
    summary = PassSummary("", {}, (Finding("InternalError", "the pass failed"),))
    for _ in range(3):
        run_pass(notifications, Passes([summary]))
    assert channel.sent.wait(WAIT_SECONDS)

    assert channel.titles == ["Passes fail on shard 1/1"]


def test_a_closed_object_does_not_write_to_the_ledger(
    start: Callable[[], Notifications], channel: BlockingChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.notifications.service._CLOSE_SECONDS", 0.0)
    notifications = start()
    fail(notifications, 3)
    assert channel.started.wait(WAIT_SECONDS)
    notifications.close()
    before = (tmp_path / "ledger.json").read_bytes()
    channel.go.set()
    assert channel.sent.wait(WAIT_SECONDS)
    assert notifications._thread
    notifications._thread.join(WAIT_SECONDS)

    assert (tmp_path / "ledger.json").read_bytes() == before


def test_an_exception_of_the_observer_does_not_end_a_pass(start: Callable[[], Notifications]) -> None:
    with capture_logs() as logs:
        assert start().observe(None, {}) == ()  # type: ignore[arg-type]

    assert [entry["event"] for entry in logs] == ["internal_error"]


@pytest.mark.parametrize(
    ("has_route", "is_read_only", "expected"),
    [(True, False, Notifications), (True, True, NoNotifications), (False, False, NoNotifications)],
    ids=["writing", "read-only", "no-route"],
)
def test_only_a_writing_daemon_with_routes_sends_messages(
    tmp_path: Path, has_route: bool, is_read_only: bool, expected: type
) -> None:
    channels = [{"name": "ops", "kind": "slack", "url_file": "/none"}]
    routes = [{"channel": "ops"}] if has_route else []
    data = {"cache": str(tmp_path), "notifications": {"channels": channels, "routes": routes}}
    service = build_notifications(Settings.model_validate(data), is_read_only=is_read_only)

    assert type(service) is expected
    assert run_pass(service, Passes([PassSummary("c1", {})]))
    service.close()
