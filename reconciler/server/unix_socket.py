"""A listening Unix socket: the file through which processes on this machine connect to the server."""

from __future__ import annotations

import socket
import stat
from contextlib import suppress
from pathlib import Path

from reconciler.server.address import ListenError

# The user and the group of the service can connect. A reverse proxy is a member of this group.
_FILE_MODE = 0o660


def open_unix_socket(path: str, backlog: int) -> socket.socket:
    """Return a socket that listens on the file `path`. Replace the file of a process that does not run any more.

    Raises:
        ListenError: The file is not a socket, another process uses it, or its folder cannot be used.
    """
    listening_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _check_unused(path)
        # Rename the socket when it listens, so that no client finds a file to which it cannot connect.
        new_file = Path(f"{path}.new")
        new_file.unlink(missing_ok=True)
        listening_socket.bind(str(new_file))
        new_file.chmod(_FILE_MODE)
        listening_socket.listen(backlog)
        new_file.replace(path)
    except OSError as error:
        listening_socket.close()
        raise ListenError(f'must be the path of a socket in an existing folder, but is "{path}": {error}') from None
    except ListenError:
        listening_socket.close()
        raise
    return listening_socket


def _check_unused(path: str) -> None:
    """Raise ListenError if the file is not a socket, or if a process listens on it."""
    try:
        is_socket = stat.S_ISSOCK(Path(path).lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise ListenError(f'must be the path of a socket, and "{path}" is another file; delete it or use another path')
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return
    raise ListenError(f'must be a free socket, and another process listens on "{path}"')


def remove_socket_file(path: str) -> None:
    """Delete the file of a socket. Later clients cannot connect any more."""
    with suppress(OSError):
        Path(path).unlink()
