"""The process of `run` sends notifications, and neither a kill nor a restart loses or repeats them without need."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.end_to_end.test_cli import change, run
from tests.support.daemon import start_program, wait_for_event
from tests.support.notification_servers import HttpRecorder, http_server

WAIT_SECONDS = 120
SETTINGS = """\
poll_seconds: 3600
server: {{listen: ""}}
log: {{level: debug}}
notifications:
  gather_seconds: 0
  allowed_hosts: [127.0.0.1]
  channels: [{{name: events, kind: webhook, url: "{url}/events", secret_file: secret}}]
  routes: [{{channel: events, events: [drafts_waiting]}}]
"""


@pytest.fixture
def http() -> Iterator[HttpRecorder]:
    with http_server() as recorder:
        yield recorder


@pytest.fixture
def world(tmp_path: Path, http: HttpRecorder) -> Path:
    """The fleet of the demo, with a route to a local webhook."""
    folder = tmp_path / "world"
    result = run(tmp_path, "demo", str(folder))
    assert result.returncode == 0, result.stderr
    (folder / "secret").write_text("secret\n")
    (folder / "reconciler.yaml").write_text(SETTINGS.format(url=http.url))
    return folder


@pytest.mark.slow
def test_a_killed_daemon_sends_its_message_once_more_and_a_restarted_daemon_sends_only_new_messages(
    world: Path, http: HttpRecorder
) -> None:
    service_command = ("run", "config", "--fleet", "fleet.git", "--cache", ".cache")
    http.hangs = Event()
    with start_program(world, *service_command) as killed:
        assert http.arrived.wait(WAIT_SECONDS)
        # The receiver has the message, and the ledger does not contain the delivery yet.
        killed.send_signal(signal.SIGKILL)
        killed.wait(WAIT_SECONDS)
    http.hangs.set()
    with start_program(world, *service_command) as stopped:
        wait_for_event(stopped, "notification_sent")
        stopped.send_signal(signal.SIGTERM)
        stopped.wait(WAIT_SECONDS)
    first, repeated = http.requests
    with start_program(world, *service_command) as restarted:
        wait_for_event(restarted, "pass_completed")
        # The reload hands the ledger to a new thread.
        restarted.send_signal(signal.SIGHUP)
        wait_for_event(restarted, "settings_reloaded")
        wait_for_event(restarted, "pass_completed")
        change(world, "regions.yaml", "auth.us-east", "login.us-east")
        wait_for_event(restarted, "notification_sent")
        restarted.send_signal(signal.SIGTERM)
        restarted.wait(WAIT_SECONDS)

    assert (repeated.headers["webhook-id"], repeated.data["data"]) == (first.headers["webhook-id"], first.data["data"])
    # The restart and the reload themselves sent nothing.
    (new,) = http.requests[2:]
    assert new.data["data"]["title"] == "Review install gateway v1 on 4 targets"
