"""The listener of the HTTP server: its address, and its replacement by another address."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from reconciler.server.address import ListenError, split_address
from reconciler.server.application import create_app
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginRules
from tests.support.http_connection import TIMEOUT_SECONDS, build_request, connect, parse, read_to_end, send

ANY_PORT = "127.0.0.1:0"


async def answer(_request: Request) -> Response:
    return PlainTextResponse("answer")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    limits, rules = ServerLimits(), OriginRules(frozenset({"127.0.0.1"}))
    app = create_app([Route("/", answer)], limits, lambda: rules)
    with capture_logs(), HttpServer(app, limits) as http_server:
        http_server.listen(ANY_PORT)
        yield http_server


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("127.0.0.1:8080", ("127.0.0.1", 8080), id="address"),
        pytest.param("localhost:0", ("localhost", 0), id="name-and-any-port"),
        pytest.param("[::1]:65535", ("::1", 65_535), id="ipv6"),
    ],
)
def test_valid_address(address: str, expected: tuple[str, int]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["", "8080", ":8080", "a:", "a:x", "::1:8080", "a:65536", "a b:1", "http://a:1"])
def test_invalid_address(address: str) -> None:
    with pytest.raises(ValueError, match="must be host:port"):
        split_address(address)


def test_server_listens_on_ipv6(server: HttpServer) -> None:
    try:
        server.listen("[::1]:0")
    except ListenError as error:
        pytest.skip(f"this machine has no such address: {error}")
    with socket.create_connection(("::1", server.port), TIMEOUT_SECONDS) as connection:
        connection.sendall(build_request())

        assert parse(read_to_end(connection)).body == b"answer"


@pytest.mark.emits("server_started", "server_stopped")
def test_other_address_replaces_the_first(server: HttpServer) -> None:
    first = server.port
    server.listen("localhost:0")
    second = server.port
    response = parse(send(second, build_request()))
    server.listen("")

    assert first != second
    assert response.body == b"answer"
    assert server.port == 0
    for port in (first, second):
        with pytest.raises(ConnectionRefusedError):
            connect(port)


def test_equal_address_stays_open(server: HttpServer) -> None:
    first = server.port
    server.listen(ANY_PORT)

    assert server.port == first
    assert parse(send(first, build_request())).body == b"answer"


def test_socket_of_systemd_stays_open() -> None:
    limits, rules = ServerLimits(), OriginRules(frozenset({"127.0.0.1"}))
    app = create_app([Route("/", answer)], limits, lambda: rules)
    with capture_logs(), socket.create_server(("127.0.0.1", 0)) as activated:
        port = activated.getsockname()[1]
        with HttpServer(app, limits, activated) as server:
            server.listen("127.0.0.1:1")
            first = parse(send(server.port, build_request()))
            server.listen("")
            # This client waits until the server listens again.
            with connect(port) as connection:
                connection.sendall(build_request())
                server.listen("127.0.0.1:2")
                second = parse(read_to_end(connection))

    assert (first.body, second.body) == (b"answer", b"answer")


def test_used_address_does_not_change_the_server(server: HttpServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ListenError) as error:
            server.listen(address)

    assert str(error.value) == f'must be a free address of this machine, but is "{address}": Address already in use'
    assert parse(send(server.port, build_request())).body == b"answer"
