"""The HTTP/1.1 protocol of uvicorn with limits for slow clients and for the number of connections.

uvicorn has no time limit for request headers. Its protocol classes are not a public API. Therefore, `pyproject.toml`
allows one minor version of uvicorn.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from reconciler.server.limits import ServerLimits

RETRY_SECONDS = 2


class LimitedH11Protocol(H11Protocol):
    """One connection with time limits for sending complete headers and for reading a response.

    If the client exceeds a time limit, the server closes the connection. A subclass sets `limits`.
    """

    limits = ServerLimits()
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or close it with the status 503 if there are too many open connections."""
        super().connection_made(transport)
        self._start_timer()
        if len(self.connections) > self.limits.connections:
            self._close_with_status(HTTPStatus.SERVICE_UNAVAILABLE, (b"retry-after", b"%d" % RETRY_SECONDS))

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the resources of the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process data, unless the server has already closed the connection."""
        if not self.transport.is_closing():
            super().data_received(data)

    def handle_events(self) -> None:
        """Process the received data. Stop the timer if the headers of a request are complete."""
        super().handle_events()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle and not cycle.response_complete:
            self._stop_timer()

    def on_response_complete(self) -> None:
        """Wait for the next request of the connection."""
        self._start_timer()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to invalid HTTP. The response does not contain data of the request."""
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else HTTPStatus.BAD_REQUEST
        self._close_with_status(HTTPStatus(hint))

    def _close_with_status(self, status: HTTPStatus, *headers: tuple[bytes, bytes]) -> None:
        # Send no status if a response has already started, because the status of a started response cannot change.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            fields = [(b"content-length", b"0"), (b"connection", b"close"), *headers]
            response = h11.Response(status_code=status, headers=fields, reason=status.phrase.encode())
            for event in (response, h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        cycle: RequestResponseCycle | None = self.cycle
        if cycle:
            # Stop the handler of a request with an invalid body, so that it sends no second response.
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.limits.header_seconds, self._close_slow_connection)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_slow_connection(self) -> None:
        if self.transport.get_write_buffer_size():
            # Do not use `close`, because it would wait until the client has read the response.
            self.transport.abort()
        else:
            self.transport.close()


def build_protocol_class(limits: ServerLimits) -> type[LimitedH11Protocol]:
    """Return a protocol class with these limits. uvicorn creates one object of this class for each connection."""
    attributes: dict[str, Any] = {"limits": limits}
    return type("H11ProtocolWithLimits", (LimitedH11Protocol,), attributes)
