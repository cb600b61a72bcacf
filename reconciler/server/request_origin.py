"""Checks of the origin of a request: the `Host` header, and the client address behind trusted proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.address import LOOPBACK_NAMES, get_socket_path, split_address
from reconciler.server.request_limits import CLOSE

# Allow any host name for these paths, because probes use the address of the pod, and webhooks have a signature.
PATHS_FOR_ALL_HOSTS = frozenset({"/healthz", "/readyz", "/metrics", "/hooks"})
_ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})  # noqa: S104 - the names of these addresses, not a socket
_FROM_TRUSTED_PROXY = "reconciler.is_from_trusted_proxy"

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class OriginRules:
    """The rules for the origin of requests.

    Attributes:
        hosts: The allowed host names and addresses in the header `Host`, in lower case and without a port.
        has_all_addresses: Whether each IP address is an allowed host, because the server listens on all addresses.
        trusted_proxies: The networks of proxies whose headers `X-Forwarded-For` and `X-Forwarded-Proto` are used.
    """

    hosts: frozenset[str] = frozenset()
    has_all_addresses: bool = False
    trusted_proxies: tuple[IpNetwork, ...] = ()

    def allows_host(self, host: str) -> bool:
        """Return whether a header `Host` is allowed. This check prevents DNS rebinding, because the host name of an
        attacker is not allowed.
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name in self.hosts or (self.has_all_addresses and parse_address(name) is not None)

    def trusts(self, address: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self.trusted_proxies)


def build_origin_rules(
    listen: str, hosts: Iterable[str], external_url: str, trusted_proxies: Sequence[str]
) -> OriginRules:
    """Return the rules for a server that listens on the address `listen` and has the URL `external_url`."""
    is_unix_socket = bool(get_socket_path(listen))
    address = split_address(listen)[0].lower() if listen and not is_unix_socket else ""
    names = {host.lower() for host in hosts} | {address, urlsplit(external_url).hostname or ""} - {""}
    if is_unix_socket or address in LOOPBACK_NAMES | _ALL_ADDRESSES:
        names |= LOOPBACK_NAMES
    networks = tuple(ipaddress.ip_network(text) for text in trusted_proxies)
    return OriginRules(frozenset(names), address in _ALL_ADDRESSES, networks)


def is_loopback(listen: str) -> bool:
    """Return whether a server that listens on the address `listen` accepts only connections from this machine."""
    return bool(get_socket_path(listen)) or split_address(listen)[0].lower() in LOOPBACK_NAMES


class OriginCheck:
    """Replaces the address of a trusted proxy with the address of its client, and checks the header `Host`.

    If the header `Host` is not allowed, the response has the status 421.

    Args:
        get_rules: Returns the current rules.
    """

    def __init__(self, app: ASGIApp, get_rules: Callable[[], OriginRules]) -> None:
        self._app = app
        self._get_rules = get_rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""
        rules = self._get_rules()
        headers = Headers(scope=scope)
        if scope["path"] not in PATHS_FOR_ALL_HOSTS and not rules.allows_host(headers.get("host", "")):
            await Response(status_code=HTTPStatus.MISDIRECTED_REQUEST, headers=CLOSE)(scope, receive, send)
            return
        is_from_proxy = is_proxy_connection(scope, rules)
        scope[_FROM_TRUSTED_PROXY] = is_from_proxy
        if is_from_proxy:
            _apply_forwarded_headers(scope, headers, rules)
        await self._app(scope, receive, send)


def is_proxy_connection(scope: Scope, rules: OriginRules) -> bool:
    """Return whether a proxy that `rules` trust has opened the connection of a request.

    Only processes with access to the file of a Unix socket can open a connection through it. Therefore, each of them is
    a trusted proxy. The port of the server is None for these connections.
    """
    if scope["client"]:
        return rules.trusts(scope["client"][0])
    return bool(scope["server"]) and scope["server"][1] is None


def is_from_trusted_proxy(scope: Scope) -> bool:
    """Return whether a trusted proxy has sent the request to this server. Call this after `OriginCheck`."""
    return bool(scope.get(_FROM_TRUSTED_PROXY))


def _apply_forwarded_headers(scope: Scope, headers: Headers, rules: OriginRules) -> None:
    """Replace the client address and the scheme of a request by the values that trusted proxies put into the headers.

    Each proxy appends a value to the right end of a header. Therefore, the values are read from right to left. Values
    to the left of those from trusted proxies are ignored, because the client can have sent them.
    """
    # A connection through a Unix socket has no client address.
    client, hops = scope["client"][0] if scope["client"] else "", 0
    addresses = _split_values(headers.getlist("x-forwarded-for"))
    while addresses and (not client or rules.trusts(client)) and parse_address(addresses[-1]):
        client, hops = addresses.pop(), hops + 1
    protocols = _split_values(headers.getlist("x-forwarded-proto"))
    if hops:
        scope["client"] = (client, 0)
    if protocols and (protocol := protocols[-min(max(hops, 1), len(protocols))]) in ("http", "https"):
        scope["scheme"] = protocol


def _split_values(lines: Iterable[str]) -> list[str]:
    return [value.strip() for line in lines for value in line.split(",")]


def parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address in a text. Return None if the text is not an address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # Convert the address, because a socket that accepts both IP versions reports IPv4 clients as IPv6 addresses.
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
