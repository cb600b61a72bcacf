"""`status --server` reads the last pass from a running service."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.server import ServiceServer
from reconciler.cli.exit_codes import CannotRunError
from reconciler.cli.status import request_last_pass
from reconciler.service.fleet_view import FleetView, PassRecord
from reconciler.service.state import ServiceState
from reconciler.settings import Settings
from reconciler.settings.server import ServerSettings


class Service:
    def __init__(self) -> None:
        self.state = ServiceState()
        self.server = ServiceServer(self.state, lambda: None)
        self.server.apply(Settings(server=ServerSettings(listen="127.0.0.1:0")))
        self.url = f"http://127.0.0.1:{self.server.port}"


@pytest.fixture
def service() -> Iterator[Service]:
    with capture_logs():
        created = Service()
        with created.server:
            yield created


def test_the_last_pass_of_a_service(service: Service) -> None:
    before = request_last_pass(service.url)
    record = PassRecord(1_763_874_649, 0.14, "partial")
    service.state.record_completed_pass(FleetView(1, service.state.clock(), record, "c0ffee"))
    last_pass = request_last_pass(f"{service.url}/")

    assert before is None
    assert last_pass
    assert (last_pass.started_at, last_pass.result, last_pass.duration_seconds) == (1_763_874_649, "partial", 0.14)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("/other", "the service does not report its last pass: .*status 4", id="another-path"),
        pytest.param("ftp", "--server: must be a URL that starts with http:// or https://, but is 'ftp'", id="no-url"),
    ],
)
def test_other_responses_are_errors(service: Service, path: str, message: str) -> None:
    with pytest.raises(CannotRunError, match=message):
        request_last_pass(service.url + path if path.startswith("/") else path)


def test_a_service_that_does_not_respond() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    with pytest.raises(CannotRunError, match="the service does not respond"):
        request_last_pass(f"http://127.0.0.1:{port}")
