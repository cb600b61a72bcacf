"""The program in a process of its own: its log events, its HTTP server and its notifications to systemd."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

from tests.support.emitted_events import record_event

PROJECT = Path(__file__).resolve().parents[2]
# The environment of the tests without settings of the program and of Git.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("RECONCILER", "GIT_"))} | {
    "PYTHONPATH": str(PROJECT),
    # The tests leave no files in the home folder of the user.
    "RECONCILER_CACHE": ".cache",
}


def start_program(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] = ENVIRONMENT,
    output: int | IO[bytes] = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """Start a command of the program in a folder. `output` receives the standard output and the standard error."""
    command = [sys.executable, "-m", "reconciler", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=output, stderr=output)


def run_program(
    folder: Path, *arguments: str, environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program in a folder until it ends."""
    with start_program(folder, *arguments, environment=environment) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def wait_for_event(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """Read the log of a process until an event, and return the fields of the event."""
    assert process.stderr is not None
    for line in process.stderr:
        data: dict[str, Any] = json.loads(line)
        record_event(data["event"])
        if data["event"] == event:
            return data
    raise AssertionError(f"the process ended before {event}")


@dataclass
class Daemon:
    """A running daemon, with the URL of its server."""

    process: subprocess.Popen[str]
    notifications: socket.socket
    url: str = ""

    def wait_for(self, event: str) -> dict[str, Any]:
        return wait_for_event(self.process, event)

    def wait_for_notification(self, line: str) -> None:
        """Wait until the daemon sends a line to systemd, for example READY=1."""
        while line not in self.notifications.recv(4096).decode().splitlines():
            pass

    def get(self, path: str) -> tuple[int, str]:
        with urlopen(f"{self.url}{path}", timeout=60) as response:
            return response.status, response.read().decode()


@contextmanager
def run_daemon(arguments: Sequence[str], folder: Path, variables: Mapping[str, str] = {}) -> Iterator[Daemon]:
    """Start the program in a folder, wait until its server listens, and stop it at the end."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(PROJECT), "GIT_CONFIG_GLOBAL": "/dev/null",
        **variables, "NOTIFY_SOCKET": str(folder / "notify"),
    }  # fmt: skip
    (folder / "notify").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
        notifications.bind(environment["NOTIFY_SOCKET"])
        notifications.settimeout(120)
        with start_program(folder, *arguments, environment=environment) as process:
            daemon = Daemon(process, notifications)
            try:
                daemon.url = f"http://127.0.0.1:{daemon.wait_for('server_started')['port']}"
                yield daemon
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)
