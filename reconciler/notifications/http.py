"""The HTTP client of channels: allowed hosts only, no redirects, no private addresses, and a time limit."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

import httpx

from reconciler import __version__
from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel import ChannelError
from reconciler.retry_after import read_retry_after

_TIMEOUT_SECONDS = 10.0
_MAX_RESPONSE_BYTES = 64 * 1024
_MAX_RETRY_SECONDS = 3600.0


@dataclass(frozen=True)
class HostPolicy:
    """The hosts that channels can contact.

    Attributes:
        allowed_hosts: The names of the hosts. If empty, the host of each configured URL is allowed, if all its
            addresses are public.
    """

    allowed_hosts: frozenset[str] = frozenset()

    def check_listed(self, host: str) -> None:
        """Raise ChannelError if there is a list of allowed hosts, and this host is not in it."""
        if self.allowed_hosts and host not in self.allowed_hosts:
            raise ChannelError(
                f'the host "{host}" is not in `notifications.allowed_hosts`: add the host, or correct the URL'
            )

    def resolve(self, host: str, port: int) -> str:
        """Return an address of a host.

        The connection must use this address, because the next look-up can return a different address.

        Raises:
            ChannelError: The host is not allowed, has a private address, or is unknown.
        """
        self.check_listed(host)
        try:
            addresses = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as error:
            raise ChannelError(f'the host "{host}" cannot be resolved: {error}') from None
        private = [str(address) for address in addresses if not ipaddress.ip_address(address).is_global]
        if private and host not in self.allowed_hosts:
            raise ChannelError(
                f'the host "{host}" has the private address {private[0]}: add the host to `notifications.allowed_hosts`'
            )
        return str(addresses[0])


class HttpClient:
    """Sends JSON to services.

    Args:
        proxy: The URL of an HTTP proxy. With a proxy, the addresses of hosts are not checked, because the proxy
            resolves the names. Proxies from environment variables are not used.
    """

    def __init__(self, hosts: HostPolicy, proxy: str = "") -> None:
        self._hosts = hosts
        self._proxy = proxy

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Send JSON, and return the JSON of the response. Return {} if the response is not a JSON mapping.

        Raises:
            ChannelError: The URL is not allowed, the service does not respond, or the response reports an error.
        """
        try:
            target = httpx.URL(url)
        except httpx.InvalidURL:
            raise ChannelError("the URL of the channel is not valid") from None
        if target.scheme != "https" and not (target.scheme == "http" and target.host in self._hosts.allowed_hosts):
            raise ChannelError(
                "the URL of the channel must start with https://; http:// is allowed for hosts in"
                " `notifications.allowed_hosts`"
            )
        try:
            return self._send(target, body, headers)
        except (httpx.HTTPError, OSError) as error:
            # The text of an httpx error can contain the URL, which is a secret. Report only the type of the error.
            raise ChannelError(f"{target.host} cannot be reached: {type(error).__name__}") from None

    def _send(self, url: httpx.URL, body: bytes, headers: Mapping[str, str]) -> Mapping[str, Any]:
        host = url.host
        all_headers = {"Content-Type": "application/json", "User-Agent": f"reconciler/{__version__}", **headers}
        extensions: dict[str, Any] = {}
        if self._proxy:
            self._hosts.check_listed(host)
        else:
            port = url.port or (443 if url.scheme == "https" else 80)
            address = self._hosts.resolve(host, port)
            all_headers["Host"] = url.netloc.decode()
            # Check the certificate against the name in the URL, although the connection uses the checked address.
            extensions = {"sni_hostname": host}
            url = url.copy_with(host=address)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        with (
            httpx.Client(
                # Use the certificates of the system, to which operators can add their own authority.
                verify=ssl.create_default_context(),
                trust_env=False,
                follow_redirects=False,
                timeout=_TIMEOUT_SECONDS,
                proxy=self._proxy or None,
            ) as client,
            client.stream("POST", url, content=body, headers=all_headers, extensions=extensions) as response,
        ):
            content = _read_body(response, deadline)
            _check_status(host, response)
            return _parse_mapping(content)


def _read_body(response: httpx.Response, deadline: float) -> bytes:
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > _MAX_RESPONSE_BYTES or time.monotonic() > deadline:
            # Ignore the rest of the body, because the success does not depend on it.
            break
    return content


def _check_status(host: str, response: httpx.Response) -> None:
    if not response.is_success:
        seconds = read_retry_after(response.headers.get("Retry-After", ""), time.time())
        raise ChannelError(
            f"{host} responded with the HTTP status {response.status_code}",
            None if seconds is None else min(seconds, _MAX_RETRY_SECONDS),
        )


def _parse_mapping(content: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
