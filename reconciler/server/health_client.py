"""Sends requests to a running service, such as a request for its health."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, urlsplit

from reconciler.krm.field_text import quote_value
from reconciler.lazy_dataclasses import dataclass
from reconciler.server.address import get_socket_path, split_address

_TIMEOUT_SECONDS = 5.0
_LOOPBACK_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the names of these addresses, not a socket
_DEGRADED_HEADER = "X-Reconciler-Degraded"
_MAX_TEXT_BYTES = 4_096
_MAX_DETAILS_BYTES = 1 << 20


class NoResponseError(Exception):
    """The service does not respond, or the response does not come from the service. The message contains the URL."""


@dataclass(frozen=True)
class ServiceHealth:
    """The health of a service.

    Attributes:
        status: `ready`, `degraded` or `not ready`.
        codes: The codes of the failed checks.
    """

    status: str
    codes: tuple[str, ...] = ()


def build_own_url(address: str, *, has_tls: bool) -> str:
    """Return the URL of the service on this machine that listens on `address`.

    Raises:
        ValueError: The address is empty or has no fixed port. The message contains the next step.
    """
    if not address:
        raise ValueError(
            "server.listen: must be host:port, but is empty; set an address, or set --url to the address of the service"
        )
    if get_socket_path(address):
        return address
    host, port = split_address(address)
    if not port:
        raise ValueError(
            f"server.listen: must contain a fixed port, but is {quote_value(address)}; set a port, or set"
            " --url to the address of the service"
        )
    host = _LOOPBACK_HOSTS.get(host, host)
    scheme = "https" if has_tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def request_health(url: str, *, should_verify: bool = True) -> ServiceHealth:
    """Request the readiness of the service with this URL.

    Args:
        should_verify: Whether the certificate of an https URL must be valid for its host name. The certificate of the
            service on this machine usually does not contain the loopback address.

    Raises:
        ValueError: The URL is not valid.
        NoResponseError: There is no valid response.
    """
    response, text = send_request(url, "/readyz", _MAX_TEXT_BYTES, should_verify=should_verify)
    codes = text.decode(errors="replace").split()
    match response.status:
        case HTTPStatus.OK:
            degraded = response.headers.get(_DEGRADED_HEADER)
            return ServiceHealth("degraded", tuple(degraded.split(","))) if degraded else ServiceHealth("ready")
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return ServiceHealth("not ready", tuple(codes))
        case status:
            raise NoResponseError(
                f"{url}: the response has the status {status} instead of 200 or 503; check that the URL is the service"
            )


class _UnixConnection(http.client.HTTPConnection):
    """A connection through a Unix socket."""

    def __init__(self, path: str, timeout_seconds: float) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        """Open the connection."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connect(parts: SplitResult, timeout_seconds: float, *, should_verify: bool) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "unix":
        return _UnixConnection(parts.path, timeout_seconds)
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=timeout_seconds)
    context = ssl.create_default_context()
    if not should_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, parts.port, timeout=timeout_seconds, context=context)


def request_details(url: str) -> dict[str, Any]:
    """Request the details of all health checks, and the last pass. A service returns them only to local clients.

    Raises:
        ValueError: The URL is not valid.
        NoResponseError: There is no valid response.
    """
    response, text = send_request(url, "/readyz?verbose", _MAX_DETAILS_BYTES)
    try:
        details = json.loads(text) if response.status in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE) else None
    except ValueError:
        details = None
    if not isinstance(details, dict):
        message = text.decode(errors="replace").strip() or "the response has no details"
        raise NoResponseError(f"{url}: the service does not report its last pass: {message} (status {response.status})")
    return details


def send_request(
    url: str,
    path: str,
    max_bytes: int,
    *,
    should_verify: bool = True,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> tuple[http.client.HTTPResponse, bytes]:
    """Send a request to a path of the service with this URL, and return the response with its body.

    Args:
        body: The body of a POST request. If None, the request is a GET request.
        timeout_seconds: The maximal time without data from the service.

    Raises:
        ValueError: The URL is not valid.
        NoResponseError: The service does not respond.
    """
    parts = urlsplit(url)
    is_unix_socket = bool(get_socket_path(url))
    if not is_unix_socket and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValueError(f"must be a URL that starts with http:// or https://, but is {url!r}")
    connection = _connect(parts, timeout_seconds, should_verify=should_verify)
    try:
        method = "GET" if body is None else "POST"
        prefix = "" if is_unix_socket else parts.path.rstrip("/")
        connection.request(method, f"{prefix}{path}", body, headers or {})
        response = connection.getresponse()
        return response, response.read(max_bytes)
    except (OSError, http.client.HTTPException) as error:
        raise NoResponseError(f"{url}: the service does not respond: {error}") from None
    finally:
        connection.close()
