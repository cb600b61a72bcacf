"""The server: one path, one method, bounded in every direction, and its address follows the settings."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.server.address import ListenError, split_address
from reconciler.server.http_server import WebhookLimits, WebhookServer

SECRET = b"correct horse battery staple"
ANY_PORT = "127.0.0.1:0"
PATIENCE = 20.0


class Door:
    """The server and what it is asked; counts pokes."""

    def __init__(self, folder: Path, bounds: WebhookLimits | None = None) -> None:
        self.secrets = folder / "secrets"
        self.secrets.write_bytes(SECRET)
        self.pokes = 0
        self.webhooks = WebhookServer(self.poke, limits=bounds)
        self.webhooks.listen(ANY_PORT, self.secrets)

    def poke(self) -> None:
        self.pokes += 1

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.webhooks.port), PATIENCE)

    def say(self, request: bytes) -> bytes:
        """Return all that the server answers until it closes."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


def request(
    body: bytes = b"{}", *, method: str = "POST", path: str = "/hooks", secret: bytes = SECRET, length: str = ""
) -> bytes:
    signature = hmac.new(secret, body, hashlib.sha256).hexdigest()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: reconciler",
        f"Content-Length: {length or len(body)}",
        f"X-Hub-Signature-256: sha256={signature}",
        "X-GitHub-Event: push",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def without(header: str, message: bytes) -> bytes:
    return b"\r\n".join(line for line in message.split(b"\r\n") if not line.startswith(f"{header}:".encode()))


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with capture_logs():
        actual_door = Door(tmp_path, WebhookLimits(body_bytes=100_000, seconds=PATIENCE, connections=4))
        with actual_door.webhooks:
            yield actual_door


@pytest.mark.parametrize(
    ("message", "status", "pokes"),
    [
        pytest.param(request(), 202, 1, id="a-signed-delivery"),
        pytest.param(request(b"x" * 100_000), 202, 1, id="the-largest-body"),
        pytest.param(request(b""), 202, 1, id="no-body"),
        pytest.param(request(secret=b"a guess"), 401, 0, id="another-secret"),
        pytest.param(without("X-Hub-Signature-256", request()), 401, 0, id="no-signature"),
        pytest.param(request(path="/"), 404, 0, id="another-path"),
        pytest.param(request(path="/hooks/"), 404, 0, id="a-path-below"),
        pytest.param(request(path="/hooks?x=1"), 404, 0, id="a-question"),
        *(
            pytest.param(request(path=path), 404, 0, id=f"path-{path}")
            for path in (
                "//hooks", "///hooks", "/hooks//", "/HOOKS", "/./hooks", "/x/../hooks", "/%68ooks", "/hooks?",
                "/hooks#x", "/hooks;x", "hooks", "*", "http://reconciler/hooks", "//reconciler/hooks", "\\hooks",
            )
        ),
        pytest.param(request(method="GET", path="//hooks"), 404, 0, id="another-method-and-two-slashes"),
        pytest.param(request(method="GET"), 405, 0, id="another-method"),
        pytest.param(request(method="DELETE", path="/x"), 404, 0, id="another-method-and-path"),
        pytest.param(request(method="BREW"), 501, 0, id="no-method"),
        pytest.param(request(length="100001"), 413, 0, id="a-body-that-is-too-large"),
        pytest.param(request(length="9" * 16), 400, 0, id="a-length-that-is-none"),
        pytest.param(request(length="-2"), 400, 0, id="a-length-below-nothing"),
        pytest.param(request(length="2\r\nContent-Length: 3"), 400, 0, id="two-lengths"),
        pytest.param(without("Content-Length", request()), 411, 0, id="no-length"),
        pytest.param(
            request(length="2\r\nTransfer-Encoding: chunked"), 411, 0, id="a-body-in-chunks"
        ),
        pytest.param(b"GET /hooks HTTP/7.0\r\n\r\n", 505, 0, id="another-protocol"),
        pytest.param(b"<script>\r\n\r\n", 400, 0, id="no-http"),
        pytest.param(request(path="/" + "x" * 70_000), 414, 0, id="an-endless-line"),
        pytest.param(request(length="2\r\n" + "\r\n".join(f"X-{n}: 1" for n in range(200))), 431, 0, id="many-headers"),
    ],
)  # fmt: skip
def test_answers_hold_a_status_and_nothing_else(door: Door, message: bytes, status: int, pokes: int) -> None:
    answer = door.say(message)

    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().splitlines()
    allowed = {"Content-Length: 0", "Connection: close"} | ({"Allow: POST"} if status == 405 else set())
    assert lines[0].startswith(f"HTTP/1.1 {status} ")
    assert (set(lines[1:]), body) == (allowed, b"")
    assert door.pokes == pokes


def test_a_second_request_on_a_connection_is_not_read(door: Door) -> None:
    answer = door.say(request(b"1") + request(b"2"))

    assert (answer.count(b"HTTP/1.1"), door.pokes) == (1, 1)


def test_a_sender_that_goes_away_in_the_middle_is_no_event(door: Door) -> None:
    with capture_logs() as log_events, door.connect() as connection:
        connection.sendall(request(b"x" * 50)[:-20])
        connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert [item for item in log_events if item["log_level"] == "error"] == []


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"", id="who-says-nothing"),
        pytest.param(b"POST /hooks HT", id="who-stops-in-a-line"),
        pytest.param(request(b"x" * 50)[:-20], id="who-stops-in-the-body"),
    ],
)
def test_a_slow_sender_is_let_go(tmp_path: Path, begun: bytes) -> None:
    door = Door(tmp_path, WebhookLimits(seconds=0.2))
    with door.webhooks, door.connect() as connection:
        connection.sendall(begun)
        answer = read_all(connection)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")


def test_a_sender_that_trickles_is_let_go_all_the_same(tmp_path: Path) -> None:
    door = Door(tmp_path, WebhookLimits(seconds=0.5))
    with door.webhooks, door.connect() as connection:
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        connection.sendall(b"POST /hooks HTTP/1.1\r\nX-Slow: ")
        thread.start()
        try:
            assert read_all(connection) == b""
        except ConnectionResetError:
            # closed while bytes were under way: let go as well
            pass
        finally:
            stop.set()
            thread.join()


def test_more_connections_than_allowed_are_closed_at_once(door: Door) -> None:
    held = [door.connect() for _ in range(4)]
    for connection in held:
        # begun, so that it has its thread
        connection.sendall(b"POST")
    try:
        turned_away = closed(door)
    finally:
        for connection in held:
            connection.close()

    assert turned_away
    for attempt in range(200):
        # their threads need a moment to see that they are gone
        answer = said(door, request(str(attempt).encode()))
        if answer:
            break
    assert answer.startswith(b"HTTP/1.1 202 ")


def closed(door: Door) -> bool:
    return said(door, request()) == b""


def said(door: Door, message: bytes) -> bytes:
    try:
        return door.say(message)
    except OSError:
        return b""


def test_a_mistake_of_ours_is_told_and_the_server_lives(tmp_path: Path) -> None:
    pokes: list[int] = []

    def poke() -> None:
        pokes.append(1)
        if len(pokes) == 1:
            raise ZeroDivisionError

    door = Door(tmp_path)
    door.webhooks.close()
    with capture_logs() as log_events, WebhookServer(poke) as webhooks:
        webhooks.listen(ANY_PORT, door.secrets)
        door.webhooks = webhooks
        first, second = said(door, request(b"1")), said(door, request(b"2"))

    assert (first, second[:13]) == (b"", b"HTTP/1.1 202 ")
    assert [item["event"] for item in log_events if item["log_level"] == "error"] == ["webhook_failed"]


def test_a_system_without_threads_to_spare_costs_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(tmp_path, WebhookLimits(connections=1))
    with capture_logs(), door.webhooks:
        with monkeypatch.context() as patched:
            patched.setattr("socketserver.threading.Thread", _none_left)
            assert said(door, request()) == b""

        assert door.say(request()).startswith(b"HTTP/1.1 202 ")


def _none_left(**_: object) -> threading.Thread:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("127.0.0.1:8080", ("127.0.0.1", 8080), id="an-address"),
        pytest.param("localhost:0", ("localhost", 0), id="a-name-and-any-port"),
        pytest.param("[::1]:65535", ("::1", 65_535), id="the-newer-protocol"),
    ],
)
def test_addresses(address: str, expected: tuple[str, int]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["", "8080", ":8080", "a:", "a:x", "::1:8080", "a:65536", "a b:1", "http://a:1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="must be host:port"):
        split_address(address)


def test_it_listens_on_the_newer_protocol(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_bytes(SECRET)
    with WebhookServer(lambda: None) as webhooks:
        try:
            webhooks.listen("[::1]:0", tmp_path / "secrets")
        except ListenError as error:
            pytest.skip(f"this machine has no such address: {error}")
        with socket.create_connection(("::1", webhooks.port), PATIENCE) as connection:
            connection.sendall(request())

            assert read_all(connection).startswith(b"HTTP/1.1 202 ")


def test_another_address_takes_over_and_none_closes(door: Door) -> None:
    first = door.webhooks.port
    door.webhooks.listen("localhost:0", door.secrets)
    second = door.webhooks.port
    answer = door.say(request())
    door.webhooks.listen("", Path())

    assert first != second
    assert answer.startswith(b"HTTP/1.1 202 ")
    assert door.webhooks.port == 0
    for port in (first, second):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), PATIENCE)


def test_the_same_address_stays_open_and_what_was_seen_stays_seen(door: Door, tmp_path: Path) -> None:
    before = door.webhooks.port
    (tmp_path / "others").write_bytes(b"another\n" + SECRET)
    first = door.say(request())
    door.webhooks.listen(ANY_PORT, tmp_path / "others")

    assert door.webhooks.port == before
    assert first.startswith(b"HTTP/1.1 202 ")
    assert door.say(request()).startswith(b"HTTP/1.1 200 ")
    assert door.say(request(b"new", secret=b"another")).startswith(b"HTTP/1.1 202 ")


def test_what_cannot_be_listened_on_leaves_all_as_it_was(door: Door, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        text = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ListenError) as in_use:
            door.webhooks.listen(text, door.secrets)
    with pytest.raises(ListenError) as unreadable:
        door.webhooks.listen(ANY_PORT, tmp_path / "none")

    assert str(in_use.value) == (
        f'webhooks.listen: must be a free address of this machine, not "{text}": Address already in use'
    )
    assert str(unreadable.value) == (
        f"webhooks.secret_file: {tmp_path}/none: the secret file must be readable: No such file or directory"
    )
    assert door.say(request()).startswith(b"HTTP/1.1 202 ")
