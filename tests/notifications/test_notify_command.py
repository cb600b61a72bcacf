"""`reconciler notify` sends or prints a sample message, and reports errors of the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.notification_servers import HttpRecorder, http_server


@pytest.fixture
def http() -> Iterator[HttpRecorder]:
    with http_server() as recorder:
        yield recorder


@pytest.fixture
def folder(tmp_path: Path, http: HttpRecorder) -> Path:
    """A folder with the settings of one Slack channel."""
    (tmp_path / "url").write_text(f"{http.url}/s3cret")
    (tmp_path / "reconciler.yaml").write_text(
        "notifications:\n  allowed_hosts: [127.0.0.1]\n  templates_dir: .\n"
        "  channels: [{name: ops, kind: slack, url_file: url}]\n"
    )
    return tmp_path


def notify(folder: Path, *arguments: str) -> CommandResult:
    return run_in(folder, {"HOME": str(folder)}, "notify", *arguments)


def test_a_sample_message_is_sent(folder: Path, http: HttpRecorder) -> None:
    result = notify(folder, "--test", "ops", "--event", "package_blocked")

    assert (result.returncode, result.stdout) == (0, 'sent a sample message to the channel "ops"\n')
    assert http.requests[0].data["text"].startswith("Blocked: PackageVariant default/web")


def test_a_dry_run_prints_the_message_and_sends_nothing(folder: Path, http: HttpRecorder) -> None:
    result = notify(folder, "--test", "ops", "--dry-run")

    assert result.returncode == 0
    assert json.loads(result.stdout)["text"] == "Review update web v1 → v2 on 2 targets"
    assert http.requests == []
    assert "s3cret" not in result.stdout + result.stderr


def test_a_failing_template_is_reported(folder: Path) -> None:
    (folder / "drafts_waiting.slack.j2").write_text("{{ data.titel }}")
    result = notify(folder, "--test", "ops", "--dry-run")

    assert result.returncode == 1
    assert "drafts_waiting.slack.j2" in result.stderr
    assert "has no attribute 'titel'\". The message contains the default text" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--test", "other"),
            "--test other: there is no channel with this name in `notifications.channels`; existing names: ops",
        ),
        (("--test", "ops", "--event", "drafts"), '--event: must be one of "drafts_waiting",'),
        ((), "Missing option '--test'"),
    ],
    ids=["channel", "event", "no-channel"],
)
def test_invalid_arguments(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    result = notify(folder, *arguments)

    assert result.returncode == 3
    assert message in result.stderr


def test_an_error_of_the_service_is_reported_without_the_url(folder: Path, http: HttpRecorder) -> None:
    http.responses = [(404, {}, b"no_service")]
    result = notify(folder, "--test", "ops")

    assert result.returncode == 3
    assert result.stderr == "reconciler: --test ops: 127.0.0.1 responded with the HTTP status 404\n"
