"""Events and metrics of outages of remotes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.git.errors import UnreachableError
from reconciler.reconcile.remotes.availability import RemoteAvailability
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.telemetry.metrics import REGISTRY
from tests.support.metric_samples import read_metric

URL = "https://example.com/a.git"
ERROR = UnreachableError("no route to host")


class Remotes:
    """One remote with a back-off of 5 to 20 seconds, whose fetches have the given results."""

    def __init__(self, *, should_log: bool = True) -> None:
        self.now = 100.0
        self._backoff = Backoff(5, 20, lambda: self.now)
        self.availability = RemoteAvailability(lambda: self.now, should_log=should_log)

    def fetch(self, *results: bool) -> list[dict[str, Any]]:
        with capture_logs() as events:
            for is_successful in results:
                self.now += 30
                if is_successful:
                    self._backoff.record_success(URL)
                    self.availability.record_success(URL)
                else:
                    self.availability.record_failure(URL, ERROR, self._backoff.record_failure(URL))
        return [dict(event) for event in events]


def test_the_first_failure_and_each_longer_wait_are_logged() -> None:
    events = Remotes().fetch(False, False, False, False, False)

    assert [(event["event"], event["retry_seconds"]) for event in events] == [
        ("remote_unavailable", 5), ("remote_unavailable", 10), ("remote_unavailable", 20)
    ]  # fmt: skip
    assert events[0] == {
        "event": "remote_unavailable", "log_level": "warning", "remote": URL, "operation": "fetch",
        "reason": "Unreachable", "message": "no route to host", "next_step": "retry", "retry_seconds": 5,
    }  # fmt: skip


@pytest.mark.emits("remote_recovered", "remote_unavailable")
def test_a_recovery_is_logged_once_with_the_time_of_the_outage() -> None:
    remotes = Remotes()
    remotes.fetch(True, False, False)

    assert remotes.fetch(True, True) == [
        {"event": "remote_recovered", "log_level": "info", "remote": URL, "unavailable_seconds": 60}
    ]
    assert [event["retry_seconds"] for event in remotes.fetch(False)] == [5]


def test_a_command_that_runs_one_pass_logs_nothing() -> None:
    assert Remotes(should_log=False).fetch(False, True) == []


@pytest.fixture
def _export() -> Iterator[None]:
    with REGISTRY.export():
        yield


@pytest.mark.usefixtures("_export")
def test_the_longest_backoff_of_each_label_is_exported() -> None:
    availability = Remotes().availability
    availability.export_backoff([("a.example", 5), ("b.example", 60), ("a.example", 20)])
    first = read_metric("reconciler_remote_backoff_seconds")
    availability.export_backoff([("b.example", 30)])

    assert first == {'{remote="a.example"}': 20, '{remote="b.example"}': 60}
    assert read_metric("reconciler_remote_backoff_seconds") == {'{remote="b.example"}': 30}
