"""Tests of object IDs, which are computed without Git and are equal to those of Git."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.files import (
    DIRECTORY_MODE,
    EMPTY_TREE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    compute_blob_id,
    compute_tree_id,
)
from tests.support.git_repositories import git, make_bare

BLOB = compute_blob_id(b"x\n")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bare(tmp_path_factory.mktemp("objects") / "ids.git")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x", id="no-newline"),
        pytest.param(b"a\r\nb\x00\xff", id="line-endings-and-bytes"),
        pytest.param(b"z" * 70_000, id="large"),
    ],
)
def test_blob_ids(repository: Path, data: bytes) -> None:
    assert compute_blob_id(data) == git(repository, "hash-object", "--no-filters", "--stdin", stdin=data)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([], id="empty"),
        pytest.param(
            [
                (FILE_MODE, "a", BLOB),
                (EXECUTABLE_MODE, "b", BLOB),
                (SYMLINK_MODE, "c", BLOB),
                (SUBMODULE_MODE, "d", BLOB),
            ],
            id="modes",
        ),
        pytest.param(
            [(FILE_MODE, "a0", BLOB), (DIRECTORY_MODE, "a", EMPTY_TREE), (FILE_MODE, "a.b", BLOB)],
            id="folders-as-with-a-slash",
        ),
        pytest.param([(FILE_MODE, "é", BLOB), (FILE_MODE, "z", BLOB), (FILE_MODE, "Z", BLOB)], id="names-as-bytes"),
    ],
)
def test_tree_ids(repository: Path, entries: list[tuple[str, str, str]]) -> None:
    lines = "".join(
        f"{mode.zfill(6)} {_get_object_type(mode)} {object_id}\t{name}\n" for mode, name, object_id in entries
    )  # fmt: skip

    by_git = git(repository, "mktree", "--missing", stdin=lines.encode())

    assert compute_tree_id(entries) == compute_tree_id(reversed(entries)) == by_git


def _get_object_type(mode: str) -> str:
    return {DIRECTORY_MODE: "tree", SUBMODULE_MODE: "commit"}.get(mode, "blob")
