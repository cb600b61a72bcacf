"""The HTTP server for webhooks. It has one path. An accepted request only starts a pass."""

from __future__ import annotations

import io
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.address import ListenError, split_address
from reconciler.server.deliveries import SecretFile, SecretFileError, WebhookDeliveries
from reconciler.telemetry.event_log import log

WEBHOOK_PATH = "/hooks"
_CHUNK_BYTES = 65_536
# The interval at which the server thread checks for a shutdown.
_SHUTDOWN_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class WebhookLimits:
    """Limits of a webhook server: bytes of a body, seconds for a complete request, and concurrent connections."""

    body_bytes: int = 25 * 1024 * 1024
    seconds: float = 15.0
    connections: int = 32


class WebhookServer:
    """The webhook server. Its address and secrets can change at run time. A `with` block closes the server at its end.

    Args:
        notify: Called for each accepted delivery, in a thread of the server.
        clock: Returns seconds since 1970.
    """

    def __init__(
        self, notify: Callable[[], None], clock: Callable[[], float] = time.time, limits: WebhookLimits | None = None
    ) -> None:
        self._deliveries = WebhookDeliveries(tuple, notify, clock)
        self._limits = limits or WebhookLimits()
        self._server: _Server | None = None
        self._listen = ""

    def listen(self, address: str, secret_file: Path) -> None:
        """Listen on an address such as "127.0.0.1:8080". If the address is "", stop listening.

        Raises:
            ListenError: The address or the secret file cannot be used. The server is not changed.
        """
        secrets = _open_secret_file(secret_file).secrets if address else tuple
        # Bind the new address before the old address is closed. Keep an unchanged address open.
        server = self._bind(address) if address and address != self._listen else None
        self._deliveries.secrets = secrets
        if address != self._listen:
            self.close()
        if server:
            Thread(target=server.serve_forever, args=(_SHUTDOWN_POLL_SECONDS,), name="webhooks", daemon=True).start()
            self._server, self._listen = server, address
            log.info("webhook_server_started", address=address, port=self.port)

    @property
    def port(self) -> int:
        """The port on which the server listens. It is 0 if the server does not listen."""
        return int(self._server.server_address[1]) if self._server else 0

    def close(self) -> None:
        """Stop listening, and close the server socket."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            log.info("webhook_server_stopped", address=self._listen)
        self._server, self._listen = None, ""

    def __enter__(self) -> WebhookServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _bind(self, address: str) -> _Server:
        host, port = split_address(address)
        try:
            return _Server(host, port, self._deliveries, self._limits)
        except OSError as error:
            reason = error.strerror or error
            raise ListenError(
                f'webhooks.listen: must be a free address of this machine, not "{address}": {reason}'
            ) from None


def _open_secret_file(file: Path) -> SecretFile:
    try:
        return SecretFile(file)
    except SecretFileError as error:
        raise ListenError(f"webhooks.secret_file: {error}") from None


class _Server(ThreadingTCPServer):
    """A TCP server with one thread per connection and a limited number of connections."""

    allow_reuse_address = True
    allow_reuse_port = False
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, deliveries: WebhookDeliveries, limits: WebhookLimits) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.deliveries = deliveries
        self.limits = limits
        self._free_connections = BoundedSemaphore(limits.connections)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection. Close the connection if there are too many open connections."""
        if not self._free_connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # Do not count this connection any longer, because the system could not start a thread for it.
            self._free_connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Process the request. Afterwards, decrease the number of open connections."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free_connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log unexpected exceptions. Ignore OSError, because a closed connection is not an error."""
        if not isinstance(sys.exception(), OSError):
            log.error("webhook_failed", exc_info=True)


class _DeadlineReader(io.RawIOBase):
    """Reads from a connection, with one time limit for the complete request."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        remaining_seconds = self._deadline - time.monotonic()
        if remaining_seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining_seconds)
        return self._connection.recv_into(buffer)


class _BadBodyError(Exception):
    """The body of a request cannot be read. `status` is the HTTP status of the response."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """Handles one request per connection. The responses contain a status and no body."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_DeadlineReader(self.connection, self.server.limits.seconds))

    def do_POST(self) -> None:
        """Verify a webhook delivery, and respond with its status."""
        if self._target != WEBHOOK_PATH:
            self._respond(HTTPStatus.NOT_FOUND)
            return
        # Join the values of a repeated header, so that a repeated signature header is not valid.
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        try:
            self._respond(self.server.deliveries.receive(headers, self._read_body()))
        except _BadBodyError as error:
            self._respond(error.status)

    def _reject_method(self) -> None:
        self._respond(HTTPStatus.METHOD_NOT_ALLOWED if self._target == WEBHOOK_PATH else HTTPStatus.NOT_FOUND)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _reject_method  # noqa: N815

    @property
    def _target(self) -> str:
        """The request target as the client sent it.

        The attribute `path` is not used, because http.server replaces several slashes at its start with one slash. A
        proxy can treat `//hooks` as another path than `/hooks`.
        """
        return self.requestline.split()[1]

    def _read_body(self) -> Iterator[bytes]:
        remaining_bytes = self._read_length()
        while remaining_bytes:
            try:
                chunk = self.rfile.read1(min(remaining_bytes, _CHUNK_BYTES))
            except TimeoutError:
                raise _BadBodyError(HTTPStatus.REQUEST_TIMEOUT) from None
            if not chunk:
                raise _BadBodyError(HTTPStatus.BAD_REQUEST)
            remaining_bytes -= len(chunk)
            yield chunk

    def _read_length(self) -> int:
        lengths = self.headers.get_all("Content-Length", [])
        # Reject a chunked body, because no header contains its length. Reverse proxies convert a chunked body before
        # they send it.
        if not lengths or "Transfer-Encoding" in self.headers:
            raise _BadBodyError(HTTPStatus.LENGTH_REQUIRED)
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,15}", lengths[0]):
            raise _BadBodyError(HTTPStatus.BAD_REQUEST)
        if int(lengths[0]) > self.server.limits.body_bytes:
            raise _BadBodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return int(lengths[0])

    def _respond(self, status: HTTPStatus) -> None:
        self.close_connection = True
        # Set the version: for an invalid request, http.server assumes HTTP/0.9 and would send a response without a
        # status.
        self.request_version = self.protocol_version
        self.send_response_only(status)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "POST")
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Respond to an invalid request only with a status. The response does not contain data of the request."""
        self._respond(HTTPStatus(code))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Log nothing, because the content of unauthenticated requests must not fill the log."""
