"""A listening socket that systemd has opened. With such a socket, a restart of the service refuses no connection."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

from reconciler.server.address import ListenError

_FIRST_DESCRIPTOR = 3
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def take_activated_socket(environment: MutableMapping[str, str]) -> socket.socket | None:
    """Return the socket that systemd passes to this process, or None if there is no such socket.

    The function removes the variables of systemd from `environment`, because child processes inherit the environment.

    Raises:
        ListenError: systemd passes several sockets, or an object that is not a listening TCP socket.
    """
    pid, count, _ = (environment.pop(name, "") for name in _VARIABLES)
    if pid != str(os.getpid()) or count in ("", "0"):
        return None
    if count != "1":
        raise ListenError(f"the socket unit must pass one socket to the service, not {count}")
    try:
        activated = socket.socket(fileno=_FIRST_DESCRIPTOR)
        is_listening = activated.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise ListenError(f"the socket unit must pass a listening TCP socket: {error.strerror}") from None
    if not is_listening or activated.type != socket.SOCK_STREAM or activated.proto != socket.IPPROTO_TCP:
        raise ListenError("the socket unit must pass a listening TCP socket (ListenStream=)")
    activated.set_inheritable(False)
    return activated
