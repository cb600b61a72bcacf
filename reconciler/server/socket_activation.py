"""A listening socket that systemd has opened. With such a socket, a restart of the service refuses no connection."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from pathlib import Path

from reconciler.server.address import ListenError, get_socket_path

_FIRST_DESCRIPTOR = 3
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def take_activated_socket(environment: MutableMapping[str, str]) -> socket.socket | None:
    """Return the socket that systemd passes to this process, or None if there is no such socket.

    The function removes the variables of systemd from `environment`, because child processes inherit the environment.

    Raises:
        ListenError: systemd passes several sockets, or an object that is not a listening TCP or Unix socket.
    """
    pid, count, _ = (environment.pop(name, "") for name in _VARIABLES)
    if pid != str(os.getpid()) or count in ("", "0"):
        return None
    if count != "1":
        raise ListenError(f"the socket unit must pass one socket to the service, but passes {count}")
    expected = "the socket unit must pass a listening TCP socket or Unix socket"
    try:
        activated = socket.socket(fileno=_FIRST_DESCRIPTOR)
        is_listening = activated.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise ListenError(f"{expected}: {error.strerror}") from None
    is_known = activated.family == socket.AF_UNIX or activated.proto == socket.IPPROTO_TCP
    if not is_listening or activated.type != socket.SOCK_STREAM or not is_known:
        raise ListenError(f"{expected} (ListenStream=)")
    activated.set_inheritable(False)
    return activated


def get_activated_path(activated: socket.socket) -> str:
    """Return the path of a Unix socket. Return "" for a TCP socket.

    The names of abstract sockets, which have no file, start with "@", as in the settings of systemd.
    """
    if activated.family != socket.AF_UNIX:
        return ""
    return os.fsdecode(activated.getsockname()).replace("\0", "@", 1)


def check_address(activated: socket.socket, address: str) -> None:
    """Check that the address in the settings describes the socket of systemd.

    The allowed host names, the trust in proxies and the health command depend on the address in the settings. The port
    can differ, for example if it is 0.

    Raises:
        ListenError: The socket is of a different kind, or it has a different path.
    """
    path, expected = get_activated_path(activated), get_socket_path(address)
    if path and not (expected and Path(path).resolve() == Path(expected).resolve()):
        raise ListenError(f'must be "unix:{path}", because the socket unit of systemd passes this Unix socket')
    if expected and not path:
        raise ListenError("must be host:port, because the socket unit of systemd passes a TCP socket")
