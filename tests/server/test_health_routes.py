"""The paths for health checks: their statuses, headers and bodies, and who can read the details."""

from __future__ import annotations

import pytest
from starlette.types import ASGIApp

from reconciler import __version__
from reconciler.server.application import create_app
from reconciler.server.health_routes import create_health_routes
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginRules, build_origin_rules
from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from reconciler.service.state import ServiceState
from reconciler.telemetry.progress import Progress
from tests.support.asgi_client import request
from tests.support.manual_clock import ManualClock

HOUR = 3_600.0
# The clock of the test shows this time of day: 2023-11-14T22:13:20Z.
NOW = 1_700_000_000.0
RULES = build_origin_rules("127.0.0.1:8080", [], "", [])


def build_state(*, is_stopping: bool = False, has_failures: bool = False, has_pass: bool = True) -> ServiceState:
    clock = ManualClock(NOW - HOUR)
    state = ServiceState(clock, Progress(clock))
    clock.now = 10 * HOUR
    state.progress.update("wait")
    state.shard = "2/3"
    failures = (Failure(9 * HOUR, "no route to host", "https://git.example.com/a.git"),) if has_failures else ()
    status_failure = Failure(10 * HOUR, "refused") if has_failures else None
    if has_pass:
        record = PassRecord(NOW - 40, 2.34567, "success")
        view = FleetView(7, 10 * HOUR - 37, record, "c0ffee", 340, failures, status_failure=status_failure)
        state.record_completed_pass(view)
    if is_stopping:
        state.stop()
    return state


def build_app(state: ServiceState, rules: OriginRules = RULES) -> ASGIApp:
    return create_app(create_health_routes(state, lambda: rules, lambda: NOW), ServerLimits(), lambda: rules)


READY = build_state()
DEGRADED = build_state(has_failures=True)
FIRST_PASS = build_state(has_pass=False)
STOPPING = build_state(is_stopping=True, has_failures=True)
CODES = "RemotesUnavailable,StatusNotWritten"


@pytest.mark.parametrize(
    ("state", "path", "status", "header", "text"),
    [
        pytest.param(READY, "/readyz", 200, None, "ok\n", id="ready"),
        pytest.param(READY, "/readyz?strict", 200, None, "ok\n", id="ready-strict"),
        pytest.param(DEGRADED, "/readyz", 200, CODES, CODES.replace(",", "\n") + "\n", id="degraded"),
        pytest.param(DEGRADED, "/readyz?strict", 503, CODES, CODES.replace(",", "\n") + "\n", id="degraded-strict"),
        pytest.param(FIRST_PASS, "/readyz", 503, None, "NoPassYet\n", id="first-pass"),
        pytest.param(FIRST_PASS, "/readyz?strict", 503, None, "NoPassYet\n", id="first-pass-strict"),
        pytest.param(
            STOPPING, "/readyz", 503, None, "Stopping\nRemotesUnavailable\nStatusNotWritten\n", id="stopping"
        ),
        pytest.param(STOPPING, "/healthz", 200, None, "ok\n", id="liveness-while-stopping"),
        pytest.param(FIRST_PASS, "/healthz", 200, None, "ok\n", id="liveness-during-the-first-pass"),
    ],
)  # fmt: skip
def test_responses(state: ServiceState, path: str, status: int, header: str | None, text: str) -> None:
    app = build_app(state)
    response, head = request(app, path), request(app, path, "HEAD")

    assert (response.status_code, response.headers.get("x-reconciler-degraded"), response.text) == (
        status, header, text,
    )  # fmt: skip
    assert (head.status_code, head.headers, head.text) == (status, response.headers, "")


def test_stuck_process() -> None:
    state = build_state()
    assert isinstance(state.clock, ManualClock)
    state.clock.now += 601

    response = request(build_app(state), "/healthz")

    assert (response.status_code, response.text) == (503, "stuck\n")


def test_details() -> None:
    response = request(build_app(DEGRADED), "/readyz?verbose")

    details = response.json()
    checks = {check["code"]: check for check in details.pop("checks")}
    assert response.status_code == 200
    assert response.headers["x-reconciler-degraded"] == CODES
    assert details == {
        "status": "degraded",
        "version": __version__,
        "shard": "2/3",
        "mode": "read-write",
        "targets": 340,
        "lastPass": {
            "startedAt": "2023-11-14T22:12:40Z",
            "completedAt": "2023-11-14T22:12:43Z",
            "result": "success",
            "durationSeconds": 2.346,
        },
    }
    assert list(checks) == [
        "Stopping", "NoPassYet", "ConfigUnavailable", "SettingsInvalid", "PassStale", "PassFailing",
        "RemotesUnavailable", "ForgeUnavailable", "StatusNotWritten", "ExecutorUnavailable",
        "WebhookSecretsUnreadable",
    ]  # fmt: skip
    assert checks["RemotesUnavailable"] == {
        "code": "RemotesUnavailable",
        "ok": False,
        "since": "2023-11-14T21:13:20Z",
        "message": "no route to host",
        "remote": "https://git.example.com/a.git",
    }
    assert checks["PassStale"] == {"code": "PassStale", "ok": True, "since": None, "message": ""}


def test_details_before_the_first_pass() -> None:
    details = request(build_app(FIRST_PASS), "/readyz?verbose").json()

    assert (details["status"], details["targets"], details["lastPass"]) == ("not_ready", 0, None)


@pytest.mark.parametrize(
    ("client", "host", "status"),
    [
        pytest.param("127.0.0.1", "localhost:8080", 200, id="this-machine"),
        pytest.param("::1", "[::1]:8080", 200, id="ipv6"),
        pytest.param("10.1.2.3", "localhost:8080", 403, id="other-machine"),
        pytest.param("127.0.0.1", "attacker.example.com:8080", 403, id="rebound-name"),
    ],
)
def test_only_this_machine_can_read_details(client: str, host: str, status: int) -> None:
    response = request(build_app(DEGRADED), "/readyz?verbose", client=client, host=host)

    assert response.status_code == status
    assert ("git.example.com" in response.text) is (status == 200)
