"""Tests of the private cache folder: it is created, its mode is restricted, or it is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.git.errors import CacheRefusedError, CacheUnusableError
from reconciler.git.filesystem import prepare_private_folder


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="absent"),
        pytest.param(0o755, id="readable-for-all"),
        pytest.param(0o750, id="readable-for-the-group"),
        pytest.param(0o711, id="enterable"),
        pytest.param(0o700, id="private"),
        pytest.param(0o2750, id="with-set-group-id"),
    ],
)
def test_folder_is_private(tmp_path: Path, before: int | None) -> None:
    folder = tmp_path / "a" / "cache"
    if before is not None:
        folder.mkdir(parents=True)
        folder.chmod(before)

    old = os.umask(0)
    try:
        prepare_private_folder(folder)
    finally:
        os.umask(old)

    assert folder.stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o722, 0o1777, 0o2770])
def test_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(CacheRefusedError, match=f"{folder} has mode {mode:04o}.*chmod 700") as error:
        prepare_private_folder(folder)

    assert folder.stat().st_mode & 0o7777 == mode
    assert error.value.full_message == error.value.message


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)

    with pytest.raises(CacheRefusedError, match=rf"{folder} belongs to the user with ID \d+.*--cache"):
        prepare_private_folder(folder)


def test_file_instead_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")

    with pytest.raises(CacheUnusableError, match="cannot be written"):
        prepare_private_folder(tmp_path / "cache")
