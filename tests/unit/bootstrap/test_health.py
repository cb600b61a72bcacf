"""The limits of the health checks in the settings, and the results that passes record."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.bootstrap.health import PassRecorder, build_health_limits
from reconciler.executors.dask_cluster import DaskExecutor
from reconciler.forge.rate_limits import ForgeLimit, ForgeQuota
from reconciler.git.errors import UnreachableError
from reconciler.krm.findings import Finding, Severity
from reconciler.reconcile.pass_numbers import PassNumbers
from reconciler.reconcile.pass_runner import PassSummary
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.service.fleet_view import Failure, PassRecord
from reconciler.service.state import HealthLimits, ServiceState
from reconciler.settings import Settings
from tests.support.manual_clock import ManualClock

WORKING = PassSummary("c0ffee", {}, numbers=PassNumbers({"ready": 2, "blocked": 1}))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, HealthLimits(600, 300, polls_seconds=180), id="defaults"),
        pytest.param(
            {"git": {"timeout_seconds": 500}, "poll_seconds": 900.0},
            HealthLimits(1_300, 300, polls_seconds=2_700),
            id="long-calls-and-polls",
        ),
        pytest.param(
            {"rendering": {"timeout_seconds": 1_800}}, HealthLimits(1_800, 300, polls_seconds=180), id="long-renders"
        ),
        pytest.param(
            {"health": {"stuck_after_seconds": 5, "stale_after_seconds": 7}},
            HealthLimits(5, 7, polls_seconds=0),
            id="explicit",
        ),
    ],
)
def test_limits(settings: dict[str, Any], expected: HealthLimits) -> None:
    assert build_health_limits(Settings.model_validate(settings)) == expected


class Service:
    """Runs passes with given summaries. Its remotes, forges and executor fail as the test requires."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.failing_remotes: dict[str, str] = {}
        self.failing_forges: dict[str, str] = {}
        self.remotes: tuple[RemoteState, ...] = ()
        self.executor = DaskExecutor("tcp://127.0.0.1:9", lambda context: context)  # type: ignore[arg-type, return-value]
        self.state = ServiceState(self.clock)
        self.passes = SimpleNamespace(summary=PassSummary("", {}))
        remotes = SimpleNamespace(
            list_unavailable_targets=lambda: self.failing_remotes, list_states=lambda: self.remotes
        )
        cache = SimpleNamespace(list_unavailable_hosts=lambda: self.failing_forges)
        pass_services = SimpleNamespace(executor=self.executor, pull_request_cache=cache)
        self.forge_limits: tuple[ForgeLimit, ...] = ()
        inputs = SimpleNamespace(forges=SimpleNamespace(list_limits=lambda: self.forge_limits))
        services: Any = SimpleNamespace(remotes=remotes, pass_services=pass_services, inputs=inputs)
        passes: Any = self.passes
        self.recorder = PassRecorder(self.state, passes, services, lambda: {"fetch": 1.5}, lambda: 1_700_000_000.0)

    def run(self, result: PassSummary | Exception = WORKING, *, is_done: bool = True) -> bool:
        def run_pass() -> bool:
            self.clock.now += 2
            if isinstance(result, Exception):
                raise result
            self.passes.summary = result
            return is_done

        return self.recorder.run(run_pass, {"timer", "now"})


def test_each_completed_pass_publishes_a_view() -> None:
    service = Service()
    results = [service.run(), service.run(PassSummary("beef", {}, is_skipped=True), is_done=False)]
    view = service.state.view

    assert results == [True, False]
    assert view is not None
    # A skipped pass has no numbers, so that the number of targets is that of the pass before.
    assert (view.number, view.config, view.targets, view.completed_at) == (2, "beef", 3, 1_004.0)
    assert view.last_pass == PassRecord(1_700_000_000.0, 2.0, "success", ("now", "timer"), {"fetch": 1.5})
    assert service.state.recent_passes == (view.last_pass, view.last_pass)
    assert (view.remote_failures, view.forge_failures, view.status_failure, view.executor_failure) == (
        (),
        (),
        None,
        None,
    )


def test_each_view_contains_the_rate_limits_of_forges() -> None:
    service = Service()
    service.forge_limits = (ForgeLimit("github.com", "github", ForgeQuota(5_000, 12)),)
    service.run()

    assert service.state.view is not None
    assert service.state.view.forge_limits == service.forge_limits


def test_failures_keep_their_first_time() -> None:
    service = Service()
    service.failing_remotes, service.failing_forges = {"https://a": "no route"}, {"a": "502"}
    service.executor.connection_error = "no scheduler"
    summary = PassSummary("c0ffee", {}, status_error="refused")
    service.run(summary)
    service.run(summary)
    failing = service.state.view
    service.failing_remotes, service.failing_forges, service.executor.connection_error = {}, {}, ""
    service.run()
    working = service.state.view

    assert failing is not None
    assert failing.remote_failures == (Failure(1_002.0, "no route", "https://a"),)
    assert failing.forge_failures == (Failure(1_002.0, "502", "a"),)
    assert failing.status_failure == Failure(1_002.0, "refused")
    assert failing.executor_failure == Failure(1_002.0, "no scheduler")
    assert working is not None
    assert (working.remote_failures, working.status_failure, working.executor_failure) == ((), None, None)


def test_a_failing_remote_keeps_its_first_time() -> None:
    service = Service()
    failing = RemoteState("https://a", "https://user:secret@a", "target", UnreachableError("no route"), 1, 30.0)
    working = RemoteState("https://b", "https://b", "upstream")
    service.remotes = (failing, working)
    service.run()
    service.run()

    assert service.state.view is not None
    assert service.state.view.remotes == (replace(failing, since=1_002.0), working)
    assert "secret" not in repr(service.state.view.remotes)


def test_only_the_last_passes_are_kept() -> None:
    service = Service()
    with pytest.raises(UnreachableError):
        service.run(UnreachableError("no route"))
    first = service.state.recent_passes
    for _ in range(25):
        service.run()

    assert [(record.result, record.message) for record in first] == [("failure", "no route")]
    assert {record.result for record in service.state.recent_passes} == {"success"}
    assert len(service.state.recent_passes) == 20


def test_failed_passes_publish_no_view() -> None:
    service = Service()
    with pytest.raises(UnreachableError):
        service.run(UnreachableError("no route"))
    unread = service.state.failed_passes
    service.run(
        PassSummary(
            "", {}, (Finding(code="InternalError", severity=Severity.ERROR, message="a defect"),), is_clean=False
        )
    )
    failed = service.state.failed_passes

    assert service.state.view is None
    assert unread is not None
    assert (unread.count, unread.first.message, unread.has_read_config) == (1, "no route", False)
    assert failed is not None
    assert (failed.count, failed.first.message, failed.has_read_config) == (2, "a defect", True)
