"""The console of a running daemon: its state while the config cannot be read, reloads of its settings, and its end."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

from tests.support.console import find_value
from tests.support.daemon import Daemon, run_daemon
from tests.support.git_repositories import make_bare
from tests.support.http_connection import build_request, connect, get, parse, read_to_end, send

TIMEOUT = 30.0
STOP_SECONDS = 10.0


def write_settings(folder: Path, config: str, *, is_enabled: bool) -> Path:
    file = folder / "reconciler.yaml"
    enabled = str(is_enabled).lower()
    file.write_text(
        f"cache: {folder}/cache\nconfig: {{url: {config}}}\nfleet: {{url: {folder}/fleet.git}}\npoll_seconds: 3600\n"
        f"server: {{listen: '127.0.0.1:0'}}\nconsole: {{enabled: {enabled}}}\n"
    )
    return file


def read_page(port: int, text: str) -> bool:
    """Return whether the first page soon contains a text."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if text in get(port, "/", TIMEOUT).body.decode():
            return True
        time.sleep(0.1)
    return False


def open_stream(port: int) -> socket.socket:
    connection = connect(port, TIMEOUT)
    connection.sendall(build_request(path="/events"))
    assert b"200 OK" in connection.recv(65_536)
    return connection


def reload(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for("settings_reloaded")


def reload_in_console(daemon: Daemon, port: int) -> None:
    """Press the button of the page System that reloads the settings."""
    token = find_value(get(port, "/system", TIMEOUT).body.decode(), "csrf")
    body = f"csrf={token}".encode()
    headers = {"content_type": "application/x-www-form-urlencoded", "content_length": str(len(body))}
    message = build_request("POST", "/system/reload", body, sec_fetch_site="same-origin", **headers)
    assert parse(send(port, message, TIMEOUT)).status == 303
    daemon.wait_for("settings_reloaded")


def test_the_console_follows_the_settings_of_the_service(tmp_path: Path) -> None:
    make_bare(tmp_path / "fleet.git")
    config = tmp_path / "config"
    file = write_settings(tmp_path, "https://127.0.0.1:1/config.git", is_enabled=True)
    with run_daemon(["run", "--settings", str(file)], tmp_path) as daemon:
        port = int(daemon.url.rpartition(":")[2])
        assert read_page(port, "The last pass failed")
        assert "config.git" in get(port, "/", TIMEOUT).body.decode()

        config.mkdir()
        write_settings(tmp_path, str(config), is_enabled=True)
        reload(daemon)
        assert read_page(port, "0 targets")
        reload_in_console(daemon, port)
        with open_stream(port) as stream:
            write_settings(tmp_path, str(config), is_enabled=False)
            reload(daemon)
            assert read_to_end(stream).endswith(b"0\r\n\r\n")
        assert get(port, "/", TIMEOUT).status == 404

        write_settings(tmp_path, str(config), is_enabled=True)
        reload(daemon)
        assert read_page(port, "0 targets")
        with open_stream(port) as stream:
            start = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            read_to_end(stream)
            daemon.wait_for("daemon_stopped")
            assert time.monotonic() - start < STOP_SECONDS
