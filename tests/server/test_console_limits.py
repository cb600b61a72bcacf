"""Limits of the console on a real server: large requests, many open pages, and clients that read nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.server import ServiceServer
from reconciler.service.state import ServiceState
from reconciler.settings import Settings
from reconciler.settings.server import ServerSettings
from tests.support.console import open_console
from tests.support.http_connection import build_request, connect, get, parse, read_to_end
from tests.support.prepared_worlds import begin, drafted

TIMEOUT = 30.0
LARGE = "x" * 10_000_000
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    with capture_logs(), ServiceServer(ServiceState(), lambda: None) as server:
        server.apply(Settings(server=ServerSettings(listen="127.0.0.1:0")), client.context)
        yield server.port


def send_large(port: int, message: bytes) -> bytes:
    """Send a message, and return what the server sent before it closed the connection."""
    with connect(port, TIMEOUT) as connection:
        try:
            connection.sendall(message)
            return read_to_end(connection)
        except ConnectionError:
            # The server closes the connection before it has read the whole message.
            return b""


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("message", "statuses"),
    [
        pytest.param(build_request(path=f"/changes?q={LARGE}"), {400, 431}, id="query"),
        pytest.param(build_request(path=f"/targets/{LARGE}"), {400, 431}, id="path"),
        pytest.param(build_request(path="/changes", cookie=LARGE), {400, 431}, id="header"),
        pytest.param(
            build_request(
                "POST", "/changes/confirm", LARGE.encode(), content_type=FORM, content_length=str(len(LARGE))
            ),
            {413},
            id="form",
        ),
    ],
)
def test_ten_megabytes_are_refused(message: bytes, statuses: set[int], port: int) -> None:
    answer = send_large(port, message)

    assert not answer or parse(answer).status in statuses
    assert get(port, "/changes", TIMEOUT).status == 200


@pytest.mark.parametrize("path", ["/changes", "/targets?view=matrix", "/api/v1/changes"])
def test_clients_that_read_nothing_do_not_delay_others(path: str, port: int) -> None:
    with ExitStack() as stack:
        for _ in range(50):
            connection = stack.enter_context(connect(port, TIMEOUT))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            connection.sendall(build_request(path=path))
        response = get(port, path, TIMEOUT)

    assert response.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/targets/berlin/packages/../../../etc/passwd",
        "/targets/berlin/packages/%2e%2e/%2e%2e/secret",
        "/targets/berlin/packages/.git/config",
        "/targets/berlin/packages/gateway%00",
        f"/targets/berlin/packages/{'a/' * 1_000}",
        "/static/%2e%2e%2f%2e%2e%2fsecurity.py",
    ],
)
def test_paths_outside_the_fleet_do_not_exist(path: str, port: int) -> None:
    assert get(port, path, TIMEOUT).status == 404
