"""Tests of plain folders: which entries are files, and that an unreadable file affects only itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.git.errors import RepositoryMissingError
from reconciler.git.folder import FolderLimits, read_folder
from tests.support.git_repositories import git


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a.yaml").write_bytes(b"a: 1\n")
    (folder / "deep" / "er" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "deep" / "er" / "run.sh").chmod(0o755)
    return folder


def test_only_regular_files_are_read(folder: Path) -> None:
    (folder / "link").symlink_to("a.yaml")
    (folder / "linked-folder").symlink_to("deep")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_bytes(b"")
    (folder / "deep" / ".git").write_bytes(b"gitdir: elsewhere")
    os.mkfifo(folder / "pipe")

    content = read_folder(folder)

    assert {path: (file.data, file.executable) for path, file in content.files.items()} == {
        "a.yaml": (b"a: 1\n", False),
        "deep/er/run.sh": (b"#!/bin/sh\n", True),
    }
    assert content.unreadable_reasons == {}


def test_tree_id_is_equal_to_that_of_git(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")

    assert read_folder(folder).tree_id == git(folder, "write-tree")


def test_content_on_disk_is_read_and_not_committed_content(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "x")
    (folder / "a.yaml").write_bytes(b"a: 2\n")

    assert read_folder(folder).files["a.yaml"].data == b"a: 2\n"


def test_unreadable_file_affects_only_itself(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * 101)
    (folder / "just-fits").write_bytes(b"x" * 100)
    (folder / "git~1").write_bytes(b"")
    with open(os.fsencode(folder) + b"/caf\xe9", "wb"):  # noqa: PTH123  pathlib has no bytes
        pass

    content = read_folder(folder, FolderLimits(max_file_bytes=100))

    assert sorted(content.files) == ["a.yaml", "deep/er/run.sh", "just-fits"]
    assert content.unreadable_reasons == {
        "large": "the file must have at most 100 bytes",
        "git~1": "the name must be valid UTF-8 and allowed in a Git repository",
        "caf\\xe9": "the name must be valid UTF-8 and allowed in a Git repository",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_read_permission_is_reported(folder: Path) -> None:
    (folder / "a.yaml").chmod(0)

    assert read_folder(folder).unreadable_reasons == {"a.yaml": "Permission denied"}


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(FolderLimits(max_files=2), id="too-many-files"),
        pytest.param(FolderLimits(max_total_bytes=500), id="too-many-bytes"),
    ],
)
def test_too_large_top_level_folder_is_unreadable_and_others_are_read(folder: Path, limits: FolderLimits) -> None:
    (folder / "many").mkdir()
    for index in range(3):
        (folder / "many" / f"{index}.yaml").write_bytes(b"x" * 200)

    content = read_folder(folder, limits)

    assert sorted(content.files) == ["a.yaml", "deep/er/run.sh"]
    assert list(content.unreadable_reasons) == ["many/"]
    assert f"at most {limits.max_files:,} files" in content.unreadable_reasons["many/"]


def test_too_many_top_level_files_leave_the_folders_readable(folder: Path) -> None:
    for index in range(3):
        (folder / f"{index}.yaml").touch()

    content = read_folder(folder, FolderLimits(max_files=2))

    assert sorted(content.files) == ["deep/er/run.sh"]
    assert list(content.unreadable_reasons) == ["./"]


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryMissingError):
        read_folder(tmp_path / "absent")
