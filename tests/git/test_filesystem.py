"""Folders are walked and removed at any depth, as `os.walk` and `shutil.rmtree` do it."""

import os
from pathlib import Path

import pytest

from reconciler.git.filesystem import remove_folder, walk_folder

DEPTH = 1500


@pytest.mark.slow
def test_a_deep_folder_is_walked_and_removed(tmp_path: Path) -> None:
    (tmp_path / "top" / "b").mkdir(parents=True)
    place = tmp_path / "top"
    for _ in range(DEPTH):
        place = place / "a"
        place.mkdir()
    (place / "file").touch()

    assert sum(1 for _ in walk_folder(tmp_path / "top")) == DEPTH + 2
    remove_folder(tmp_path / "top")

    assert not (tmp_path / "top").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "kept")

    assert list(walk_folder(tmp_path / "top")) == list(os.walk(tmp_path / "top"))
    remove_folder(tmp_path / "top")

    assert ((tmp_path / "top").exists(), (tmp_path / "kept" / "file").exists()) == (False, True)


def test_the_caller_sorts_and_shortens_what_is_walked(tmp_path: Path) -> None:
    for name in ("c", "a", "b/d"):
        (tmp_path / name).mkdir(parents=True)
    values = []
    for place, folders, _ in walk_folder(tmp_path):
        folders[:] = sorted(set(folders) - {"a"})
        values.append(str(Path(place).relative_to(tmp_path)))

    assert values == [".", "b", "b/d", "c"]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    errors: list[OSError] = []

    assert list(walk_folder(tmp_path / "missing", errors.append)) == []
    assert [type(error) for error in errors] == [FileNotFoundError]
    remove_folder(tmp_path / "missing")
