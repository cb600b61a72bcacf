"""Connections to checked addresses, with a deadline for each request.

The HTTP client limits the time of each read. A server that sends one byte per second would never reach this limit. The
connections of this module also stop at the deadline of the request.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import httpcore
import httpx

from reconciler.sources.addresses import resolve_host

_MAX_CONNECTIONS = 16
_KEEPALIVE_SECONDS = 5.0


class _Deadline(threading.local):
    """The deadline of the current request of a thread, in seconds of the monotonic clock."""

    seconds: float | None = None

    def limit(self, timeout: float | None) -> float | None:
        """Return a timeout that does not exceed the deadline. Raises httpcore.ReadTimeout."""
        if self.seconds is None:
            return timeout
        remaining = self.seconds - time.monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout("the request took longer than the setting `sources.timeout_seconds` allows")
        return remaining if timeout is None else min(timeout, remaining)


_deadline = _Deadline()


@contextmanager
def limit_duration(seconds: float) -> Iterator[None]:
    """Limit the time of all reads and writes of this thread. A nested limit does not extend the outer limit."""
    before = _deadline.seconds
    end = time.monotonic() + seconds
    _deadline.seconds = end if before is None else min(before, end)
    try:
        yield
    finally:
        _deadline.seconds = before


class _LimitedStream(httpcore.NetworkStream):
    """A connection that stops at the deadline of the current request."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _deadline.limit(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _deadline.limit(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _LimitedStream(self._stream.start_tls(ssl_context, server_hostname, _deadline.limit(timeout)))

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to the addresses of a host after a check of all its addresses."""

    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = resolve_host(host.strip("[]"), port)
        except OSError as error:
            raise httpcore.ConnectError(f"the name cannot be resolved: {error.strerror or error}") from error
        failure: Exception = httpcore.ConnectError("the host has no address")
        for address in addresses:
            try:
                return _LimitedStream(
                    self._backend.connect_tcp(address, port, _deadline.limit(timeout), local_address, socket_options)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class CheckedTransport(httpx.HTTPTransport):
    """The transport of httpx with checked addresses and deadlines.

    Args:
        proxy: The URL of an HTTP proxy. "" for direct connections. With a proxy, only its own address is checked,
            because the proxy resolves the names.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str) -> None:
        super().__init__(verify=tls, trust_env=False)
        backend = _CheckedBackend()
        if proxy:
            self._pool = httpcore.HTTPProxy(
                proxy, ssl_context=tls, max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEPALIVE_SECONDS,
                network_backend=backend,
            )  # fmt: skip
        else:
            self._pool = httpcore.ConnectionPool(
                ssl_context=tls, max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEPALIVE_SECONDS,
                network_backend=backend,
            )  # fmt: skip
