"""The file with the history of changes: later processes read it, and errors cause only warnings."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.review.change_archive import ChangeArchive
from reconciler.review.permissions import ADMIN_PERMISSIONS
from tests.support.fleet_index import create_index, create_row, create_target

OPEN = create_index([create_target("lisbon", {}, create_row("lisbon", "web", change="one"))])
REPLACED = create_index([create_target("lisbon", {}, create_row("lisbon", "web", change="two"))])


def test_a_later_process_finds_what_happened_in_between(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    ChangeArchive(file).update(OPEN)
    later = ChangeArchive(file)
    later.update(REPLACED)
    last = ChangeArchive(file)
    last.update(REPLACED)
    found = last.find("one", REPLACED, ADMIN_PERMISSIONS)

    assert found is not None
    assert [(draft.outcome, draft.successor) for draft in found.drafts] == [("replaced", "two")]
    assert last.find("three", REPLACED, ADMIN_PERMISSIONS) is None


def test_an_unchanged_history_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    archive = ChangeArchive(file)
    archive.update(OPEN)
    file.unlink()
    archive.update(OPEN)

    assert not file.exists()


@pytest.mark.emits("change_history_store_failed", "change_history_unreadable")
def test_a_file_that_cannot_be_used_causes_only_warnings(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text('{"version": 2}')
    with capture_logs() as logs:
        archive = ChangeArchive(file)
        archive.update(OPEN)
        file.unlink()
        file.mkdir()
        archive.update(REPLACED)

    assert [entry["event"] for entry in logs] == ["change_history_unreadable", "change_history_store_failed"]
    assert archive.find("one", REPLACED, ADMIN_PERMISSIONS) is not None
