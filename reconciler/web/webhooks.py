"""Webhooks in: a small HTTP server with one path, which wakes the service and tells it nothing (design 4.1)."""

from __future__ import annotations

import io
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any

from reconciler.daemon.events import log
from reconciler.web.address import ListenError, split_address
from reconciler.web.deliveries import Deliveries
from reconciler.web.secret_file import SecretFile, SecretFileError

PATH = "/hooks"
_PIECE = 65_536
# how long a stop waits for the server to notice
_NOTICE_SECONDS = 0.1


@dataclass(frozen=True)
class Bounds:
    """What one sender may cost: bytes of a body, seconds for a whole request, connections at once."""

    body_bytes: int = 25 * 1024 * 1024
    seconds: float = 15.0
    connections: int = 32


class Webhooks:
    """The server as the settings want it, from one reading of them to the next; closed on leaving.

    `poke` is called from its threads, for each delivery that counts.
    """

    def __init__(
        self, poke: Callable[[], None], clock: Callable[[], float] = time.time, bounds: Bounds | None = None
    ) -> None:
        self._deliveries = Deliveries(tuple, poke, clock)
        self._bounds = bounds or Bounds()
        self._server: _Server | None = None
        self._listen = ""

    def listen(self, address: str, secret_file: Path) -> None:
        """Listen on `host:port` from now on, "" nowhere. Raises ListenError, and then all is as it was."""
        secrets = _secrets(secret_file).secrets if address else tuple
        # the same address stays open; another is taken before the old one closes
        server = self._bind(address) if address and address != self._listen else None
        self._deliveries.secrets = secrets
        if address != self._listen:
            self.close()
        if server:
            Thread(target=server.serve_forever, args=(_NOTICE_SECONDS,), name="webhooks", daemon=True).start()
            self._server, self._listen = server, address
            log.info("webhooks_open", address=address, port=self.port)

    @property
    def port(self) -> int:
        """The port that is open, 0 without any."""
        return int(self._server.server_address[1]) if self._server else 0

    def close(self) -> None:
        """Listen no more."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            log.info("webhooks_closed", address=self._listen)
        self._server, self._listen = None, ""

    def __enter__(self) -> Webhooks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _bind(self, address: str) -> _Server:
        host, port = split_address(address)
        try:
            return _Server(host, port, self._deliveries, self._bounds)
        except OSError as error:
            why = error.strerror or error
            raise ListenError(
                f'webhooks.listen: must be an address of this machine that is free, not "{address}": {why}'
            ) from None


def _secrets(file: Path) -> SecretFile:
    try:
        return SecretFile(file)
    except SecretFileError as error:
        raise ListenError(f"webhooks.secret_file: {error}") from None


class _Server(ThreadingTCPServer):
    """One thread for each connection, and no more than a few of them."""

    allow_reuse_address = True
    allow_reuse_port = False
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, deliveries: Deliveries, bounds: Bounds) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.deliveries = deliveries
        self.bounds = bounds
        self._free = BoundedSemaphore(bounds.connections)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread for the connection, or close it at once while there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # the system has no thread for it: the place must not be lost with it
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell our own mistakes; that a sender went away is none."""
        if not isinstance(sys.exception(), OSError):
            log.error("webhook_failed", exc_info=True)


class _UntilRead(io.RawIOBase):
    """A connection that must have said everything by a moment, however slowly it speaks."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _BadBodyError(Exception):
    """The body cannot be read; `status` says why."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One request, then the connection is closed; answers hold a status and nothing else."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_UntilRead(self.connection, self.server.bounds.seconds))

    def do_POST(self) -> None:
        """Answer a delivery."""
        if self._target != PATH:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        # a name that comes twice is neither of the two
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        try:
            self._answer(self.server.deliveries.receive(headers, self._body()))
        except _BadBodyError as error:
            self._answer(error.status)

    def _other(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED if self._target == PATH else HTTPStatus.NOT_FOUND)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _other  # noqa: N815

    @property
    def _target(self) -> str:
        """The request target as the sender wrote it.

        `self.path` is not that: http.server replaces slashes at its beginning by one slash, so that `//hooks` would be
        a webhook, although a proxy in front may treat it as another path.
        """
        return self.requestline.split()[1]

    def _body(self) -> Iterator[bytes]:
        left = self._length()
        while left:
            try:
                piece = self.rfile.read1(min(left, _PIECE))
            except TimeoutError:
                raise _BadBodyError(HTTPStatus.REQUEST_TIMEOUT) from None
            if not piece:
                raise _BadBodyError(HTTPStatus.BAD_REQUEST)
            left -= len(piece)
            yield piece

    def _length(self) -> int:
        written = self.headers.get_all("Content-Length", [])
        # a body in chunks does not say how long it is: proxies in front gather it
        if not written or "Transfer-Encoding" in self.headers:
            raise _BadBodyError(HTTPStatus.LENGTH_REQUIRED)
        if len(written) > 1 or not re.fullmatch(r"[0-9]{1,15}", written[0]):
            raise _BadBodyError(HTTPStatus.BAD_REQUEST)
        if int(written[0]) > self.server.bounds.body_bytes:
            raise _BadBodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return int(written[0])

    def _answer(self, status: HTTPStatus) -> None:
        self.close_connection = True
        # what could not be read counts as the oldest HTTP, which knows no status
        self.request_version = self.protocol_version
        self.send_response_only(status)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "POST")
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no HTTP, without repeating it."""
        self._answer(HTTPStatus(code))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Say nothing: what a stranger sent is not worth a line."""
