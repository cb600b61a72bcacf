"""Parses the address on which the HTTP server listens, and contains constants for its URLs.

Every command imports this module. Therefore, it must not import modules that load slowly.
"""

from __future__ import annotations

import re

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine in URLs and listen addresses."""
API_PREFIX = "/api/v1"
"""The start of the paths of the API."""
_UNIX_PREFIX = "unix:"


class ListenError(Exception):
    """The server cannot listen on the address in the settings. The message contains the setting and its value."""


def get_socket_path(address: str) -> str:
    """Return the path of the Unix socket in an address such as "unix:/run/reconciler/http.sock".

    Return "" if the address is a host and a port.

    Raises:
        ValueError: The path is not absolute.
    """
    if not address.startswith(_UNIX_PREFIX):
        return ""
    path = address.removeprefix(_UNIX_PREFIX)
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise ValueError("must contain the absolute path of a socket, for example unix:/run/reconciler/http.sock")
    return path


def split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of an address such as "127.0.0.1:8080" or "[::]:8080".

    Raises:
        ValueError: The address has a different form. The message describes the allowed forms.
    """
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})", address)
    if not match or int(match[3]) > 65_535:
        raise ValueError('must be host:port, for example "127.0.0.1:8080" or "[::]:8080"; port 0 selects any free port')
    return match[1] or match[2], int(match[3])
