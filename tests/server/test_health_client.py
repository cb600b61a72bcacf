"""The client of the health checks against a real server, and the URL of the service on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from reconciler.cli.health import command
from reconciler.server.application import create_app
from reconciler.server.health_client import (
    NoResponseError,
    ServiceHealth,
    build_own_url,
    request_health,
)
from reconciler.server.health_routes import create_health_routes
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginRules
from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from reconciler.service.state import ServiceState


class Service:
    """A server with the health checks of a state that the test changes."""

    def __init__(self) -> None:
        self.state = ServiceState()
        routes = create_health_routes(self.state, OriginRules)
        self.http_server = HttpServer(create_app(routes, ServerLimits(), OriginRules), ServerLimits())
        self.http_server.listen("127.0.0.1:0")
        self.url = f"http://127.0.0.1:{self.http_server.port}"

    def complete_pass(self, *, is_degraded: bool) -> None:
        failure = Failure(0, "refused") if is_degraded else None
        record = PassRecord(0, 0, "success")
        self.state.record_completed_pass(
            FleetView(1, self.state.clock(), record, "c0ffee", status_failure=failure, executor_failure=failure)
        )


@pytest.fixture
def service() -> Iterator[Service]:
    with capture_logs():
        created = Service()
        with created.http_server:
            yield created


def test_health_of_a_service(service: Service) -> None:
    first = request_health(service.url)
    service.complete_pass(is_degraded=True)
    degraded = request_health(f"{service.url}/")
    service.complete_pass(is_degraded=False)
    ready = request_health(service.url)

    assert first == ServiceHealth("not ready", ("NoPassYet",))
    assert degraded == ServiceHealth("degraded", ("StatusNotWritten", "ExecutorUnavailable"))
    assert ready == ServiceHealth("ready")


@pytest.mark.parametrize(
    ("is_degraded", "status", "text"),
    [
        pytest.param(None, 1, "not ready: NoPassYet\n", id="not-ready"),
        pytest.param(True, 1, "degraded: StatusNotWritten, ExecutorUnavailable\n", id="degraded"),
        pytest.param(False, 0, "ready\n", id="ready"),
    ],
)
def test_exit_status(service: Service, is_degraded: bool | None, status: int, text: str) -> None:
    if is_degraded is not None:
        service.complete_pass(is_degraded=is_degraded)

    result = CliRunner().invoke(command, ["--url", service.url], standalone_mode=False)

    assert (result.return_value, result.output) == (status, text)


def test_other_responses_are_errors(service: Service) -> None:
    with pytest.raises(NoResponseError, match="the response has the status 421 instead of 200 or 503"):
        request_health(f"{service.url}/other")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(NoResponseError, match=f"^http://127.0.0.1:{port}: the service does not respond: .*refused"):
        request_health(f"http://127.0.0.1:{port}")
    with pytest.raises(ValueError, match="must be a URL that starts with http:// or https://, but is 'localhost:8080'"):
        request_health("localhost:8080")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        pytest.param("127.0.0.1:8080", "http://127.0.0.1:8080", id="loopback"),
        pytest.param("0.0.0.0:8080", "http://127.0.0.1:8080", id="all-addresses"),
        pytest.param("[::]:8080", "http://[::1]:8080", id="all-ipv6-addresses"),
        pytest.param("reconciler.internal:80", "http://reconciler.internal:80", id="name"),
    ],
)
def test_own_url(address: str, url: str) -> None:
    assert build_own_url(address, has_tls=False) == url
    assert build_own_url(address, has_tls=True) == url.replace("http:", "https:")


@pytest.mark.parametrize("address", ["", "127.0.0.1:0"])
def test_unknown_own_url(address: str) -> None:
    with pytest.raises(ValueError, match=", or set --url"):
        build_own_url(address, has_tls=False)
