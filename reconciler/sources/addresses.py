"""Rules for addresses: allowed URLs, plain HTTP, and network addresses that are always refused."""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import unquote, urljoin, urlsplit

from reconciler.krm.url_patterns import matches_url_pattern
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import has_credentials, redact_url
from reconciler.sources.errors import SourceError

# The URLs of artifacts contain `docker.io`, but the API of Docker Hub is on the host `registry-1.docker.io`.
DOCKER_HUB_NAME, DOCKER_HUB_HOST = "docker.io", "registry-1.docker.io"
_PORTS = {"https": 443, "http": 80}
# Services at these addresses return the credentials of the machine to each process. The last network contains the
# metadata service of Amazon EC2 for IPv6.
_REFUSED_NETWORKS = tuple(map(ipaddress.ip_network, ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32")))
_REFUSED_MESSAGE = (
    "the host {} has the address {}, but link-local addresses and addresses of metadata services are always refused"
)
# IPv6 addresses of these networks contain an IPv4 address in their last four bytes (RFC 4291, RFC 6052).
_EMBEDDING_NETWORKS = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))


@dataclass(frozen=True)
class AddressPolicy:
    """The addresses from which sources can be downloaded.

    Attributes:
        allowed_urls: Patterns of allowed URLs. If there are none, all https URLs are allowed.
        insecure_hosts: Hosts that can be contacted with plain HTTP, as `host` or `host:port`.
    """

    allowed_urls: tuple[str, ...] = ()
    insecure_hosts: tuple[str, ...] = ()

    def check_url(self, url: str, *other_forms: str) -> None:
        """Check that a URL can be requested.

        Args:
            url: The URL of a request, or of a redirect.
            other_forms: Other spellings of the URL to which patterns can refer, such as `oci://…`.

        Raises:
            SourceError: `SourceAddressRefused` if the URL is not allowed.
        """
        shown = redact_url(url)
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise _create_error(f"the URL {shown!r} is malformed") from None
        check_no_credentials(url)
        # Refuse "..", because a server could resolve it to a folder that is not in the list of allowed URLs.
        path = unquote(parts.path)
        # Ignore the text after a semicolon, because some servers ignore it too.
        if any(segment.partition(";")[0] == ".." for segment in path.split("/")) or "\\" in path:
            raise _create_error(f'the URL {shown!r} must have a path without ".." and backslashes')
        if parts.scheme not in _PORTS or not host:
            raise _create_error(f"the URL {shown!r} must start with https:// or http://, and have a host")
        if _is_refused(host):
            raise _create_error(_REFUSED_MESSAGE.format(host, host))
        if parts.scheme == "http" and not self.allows_plain_http(host, port):
            raise _create_error(
                f"the URL {shown!r} must use https. To allow http, add the host to the setting `sources.insecure_hosts`"
            )
        forms = (f"{parts.scheme}://{format_authority(host, port, parts.scheme)}{parts.path}", *other_forms)
        if self.allowed_urls and not any(
            matches_url_pattern(form, pattern) for form in forms for pattern in self.allowed_urls
        ):
            raise _create_error(f"the URL {shown!r} must match a pattern of the setting `sources.allowed_urls`")

    def allows_plain_http(self, host: str, port: int | None) -> bool:
        """Return whether a host can be contacted without TLS. The result is always True for a loopback address."""
        return is_loopback(host) or host in self.insecure_hosts or f"{host}:{port or 80}" in self.insecure_hosts


def join_url(base: str, url: str) -> str:
    """Return the absolute form of a URL, which can be relative to `base`.

    Raises:
        SourceError: `SourceAddressRefused` if the result is malformed.
    """
    try:
        joined = urljoin(base, url)
        # The attribute `port` raises ValueError if the port is not valid.
        urlsplit(joined).port  # noqa: B018
    except ValueError:
        raise _create_error(f"the URL {redact_url(url)!r} is malformed") from None
    return joined


def check_no_credentials(url: str) -> None:
    """Check that a URL contains no credentials.

    Raises:
        SourceError: `SourceAddressRefused` if the URL contains credentials. The message does not contain them.
    """
    if has_credentials(url):
        raise _create_error(
            f"the URL {redact_url(url)!r} must not contain a user name, password or token (removed here): put them into"
            " the file of the setting `sources.credentials_file`",
        )


def format_authority(host: str, port: int | None, scheme: str) -> str:
    """Return `host` or `host:port` of a URL. The default port of the scheme is left out."""
    name = f"[{host}]" if ":" in host else host
    return name if port in {None, _PORTS.get(scheme)} else f"{name}:{port}"


def has_same_origin(first: str, second: str) -> bool:
    """Return whether two URLs have the same scheme, host and port. The result for a malformed URL is False.

    The case of letters has no effect, and a missing port is the default port of the scheme. Credentials must be sent
    only to the origin to which they belong.
    """
    origin = _find_origin(first)
    return origin is not None and origin == _find_origin(second)


def is_below(url: str, folder: str) -> bool:
    """Return whether a URL equals the URL of a folder, or is below it on the same origin.

    Paths with ".." are not checked here, because `AddressPolicy.check_url` refuses them.
    """
    path, start = urlsplit(url).path, urlsplit(folder).path.rstrip("/")
    return has_same_origin(url, folder) and (path == start or path.startswith(f"{start}/"))


def _find_origin(url: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(url)
        port = parts.port if parts.port is not None else _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname and port is not None else None


def build_registry_origin(authority: str, *, is_insecure: bool) -> str:
    """Return the URL of a registry without a path. `authority` is `host` or `host:port` of an `oci://` URL."""
    host = authority.lower()
    return f"{'http' if is_insecure else 'https'}://{DOCKER_HUB_HOST if host == DOCKER_HUB_NAME else host}"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address, or `localhost`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def resolve_host(host: str, port: int) -> tuple[str, ...]:
    """Return the IP addresses of a host.

    The caller must connect to these addresses, because a second lookup of the name can return different addresses.

    Raises:
        SourceError: `SourceAddressRefused` if an address is a link-local address or that of a metadata service.
        OSError: The name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise _create_error(f"the host {host!r} is not valid") from None
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    if refused := next(filter(_is_refused, addresses), None):
        raise _create_error(_REFUSED_MESSAGE.format(host, refused))
    return addresses


def _is_refused(host: str) -> bool:
    """Return whether a host is an IP address that is always refused. The result for a name is False."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return any(form in network for form in _list_forms(address) for network in _REFUSED_NETWORKS)


def _list_forms(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return the address. For an IPv6 address, also return the IPv4 addresses to which a gateway may translate it."""
    forms: list[IPv4Address | IPv6Address] = [address]
    if isinstance(address, IPv6Address):
        if any(address in network for network in _EMBEDDING_NETWORKS):
            forms.append(IPv4Address(address.packed[-4:]))
        forms += filter(None, (address.sixtofour, *(address.teredo or ())))
    return forms


def _create_error(message: str) -> SourceError:
    return SourceError(SourceCodes.SOURCE_ADDRESS_REFUSED.name, message)
