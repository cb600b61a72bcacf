"""The service with many slow clients, and with a socket of systemd."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.test_cli import change, run
from tests.support.daemon import ENVIRONMENT, start_program, wait_for_event
from tests.support.http_connection import get

CLIENTS = 1_000
# The limit of connections of the server.
MAX_CONNECTIONS = 256
TIMEOUT_SECONDS = 60.0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("server") / "demo"
    result = run(folder.parent, "demo", str(folder))
    assert result.returncode == 0, result.stderr
    (folder / "reconciler.yaml").write_text("poll_seconds: 3600\nserver: {listen: '127.0.0.1:0'}\n")
    return folder


def read_to_end(connection: socket.socket) -> bytes:
    try:
        pieces = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
        return b"".join(pieces)
    except ConnectionResetError:
        return b"".join(pieces)


@pytest.mark.slow
def test_passes_continue_with_1000_slow_clients(demo: Path) -> None:
    with start_program(demo, "run", "config", "--fleet", "fleet.git", "--cache", ".cache") as service:
        port = int(str(wait_for_event(service, "server_started")["port"]))
        wait_for_event(service, "pass_completed")
        connections = [socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) for _ in range(CLIENTS)]
        for connection in connections[:MAX_CONNECTIONS]:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        refused = [read_to_end(connection)[:12] for connection in connections[MAX_CONNECTIONS:]]
        change(demo, "regions.yaml", "auth.us-east", "login.us-east")
        service.send_signal(signal.SIGUSR1)
        pushed = wait_for_event(service, "draft_pushed")
        # The server closes the slow connections after its limit of 10 seconds.
        slow = [read_to_end(connection) for connection in connections[:MAX_CONNECTIONS]]
        statuses = [get(port, path, TIMEOUT_SECONDS).status for path in ("/healthz", "/readyz")]
        service.send_signal(signal.SIGTERM)
        wait_for_event(service, "daemon_stopped")
        for connection in connections:
            connection.close()

    assert set(refused) == {b"HTTP/1.1 503"}
    assert set(slow) == {b""}
    assert pushed["event"] == "draft_pushed"
    assert statuses == [200, 200]


# systemd passes the socket as descriptor 3, and the ID of the new process in a variable.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-m", "reconciler", *sys.argv[2:]])
"""


@pytest.mark.slow
@pytest.mark.parametrize("has_file", [False, True], ids=["tcp", "unix"])
def test_restart_with_a_socket_of_systemd_refuses_no_connection(
    demo: Path, tmp_path_factory: pytest.TempPathFactory, *, has_file: bool
) -> None:
    file = tmp_path_factory.mktemp("s") / "http.sock"
    listen = f"unix:{file}" if has_file else "127.0.0.1:0"
    settings = file.with_name("settings.yaml")
    settings.write_text(f"poll_seconds: 3600\nserver: {{listen: '{listen}'}}\n")
    arguments = ["run", "config", "--settings", str(settings), "--fleet", "fleet.git", "--cache", ".cache"]
    statuses = []
    with socket.socket(socket.AF_UNIX if has_file else socket.AF_INET) as activated:
        activated.bind(str(file) if has_file else ("127.0.0.1", 0))
        activated.listen()
        for _ in range(2):
            # This client connects before the service starts.
            with socket.socket(activated.family) as connection:
                connection.settimeout(TIMEOUT_SECONDS)
                connection.connect(activated.getsockname())
                connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                descriptor = activated.fileno()
                command = [sys.executable, "-c", ACTIVATE, str(descriptor), *arguments]
                with subprocess.Popen(
                    command, cwd=demo, env=ENVIRONMENT, text=True, stderr=subprocess.PIPE, pass_fds=[descriptor]
                ) as service:
                    statuses.append(read_to_end(connection).split()[1])
                    service.send_signal(signal.SIGTERM)
                    wait_for_event(service, "daemon_stopped")

    assert statuses == [b"200", b"200"]
