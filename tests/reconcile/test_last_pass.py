"""The last pass of a machine: its cache file, and its line in the output of `status`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.catalog.files import CommitId
from reconciler.output.commit_messages import DryCommit
from reconciler.output.status.last_pass import LastPass, format_last_pass
from reconciler.reconcile.last_pass_file import LastPassFile, PassTimes
from reconciler.reconcile.pass_runner import PassSummary

COMMIT = CommitId("1a2b3c4d" * 5)
DRY_COMMIT = DryCommit(COMMIT, "", "Ana Silva <ana@example.com>", 1, "Frankfurt: new pool\n\nMore capacity.\n")
SUMMARY = PassSummary(COMMIT, {}, dry_commit=DRY_COMMIT)
LAST_PASS = LastPass(
    started_at=1_763_874_649, completed_at=1_763_874_650, result="success", duration_seconds=0.14,
    config_commit=COMMIT, config_title="Frankfurt: new pool", config_author="Ana Silva",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "seconds", "expected"),
    [
        pytest.param(
            {}, 38, '(38 s ago), success, 0.14 s; config 1a2b3c4 "Frankfurt: new pool" by Ana Silva', id="commit"
        ),
        pytest.param(
            {"config_commit": "tree:5d0b967e5724", "config_title": "", "config_author": "", "result": "partial"},
            180,
            "(3 min ago), partial, 0.14 s; config tree:5d0b967",
            id="folder",
        ),
        pytest.param({"config_commit": "", "result": "failure"}, 7_200, "(2 h ago), failure, 0.14 s", id="failure"),
        pytest.param({"config_commit": ""}, 200_000, "(2 d ago), success, 0.14 s", id="days"),
        pytest.param({"config_commit": ""}, -5, "(0 s ago), success, 0.14 s", id="clock-was-set-back"),
        pytest.param(
            {"config_title": "x" * 90, "config_author": "a\nb"},
            0,
            f'(0 s ago), success, 0.14 s; config 1a2b3c4 "{"x" * 59}…" by a⏎b',
            id="hostile-texts",
        ),
    ],
)
def test_text(changes: dict[str, Any], seconds: int, expected: str) -> None:
    text = format_last_pass(LAST_PASS.model_copy(update=changes), LAST_PASS.completed_at + seconds)

    assert text == f"last pass: 2025-11-23 05:10:50 UTC {expected}"


def test_a_pass_is_read_by_another_process(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "last_pass.json"
    LastPassFile(file).write(PassTimes(1_763_874_649.9, 0.14), SUMMARY)

    assert LastPassFile(file).read() == LAST_PASS
    assert json.loads(file.read_text())["startedAt"] == "2025-11-23T05:10:49Z"
    assert [path.name for path in file.parent.iterdir()] == ["last_pass.json"]


def test_a_skipped_pass_keeps_the_title_of_its_config(tmp_path: Path) -> None:
    file = LastPassFile(tmp_path / "last_pass.json")
    file.write(PassTimes(1_763_000_000, 5), SUMMARY)
    file.write(PassTimes(1_763_874_649.9, 0.14), PassSummary(COMMIT, {}, is_skipped=True))
    repeated = file.read()
    file.write(PassTimes(1_763_874_649.9, 0.14), PassSummary("tree:1", {}, is_skipped=True))
    other = file.read()

    assert repeated == LAST_PASS
    assert other
    assert (other.config_commit, other.config_title) == ("tree:1", "")


def test_a_pass_without_a_config_is_a_failure(tmp_path: Path) -> None:
    file = LastPassFile(tmp_path / "last_pass.json")
    file.write(PassTimes(1_763_874_649, 1), None)
    last_pass = file.read()

    assert last_pass
    assert (last_pass.result, last_pass.config_commit) == ("failure", "")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"startedAt": 1}', '{"startedAt": "x", "completedAt": "y"}'])
def test_an_invalid_file_is_like_a_missing_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "last_pass.json").write_text(content)

    assert LastPassFile(tmp_path / "last_pass.json").read() is None
    assert LastPassFile(tmp_path / "missing.json").read() is None


@pytest.mark.emits("last_pass_store_failed")
def test_a_full_disk_is_logged_and_does_not_end_the_pass(tmp_path: Path) -> None:
    (tmp_path / "last_pass.new").mkdir()
    with capture_logs() as events:
        LastPassFile(tmp_path / "last_pass.json").write(PassTimes(1, 1), SUMMARY)

    assert [event["event"] for event in events] == ["last_pass_store_failed"]
