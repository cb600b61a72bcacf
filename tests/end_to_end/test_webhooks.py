"""Webhooks from a socket to a pass: a signed delivery starts a pass, and a used port ends the service with an error."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.test_cli import change, run
from tests.support.daemon import start_program, wait_for_event
from tests.support.http_connection import SECRET, build_webhook, parse, send


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("webhooks") / "world"
    result = run(folder.parent, "demo", str(folder))
    assert result.returncode == 0, result.stderr
    (folder / "secret").write_bytes(SECRET)
    return folder


def post(port: int, body: bytes, secret: bytes = SECRET) -> int:
    return parse(send(port, build_webhook(body, secret=secret), timeout=60)).status


def read_events(service: subprocess.Popen[str], last: str) -> list[str]:
    assert service.stderr is not None
    events = []
    for line in service.stderr:
        events.append(json.loads(line)["event"])
        if events[-1] == last:
            return events
    raise AssertionError(f"the service ended before {last}: {events}")


@pytest.mark.slow
def test_a_signed_delivery_makes_a_pass_happen(world: Path) -> None:
    # The daemon does not watch a repository. Only the webhook can start the pass.
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", "config"], cwd=world, check=True)
    commit(world)
    settings = (
        "poll_seconds: 3600\nserver: {listen: '127.0.0.1:0'}\nwebhooks: {secret_file: secret, gather_seconds: 3}\n"
    )
    (world / "reconciler.yaml").write_text(settings)
    remote = (world / "config").as_uri()
    with start_program(world, "run", remote, "--fleet", "fleet.git", "--cache", ".cache") as service:
        port = int(str(wait_for_event(service, "server_started")["port"]))
        wait_for_event(service, "pass_completed")
        change(world, "regions.yaml", "auth.us-east", "login.us-east")
        commit(world)
        answers = [post(port, b"1", b"a guess"), post(port, b"1"), post(port, b"2"), post(port, b"1")]
        events = read_events(service, "pass_completed")
        service.send_signal(signal.SIGTERM)
        rest = read_events(service, "daemon_stopped")
        code = service.wait(60)

    assert answers == [401, 202, 202, 200]
    assert "draft_pushed" in events
    assert "pass_completed" not in rest
    assert code == 0


def commit(world: Path) -> None:
    config = world / "config"
    subprocess.run(["git", "add", "--all"], cwd=config, check=True)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", *who, "commit", "--quiet", "--message", "change"], cwd=config, check=True)


@pytest.mark.slow
def test_a_port_that_is_taken_ends_the_service_with_one_sentence(world: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        text = f"127.0.0.1:{other.getsockname()[1]}"
        (tmp_path / "s.yaml").write_text(f"server: {{listen: '{text}'}}\n")
        result = run(world, "run", "config", "--fleet", "fleet.git", "--settings", str(tmp_path / "s.yaml"))

    assert result.returncode == 3
    assert f'server.listen: must be a free address of this machine, but is "{text}"' in result.stderr
    assert "Traceback" not in result.stderr


def test_without_a_secret_nothing_is_served(world: Path, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("webhooks: {listen: '127.0.0.1:0', secret_file: none}\n")

    result = run(world, "run", "config", "--fleet", "fleet.git", "--settings", str(tmp_path / "s.yaml"))

    assert result.returncode == 3
    assert "webhooks.secret_file: none: the secret file must be readable" in result.stderr
