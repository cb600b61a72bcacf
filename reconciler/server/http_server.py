"""The HTTP server of the service: one listener, in one thread with its own event loop.

The main thread opens the socket, so that an address that cannot be used is an error of the settings.
"""

from __future__ import annotations

import logging
import socket
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.address import ListenError, split_address
from reconciler.server.limits import ServerLimits
from reconciler.server.protocol import build_protocol_class
from reconciler.telemetry.event_log import log

_BACKLOG = 1024


class HttpServer:
    """The HTTP server. Its address can change at run time. A `with` block closes the server at its end.

    Args:
        activated_socket: A listening socket, which the server uses instead of each address.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits, activated_socket: socket.socket | None = None) -> None:
        self._app = app
        self._limits = limits
        self._activated_socket = activated_socket
        self._listener: _Listener | None = None

    def listen(self, address: str) -> None:
        """Listen on an address such as "127.0.0.1:8080". If the address is "", stop listening.

        Raises:
            ListenError: The address cannot be used. The server is not changed.
        """
        if self._listener and self._listener.address == address:
            return
        # Bind the new address before the old address is closed.
        listening_socket = self._open_socket(address) if address else None
        self.close()
        if listening_socket:
            self._listener = _start_listener(address, listening_socket, self._app, self._limits)

    @property
    def port(self) -> int:
        """The port on which the server listens. It is 0 if the server does not listen."""
        return self._listener.port if self._listener else 0

    def _open_socket(self, address: str) -> socket.socket:
        # Use a copy, because a listener closes its socket at its end.
        return self._activated_socket.dup() if self._activated_socket else _open_socket(address)

    def close(self) -> None:
        """Stop listening. Open requests get the time `ServerLimits.stop_seconds`."""
        if self._listener:
            self._listener.close()
        self._listener = None

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Listener:
    """A socket that accepts connections, with the server and the thread that process their requests."""

    address: str
    port: int
    server: uvicorn.Server
    thread: Thread

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        log.info("server_stopped", address=self.address)


def _start_listener(address: str, listening_socket: socket.socket, app: ASGIApp, limits: ServerLimits) -> _Listener:
    config = uvicorn.Config(
        app, interface="asgi3", loop="asyncio", lifespan="off", ws="none", http=build_protocol_class(limits),
        log_config=None, access_log=False, proxy_headers=False, server_header=False, backlog=_BACKLOG,
        h11_max_incomplete_event_size=limits.header_bytes, timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
        timeout_graceful_shutdown=limits.stop_seconds,
    )  # fmt: skip
    # uvicorn logs invalid requests. The content of unauthenticated requests must not fill the log.
    logging.getLogger("uvicorn.error").disabled = True
    server = uvicorn.Server(config)
    port = int(listening_socket.getsockname()[1])
    thread = Thread(target=server.run, args=([listening_socket],), name="http-server", daemon=True)
    thread.start()
    log.info("server_started", address=address, port=port)
    return _Listener(address, port, server, thread)


def _open_socket(address: str) -> socket.socket:
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Set the protocol: asyncio sets TCP_NODELAY only for sockets with this protocol. Without it, each response on an
    # open connection takes 40 ms longer (Nagle's algorithm).
    listening_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening_socket.bind((host, port))
        # Listen now, so that the first connections wait until the thread accepts them.
        listening_socket.listen(_BACKLOG)
    except OSError as error:
        listening_socket.close()
        raise ListenError(
            f'must be a free address of this machine, not "{address}": {error.strerror or error}'
        ) from None
    return listening_socket
