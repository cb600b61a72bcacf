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
from reconciler.server.socket_activation import check_address, take_activated_socket

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
    name = activated and activated.getsockname()
    print(activated and (name, activated.proto, activated.get_inheritable()), environment)
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


@pytest.fixture
def listening_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as created:
        # The path of a socket has at most 107 bytes.
        created.bind(str(tmp_path_factory.mktemp("s") / "http.sock"))
        created.listen()
        yield created


def test_socket_of_systemd_is_used(listening: socket.socket) -> None:
    expected = (listening.getsockname(), socket.IPPROTO_TCP, False)

    assert take(listening.fileno()) == f"{expected} {{'HOME': '/'}}"


def test_unix_socket_of_systemd_is_used(listening_file: socket.socket) -> None:
    assert take(listening_file.fileno()) == f"{(listening_file.getsockname(), 0, False)} {{'HOME': '/'}}"


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1:8080", id="tcp-address"),
        pytest.param("unix:/run/other.sock", id="other-path"),
    ],
)
def test_the_settings_must_contain_the_path_of_the_unix_socket(address: str, listening_file: socket.socket) -> None:
    path = listening_file.getsockname()

    check_address(listening_file, f"unix:{path}")
    with pytest.raises(ListenError, match=f'must be "unix:{path}", because the socket unit'):
        check_address(listening_file, address)


def test_the_path_in_the_settings_can_contain_symbolic_links(listening_file: socket.socket, tmp_path: Path) -> None:
    path = Path(listening_file.getsockname())
    (tmp_path / "link").symlink_to(path.parent)

    check_address(listening_file, f"unix:{tmp_path / 'link' / path.name}")


def test_a_socket_without_a_file_is_an_error() -> None:
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0reconciler-test-{os.getpid()}")
        abstract.listen()
        with pytest.raises(ListenError, match='must be "unix:@reconciler-test'):
            check_address(abstract, "unix:/run/http.sock")


@pytest.mark.parametrize(
    ("pid", "count", "output"),
    [
        pytest.param("1", "1", "None {'HOME': '/'}", id="other-process"),
        pytest.param("", "0", "None {'HOME': '/'}", id="no-socket"),
        pytest.param("", "2", "the socket unit must pass one socket to the service, but passes 2", id="two-sockets"),
    ],
)
def test_other_variables(listening: socket.socket, pid: str, count: str, output: str) -> None:
    assert take(listening.fileno(), pid, count) == output


def test_other_objects_are_errors(tmp_path: Path) -> None:
    expected = "the socket unit must pass a listening TCP socket or Unix socket"
    first, second = socket.socketpair()
    with (tmp_path / "file").open("w") as file, socket.socket() as unconnected, first, second:
        assert [take(one.fileno()).partition(" (")[0].partition(":")[0] for one in (file, unconnected, first)] == [
            expected
        ] * 3


def test_without_systemd_there_is_no_socket() -> None:
    assert take_activated_socket({}) is None


def test_error_names_the_number_of_sockets() -> None:
    with pytest.raises(ListenError, match="but passes 3"):
        take_activated_socket({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "3"})
