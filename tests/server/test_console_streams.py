"""Streams of events on a real server: their limit, clients that leave or do not read, and their end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.server import ServiceServer
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.events import EVENTS_PATH, MAX_STREAMS
from reconciler.server.limits import ServerLimits
from reconciler.service.state import ServiceState
from reconciler.settings import Settings
from reconciler.settings.server import ServerSettings
from tests.support.console import open_console
from tests.support.http_connection import build_request, connect, get, read_to_end
from tests.support.prepared_worlds import begin, drafted

LIMITS = ServerLimits()
SETTINGS = Settings(server=ServerSettings(listen="127.0.0.1:0"))
STREAM_REQUEST = build_request(path=EVENTS_PATH)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ConsoleContext:
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    return client.context


@pytest.fixture
def server(context: ConsoleContext) -> Iterator[ServiceServer]:
    with capture_logs(), ServiceServer(ServiceState(), lambda: None, LIMITS) as created:
        created.apply(SETTINGS, context)
        yield created


def open_stream(port: int) -> tuple[socket.socket, int]:
    """Request a stream, and return its connection and the status of the response."""
    connection = connect(port)
    connection.sendall(STREAM_REQUEST)
    return connection, int(connection.recv(65_536).split()[1])


def open_streams(port: int, count: int, stack: ExitStack) -> list[int]:
    """Open streams until the end of the stack, and return the statuses of the responses."""
    opened = [open_stream(port) for _ in range(count)]
    for connection, _ in opened:
        stack.enter_context(connection)
    return [status for _, status in opened]


def wait_for_free_stream(port: int) -> int:
    """Return the status of the first accepted stream, or of the last one after some seconds."""
    for _ in range(50):
        connection, status = open_stream(port)
        connection.close()
        if status == 200:
            break
        time.sleep(0.1)
    return status


@pytest.mark.slow
def test_two_hundred_clients(server: ServiceServer) -> None:
    with ExitStack() as stack:
        statuses = open_streams(server.port, 200, stack)
        page = get(server.port, "/changes", 20.0)

    assert statuses == [200] * MAX_STREAMS + [503] * (200 - MAX_STREAMS)
    assert page.status == 200
    assert wait_for_free_stream(server.port) == 200


@pytest.mark.slow
def test_clients_that_leave_at_once_use_no_stream(server: ServiceServer) -> None:
    for _ in range(2 * MAX_STREAMS):
        with connect(server.port) as connection:
            connection.sendall(STREAM_REQUEST)
    with ExitStack() as stack:
        for _ in range(50):
            if len(set(statuses := open_streams(server.port, MAX_STREAMS, stack))) == 1:
                break
            stack.pop_all().close()
            time.sleep(0.1)

    assert statuses == [200] * MAX_STREAMS


def measure_end(connection: socket.socket, seconds: list[float]) -> threading.Thread:
    """Store how long the server keeps a stream open."""

    def read() -> None:
        start = time.monotonic()
        read_to_end(connection)
        seconds.append(time.monotonic() - start)

    thread = threading.Thread(target=read)
    thread.start()
    return thread


@pytest.mark.parametrize("is_disabled", [pytest.param(True, id="console-disabled"), pytest.param(False, id="stop")])
def test_a_stream_ends_with_its_console(is_disabled: bool, context: ConsoleContext) -> None:
    seconds: list[float] = []
    with capture_logs(), ServiceServer(ServiceState(), lambda: None, LIMITS) as server:
        server.apply(SETTINGS, context)
        connection, status = open_stream(server.port)
        thread = measure_end(connection, seconds)
        if is_disabled:
            server.apply(SETTINGS, None)
            thread.join(20)
            refused = get(server.port, EVENTS_PATH, 20.0)
            assert refused.status == 404
    thread.join(20)
    connection.close()

    assert status == 200
    assert seconds[0] < LIMITS.stop_seconds
