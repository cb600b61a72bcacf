"""Sockets that systemd passes to the service."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.server.address import ListenError
from reconciler.server.socket_activation import take_activated_socket

# Take the socket of descriptor 3 in a new process, and print its port or the error.
PROGRAM = """
import os, sys
from reconciler.server.address import ListenError
from reconciler.server.socket_activation import take_activated_socket

descriptor, pid = int(sys.argv[1]), sys.argv[2]
os.dup2(descriptor, 3)
environment = {"LISTEN_PID": pid or str(os.getpid()), "LISTEN_FDS": sys.argv[3], "HOME": "/"}
try:
    activated = take_activated_socket(environment)
    print(activated and (activated.getsockname()[1], activated.proto, activated.get_inheritable()), environment)
except ListenError as error:
    print(error)
"""
PROJECT = Path(__file__).parents[2]


def take(descriptor: int, pid: str = "", count: str = "1") -> str:
    command = [sys.executable, "-c", PROGRAM, str(descriptor), pid, count]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    result = subprocess.run(command, env=environment, pass_fds=[descriptor], capture_output=True, text=True, check=True)
    return result.stdout.strip()


@pytest.fixture(scope="module")
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as created:
        yield created


def test_socket_of_systemd_is_used(listening: socket.socket) -> None:
    port = listening.getsockname()[1]

    assert take(listening.fileno()) == f"{(port, socket.IPPROTO_TCP, False)} {{'HOME': '/'}}"


@pytest.mark.parametrize(
    ("pid", "count", "output"),
    [
        pytest.param("1", "1", "None {'HOME': '/'}", id="other-process"),
        pytest.param("", "0", "None {'HOME': '/'}", id="no-socket"),
        pytest.param("", "2", "the socket unit must pass one socket to the service, not 2", id="two-sockets"),
    ],
)
def test_other_variables(listening: socket.socket, pid: str, count: str, output: str) -> None:
    assert take(listening.fileno(), pid, count) == output


def test_other_objects_are_errors(tmp_path: Path) -> None:
    expected = "the socket unit must pass a listening TCP socket"
    with (tmp_path / "file").open("w") as file, socket.socket() as unconnected:
        assert take(file.fileno()).startswith(expected)
        assert take(unconnected.fileno()).startswith(expected)


def test_without_systemd_there_is_no_socket() -> None:
    assert take_activated_socket({}) is None


def test_error_names_the_number_of_sockets() -> None:
    with pytest.raises(ListenError, match="not 3"):
        take_activated_socket({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "3"})
