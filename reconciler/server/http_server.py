"""The HTTP server of the service: one listener, in one thread with its own event loop.

The main thread opens the socket, so that an address that cannot be used is an error of the settings.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.address import ListenError, get_socket_path, split_address
from reconciler.server.limits import ServerLimits
from reconciler.server.protocol import build_protocol_class
from reconciler.server.socket_activation import check_address, get_activated_path
from reconciler.server.tls import CertificateFiles, ServerCertificate
from reconciler.server.unix_socket import open_unix_socket, remove_socket_file
from reconciler.telemetry.event_log import log

_BACKLOG = 1024
_CERTIFICATE_CHECK_SECONDS = 10


class HttpServer:
    """The HTTP server. Its address can change at run time. A `with` block closes the server at its end.

    Args:
        activated_socket: A listening socket from systemd. If it is set, `listen` uses it instead of the address.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits, activated_socket: socket.socket | None = None) -> None:
        self._app = app
        self._limits = limits
        self._activated_socket = activated_socket
        self._listener: _Listener | None = None

    def listen(self, address: str, certificate_files: CertificateFiles | None = None) -> None:
        """Listen on an address such as "127.0.0.1:8080" or "unix:/run/http.sock". If the address is "", stop listening.

        Args:
            certificate_files: The files of the certificate. If None, the server does not use TLS.

        Raises:
            ListenError: The address cannot be used. The server is not changed.
            CertificateError: The certificate cannot be used. The server is not changed.
        """
        if self._listener and self._listener.is_equal(address, certificate_files):
            return
        certificate = ServerCertificate(certificate_files) if certificate_files else None
        # Open the new socket first. If this fails, the server continues to use the old socket.
        listening_socket = self._open_socket(address) if address else None
        if self._listener:
            self._close_listener(keeps_socket_file=self._listener.address == address)
        if listening_socket:
            self._listener = _start_listener(address, listening_socket, certificate, self._app, self._limits)

    @property
    def port(self) -> int:
        """The port on which the server listens. It is 0 if the server does not listen."""
        return self._listener.port if self._listener else 0

    @property
    def has_activated_socket(self) -> bool:
        """Whether systemd passes a socket to the server."""
        return self._activated_socket is not None

    @property
    def activated_host(self) -> str:
        """The address of the activated socket. It is "" if there is no such socket, or if it is a Unix socket."""
        if self._activated_socket is None or get_activated_path(self._activated_socket):
            return ""
        return str(self._activated_socket.getsockname()[0])

    def _open_socket(self, address: str) -> socket.socket:
        # Give the listener a copy of the open socket, because a listener closes its socket when it stops.
        if self._activated_socket:
            check_address(self._activated_socket, address)
            return self._activated_socket.dup()
        if self._listener and self._listener.address == address:
            return self._listener.listening_socket.dup()
        return _open_socket(address)

    def close(self) -> None:
        """Stop listening. Open requests get the time `ServerLimits.stop_seconds`."""
        self._close_listener()

    def _close_listener(self, *, keeps_socket_file: bool = False) -> None:
        # The file of an activated socket belongs to systemd.
        if self._listener:
            self._listener.close(keeps_socket_file=keeps_socket_file or self.has_activated_socket)
        self._listener = None

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Listener:
    """A socket that accepts connections, with the server and the thread that process their requests."""

    address: str
    listening_socket: socket.socket
    certificate: ServerCertificate | None
    server: uvicorn.Server
    thread: Thread

    @property
    def port(self) -> int:
        """The port of the socket. It is 0 for a Unix socket."""
        if self.listening_socket.family == socket.AF_UNIX:
            return 0
        return int(self.listening_socket.getsockname()[1])

    def is_equal(self, address: str, certificate_files: CertificateFiles | None) -> bool:
        """Return whether the listener has this address and the certificate of these files."""
        return (self.address, self.certificate and self.certificate.files) == (address, certificate_files)

    def close(self, *, keeps_socket_file: bool = False) -> None:
        """Stop accepting connections, and complete open requests.

        Args:
            keeps_socket_file: Whether another listener or systemd uses the same Unix socket.
        """
        path = get_socket_path(self.address)
        # Delete the file first. Later, it can already belong to a new process.
        if path and not keeps_socket_file:
            remove_socket_file(path)
        self.server.should_exit = True
        self.thread.join()
        log.info("server_stopped", address=self.address)


class _Server(uvicorn.Server):
    """A server that limits the time for TLS handshakes, because uvicorn has no setting for this limit."""

    def __init__(self, config: uvicorn.Config, handshake_seconds: float) -> None:
        super().__init__(config)
        self._handshake_seconds = handshake_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections on the sockets."""
        loop = asyncio.get_running_loop()
        protocol_class: Any = self.config.http_protocol_class
        create_protocol = partial(protocol_class, self.config, self.server_state, {}, loop)
        context = self.config.ssl
        handshake_seconds = self._handshake_seconds if context else None
        self.servers = [
            await loop.create_server(
                create_protocol, sock=item, ssl=context, backlog=_BACKLOG, ssl_handshake_timeout=handshake_seconds
            )
            for item in sockets or ()
        ]
        self.started = True


def _start_listener(
    address: str,
    listening_socket: socket.socket,
    certificate: ServerCertificate | None,
    app: ASGIApp,
    limits: ServerLimits,
) -> _Listener:
    config = uvicorn.Config(
        app, interface="asgi3", loop="asyncio", lifespan="off", ws="none", http=build_protocol_class(limits),
        log_config=None, access_log=False, proxy_headers=False, server_header=False, backlog=_BACKLOG,
        h11_max_incomplete_event_size=limits.header_bytes, timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
        timeout_graceful_shutdown=limits.stop_seconds,
    )  # fmt: skip
    # Turn off this logger. Otherwise, uvicorn logs each invalid request, and any client can fill the log.
    logging.getLogger("uvicorn.error").disabled = True
    if certificate:
        context = certificate.context
        config.ssl_context_factory = lambda config, create_context: context
        config.callback_notify = certificate.reload_if_changed
        config.timeout_notify = _CERTIFICATE_CHECK_SECONDS
    server = _Server(config, limits.header_seconds)
    thread = Thread(target=server.run, args=([listening_socket],), name="http-server", daemon=True)
    thread.start()
    listener = _Listener(address, listening_socket, certificate, server, thread)
    log.info("server_started", address=address, port=listener.port)
    return listener


def _open_socket(address: str) -> socket.socket:
    if path := get_socket_path(address):
        return open_unix_socket(path, _BACKLOG)
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Set the protocol: asyncio sets TCP_NODELAY only for sockets with this protocol. Without TCP_NODELAY, each
    # response on an open connection takes 40 ms longer (Nagle's algorithm).
    listening_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening_socket.bind((host, port))
        # Listen now, so that the first connections wait until the thread accepts them.
        listening_socket.listen(_BACKLOG)
    except OSError as error:
        listening_socket.close()
        raise ListenError(
            f'must be a free address of this machine, but is "{address}": {error.strerror or error}'
        ) from None
    return listening_socket
