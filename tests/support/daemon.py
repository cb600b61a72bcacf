"""A daemon in a process of its own, with its log events and its HTTP server."""

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
from typing import Any
from urllib.request import urlopen

PROJECT = Path(__file__).resolve().parents[2]


@dataclass
class Daemon:
    """A running daemon, with the URL of its server."""

    process: subprocess.Popen[str]
    notifications: socket.socket
    url: str = ""

    def wait_for(self, event: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            data: dict[str, Any] = json.loads(line)
            if data["event"] == event:
                return data
        raise AssertionError(f"the daemon ended before {event}")

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
    command = [sys.executable, "-m", "reconciler", *arguments]
    (folder / "notify").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
        notifications.bind(environment["NOTIFY_SOCKET"])
        notifications.settimeout(120)
        with subprocess.Popen(command, cwd=folder, env=environment, text=True, stderr=subprocess.PIPE) as process:
            daemon = Daemon(process, notifications)
            try:
                daemon.url = f"http://127.0.0.1:{daemon.wait_for('server_started')['port']}"
                yield daemon
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)
