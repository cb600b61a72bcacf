"""The signals TERM and INT during a pass: readiness, the exit status, and the second signal."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.daemon import start_program, wait_for_event
from tests.support.http_connection import get

TIMEOUT_SECONDS = 60.0


@contextmanager
def start_with_a_hanging_config(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the service in its first pass, with a config repository that never responds. Yield it and its port."""
    with socket.create_server(("127.0.0.1", 0)) as remote:
        url = f"http://127.0.0.1:{remote.getsockname()[1]}"
        (folder / "reconciler.yaml").write_text(
            f"git: {{allowed_urls: ['{url}', '{folder}'], timeout_seconds: 600}}\nserver: {{listen: '127.0.0.1:0'}}\n"
        )
        remote.settimeout(TIMEOUT_SECONDS)
        with start_program(folder, "run", f"{url}/config.git", "--fleet", "fleet.git", "--cache", ".cache") as service:
            port = int(str(wait_for_event(service, "server_started")["port"]))
            connection, _ = remote.accept()
            try:
                yield service, port
            finally:
                connection.close()
                service.kill()


def get_readiness(port: int) -> tuple[int, list[str]]:
    response = get(port, "/readyz", TIMEOUT_SECONDS)
    return response.status, response.body.decode().split()


def test_second_signal_aborts_a_pass(tmp_path: Path) -> None:
    with start_with_a_hanging_config(tmp_path) as (service, port):
        before = get_readiness(port)
        service.send_signal(signal.SIGTERM)
        while "Stopping" not in (after := get_readiness(port))[1]:
            assert service.poll() is None
        # A signal that follows at once counts as the same signal.
        while service.poll() is None:
            service.send_signal(signal.SIGTERM)
        status = service.wait(TIMEOUT_SECONDS)

    assert before == (503, ["NoPassYet"])
    assert after == (503, ["Stopping", "NoPassYet"])
    assert status == 128 + signal.SIGTERM
