"""Slow and hostile clients: the server closes their connections, and other clients get responses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from reconciler.server.application import create_app
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginRules
from tests.support.http_connection import (
    TIMEOUT_SECONDS,
    build_request,
    connect,
    parse,
    read_to_end,
    send,
)

SHORT_SECONDS = 0.2
LARGE_BYTES = 50_000_000


class Handlers:
    """The handlers of the test server. `held` waits until the test releases it."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.released = threading.Event()

    async def read_body(self, request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    def hold(self, _request: Request) -> Response:
        self.started.set()
        self.released.wait(TIMEOUT_SECONDS)
        return PlainTextResponse("held")

    async def send_large_response(self, _request: Request) -> Response:
        return PlainTextResponse("x" * LARGE_BYTES)

    def build_routes(self) -> list[Route]:
        return [
            Route("/", self.read_body, methods=["GET", "POST"]),
            Route("/held", self.hold),
            Route("/large", self.send_large_response),
        ]


@contextmanager
def serve(limits: ServerLimits, handlers: Handlers | None = None) -> Iterator[HttpServer]:
    rules = OriginRules(frozenset({"127.0.0.1"}))
    app = create_app((handlers or Handlers()).build_routes(), limits, lambda: rules)
    with capture_logs(), HttpServer(app, limits) as server:
        server.listen("127.0.0.1:0")
        yield server


@pytest.fixture(scope="module")
def impatient_server() -> Iterator[HttpServer]:
    """Return a server with short time limits for slow clients."""
    limits = ServerLimits(header_seconds=SHORT_SECONDS, body_seconds=SHORT_SECONDS, idle_seconds=SHORT_SECONDS)
    with serve(limits) as server:
        yield server


POST = build_request("POST", content_length="50")
CHUNKED_POST = build_request("POST", transfer_encoding="chunked")
OPEN_REQUEST = build_request(connection="keep-alive")


@pytest.mark.parametrize(
    ("message", "statuses"),
    [
        pytest.param(b"", [], id="no-data"),
        pytest.param(b"GET / HT", [], id="half-request-line"),
        pytest.param(OPEN_REQUEST[:-4], [], id="half-headers"),
        pytest.param(POST, [408], id="no-body"),
        pytest.param(POST + b"x" * 49, [408], id="half-body"),
        pytest.param(CHUNKED_POST + b"5\r\nhel", [408], id="half-chunk"),
        pytest.param(OPEN_REQUEST, [200], id="idle-after-a-response"),
        pytest.param(OPEN_REQUEST + b"GET / HT", [200], id="half-request-after-a-response"),
        pytest.param(OPEN_REQUEST * 3, [200, 200, 200], id="pipelined-requests"),
        pytest.param(OPEN_REQUEST * 2 + POST, [200, 200, 408], id="pipelined-requests-and-half-body"),
    ],
)
def test_slow_client_is_disconnected(impatient_server: HttpServer, message: bytes, statuses: list[int]) -> None:
    answer = send(impatient_server.port, message)

    lines = [line for line in answer.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [int(line.partition(b"HTTP/1.1 ")[2].split()[0]) for line in lines] == statuses


@pytest.mark.parametrize(
    ("message", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nX-Slow: ", None, id="headers"),
        pytest.param(build_request("POST", content_length="1000000"), 413, id="large-body"),
        pytest.param(build_request("POST", content_length="60000"), 408, id="body"),
    ],
)
def test_client_that_sends_single_bytes_is_disconnected(
    impatient_server: HttpServer, message: bytes, status: int | None
) -> None:
    stop = threading.Event()

    def send_single_bytes(connection: socket.socket) -> None:
        while not stop.wait(SHORT_SECONDS / 10):
            try:
                connection.sendall(b"x")
            except OSError:
                return

    with connect(impatient_server.port) as connection:
        connection.sendall(message)
        thread = threading.Thread(target=send_single_bytes, args=(connection,))
        thread.start()
        answer = read_until_closed(connection)
        stop.set()
        thread.join()

    assert (parse(answer).status if answer else None) == status


def read_until_closed(connection: socket.socket) -> bytes:
    """Return everything that the server sends until it closes the connection, even if data is on the way to it."""
    pieces = []
    while True:
        try:
            piece = connection.recv(65_536)
        except ConnectionResetError:
            piece = b""
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def test_client_that_does_not_read_is_disconnected() -> None:
    limits = ServerLimits(header_seconds=SHORT_SECONDS, connections=1)
    with serve(limits) as server, connect(server.port) as connection:
        connection.sendall(build_request(path="/large", connection="keep-alive"))
        # A second client can connect only after the server has closed the first connection.
        assert count_attempts(server) > 1
        assert len(read_until_closed(connection)) < LARGE_BYTES


def count_attempts(server: HttpServer) -> int:
    """Send requests until the server has a free connection. Return the number of requests."""
    for attempt in repeat_until_timeout():
        with connect(server.port) as connection:
            try:
                connection.sendall(build_request())
                answer = read_until_closed(connection)
            except OSError:
                # The server can close a refused connection while the request is sent.
                answer = b""
        if answer and parse(answer).status == 200:
            return attempt
    raise AssertionError("the server has no free connection")


def repeat_until_timeout() -> Iterator[int]:
    """Yield the numbers of attempts, starting at 1, until the test has waited for too long."""
    end = time.monotonic() + TIMEOUT_SECONDS
    attempt = 1
    while time.monotonic() < end:
        yield attempt
        attempt += 1


def test_connections_above_the_limit_are_refused() -> None:
    with serve(ServerLimits(connections=2)) as server:
        held = [connect(server.port) for _ in range(2)]
        # A refused client does not need to send anything.
        with connect(server.port) as connection:
            refused = parse(read_to_end(connection))
        for connection in held:
            connection.close()
        count_attempts(server)

    expected = {"content-length": "0", "connection": "close", "retry-after": "2"}
    assert (refused.status, refused.headers, refused.body) == (503, expected, b"")


def test_requests_above_the_limit_are_refused() -> None:
    handlers = Handlers()
    with serve(ServerLimits(requests=1), handlers) as server, connect(server.port) as connection:
        connection.sendall(build_request(path="/held"))
        assert handlers.started.wait(TIMEOUT_SECONDS)
        refused = parse(send(server.port, build_request()))
        handlers.released.set()
        held = parse(read_to_end(connection))
        accepted = parse(send(server.port, build_request()))

    assert (refused.status, refused.headers["retry-after"]) == (503, "2")
    assert (held.body, accepted.status) == (b"held", 200)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        pytest.param(build_request(x_long="x" * 10_000), 200, id="headers"),
        pytest.param(build_request(x_long="x" * 17_000), 431, id="large-headers"),
        pytest.param(build_request("POST", body=b"x" * 65_536, content_length="65536"), 200, id="body"),
        # The server responds before the client sends the body.
        pytest.param(build_request("POST", content_length="65537"), 413, id="large-body"),
        pytest.param(CHUNKED_POST + b"10000\r\n" + b"x" * 65_536 + b"\r\n0\r\n\r\n", 200, id="chunks"),
        pytest.param(CHUNKED_POST + b"10001\r\n" + b"x" * 65_537 + b"\r\n0\r\n\r\n", 413, id="large-chunks"),
        pytest.param(CHUNKED_POST + b"hello\r\n", 400, id="invalid-chunk"),
        pytest.param(CHUNKED_POST + b"5\r\nhello\r\n" + b"x" * 20_000, 431, id="long-chunk-header"),
        pytest.param(
            build_request("POST", "/none", transfer_encoding="chunked") + b"hello\r\n", 400, id="unread-invalid-chunk"
        ),
        pytest.param(build_request("POST", content_length="5", expect="100-continue") + b"hello", 100, id="expect"),
    ],
)
def test_sizes(impatient_server: HttpServer, message: bytes, status: int) -> None:
    with capture_logs() as log_events:
        response = parse(send(impatient_server.port, message))
        # The server has processed the request completely before it responds to another one.
        send(impatient_server.port, build_request())

    assert response.status == status
    assert [event for event in log_events if event["log_level"] == "error"] == []


def test_close_does_not_wait_for_slow_clients() -> None:
    with serve(ServerLimits()) as server, connect(server.port) as idle, connect(server.port) as slow:
        for connection in (idle, slow):
            connection.sendall(OPEN_REQUEST)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        slow.sendall(OPEN_REQUEST[:-4])
        server.close()

        assert b"HTTP" not in read_to_end(idle) + read_to_end(slow)


def test_close_completes_open_requests() -> None:
    handlers = Handlers()
    with serve(ServerLimits(), handlers) as server, connect(server.port) as connection:
        port = server.port
        connection.sendall(build_request(path="/held", connection="keep-alive"))
        assert handlers.started.wait(TIMEOUT_SECONDS)
        closing = threading.Thread(target=server.close)
        closing.start()
        wait_until_refused(port)
        handlers.released.set()
        answer = read_to_end(connection)
        closing.join()

    assert parse(answer).body == b"held"


def wait_until_refused(port: int) -> None:
    for _ in repeat_until_timeout():
        try:
            connect(port).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return
    raise AssertionError("the server still accepts connections")


def test_responses_are_sent_without_delay() -> None:
    with serve(ServerLimits()) as server, connect(server.port) as connection:
        connection.sendall(OPEN_REQUEST)
        connection.recv(65_536)
        assert server._listener is not None
        (protocol,) = server._listener.server.server_state.connections
        accepted = protocol.transport.get_extra_info("socket")

        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
