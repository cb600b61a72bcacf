"""The record of the last pass in the cache: an unreadable record has the effect of a missing one."""

import errno
from pathlib import Path
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from reconciler.reconcile.cache_files import CompletedPass, FilePassStore


def test_a_folder_in_place_of_the_file_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "settled.json"
    (file / "inside").mkdir(parents=True)
    memory = FilePassStore(file)

    assert memory.load() is None
    memory.save(None)

    assert not file.exists()


@pytest.mark.parametrize("settled", [None, CompletedPass("tree:1", "sha256:2", (), (), 7, {}, (), silent=True)])
@pytest.mark.emits("completed_pass_store_failed")
def test_a_cache_that_takes_no_file_is_logged_and_ends_no_pass(
    settled: CompletedPass | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    memory = FilePassStore(tmp_path / "settled.json")
    for method in ("unlink", "write_bytes"):
        monkeypatch.setattr(Path, method, refuse)

    with capture_logs() as events:
        memory.save(settled)

    assert [(event["event"], event["message"]) for event in events] == [
        ("completed_pass_store_failed", "Read-only file system")
    ]
