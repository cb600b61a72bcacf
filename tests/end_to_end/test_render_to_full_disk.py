"""`render` to a folder on a full disk: the command reports an error of the folder, not an internal error."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from reconciler.reconcile import publishers
from tests.support.command_line import run_in
from tests.support.world import World, repository


@pytest.mark.parametrize("full", ["_write_file", "remove_folder"])
def test_a_folder_that_cannot_be_written_is_reported_without_a_traceback(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.create(tmp_path)
    world.write({"berlin.yaml": repository("berlin")})
    (tmp_path / "out" / "old").mkdir(parents=True)

    def refuse(path: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(publishers, full, refuse)

    ended = run_in(
        tmp_path, {}, "render", world.source, "--force", "-O", str(tmp_path / "out"), "--cache", str(tmp_path / "c")
    )

    assert ended.returncode == 1
    assert "error PushFailed: the status is incomplete, because " in ended.stderr
    assert "cannot be written: No space left on device" in ended.stderr
    assert "InternalError" not in ended.stdout + ended.stderr
