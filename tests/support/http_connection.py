"""Raw HTTP requests over a socket, for tests of the HTTP server."""

from __future__ import annotations

import hashlib
import hmac
import socket
from dataclasses import dataclass, field

SECRET = b"correct horse battery staple"
TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True)
class RawResponse:
    """A response as the client receives it. The names of the headers are in lower case."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def connect(port: int, timeout: float = TIMEOUT_SECONDS) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout)


def read_to_end(connection: socket.socket) -> bytes:
    """Return everything that the server sends until it closes the connection."""
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


def send(port: int, message: bytes, timeout: float = TIMEOUT_SECONDS) -> bytes:
    """Send a message on a new connection, and return everything that the server sends until it closes."""
    with connect(port, timeout) as connection:
        connection.sendall(message)
        return read_to_end(connection)


def parse(answer: bytes) -> RawResponse:
    head, _, body = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
    return RawResponse(int(status_line.split()[1]), headers, body)


def build_request(method: str = "GET", path: str = "/", body: bytes = b"", **headers: str) -> bytes:
    """Return a request after which the server closes the connection. `_` in the names of headers means `-`."""
    fields = {"host": "127.0.0.1", "connection": "close", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {text}" for name, text in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(port: int, path: str, timeout: float) -> RawResponse:
    """Return the response to a GET request."""
    return parse(send(port, build_request(path=path), timeout))


def build_webhook(
    body: bytes = b"{}", *, method: str = "POST", path: str = "/hooks", secret: bytes = SECRET, **headers: str
) -> bytes:
    signature = hmac.new(secret, body, hashlib.sha256).hexdigest()
    fields = {
        "content_length": str(len(body)),
        "x_hub_signature_256": f"sha256={signature}",
        "x_github_event": "push",
        **headers,
    }
    return build_request(method, path, body, **fields)
