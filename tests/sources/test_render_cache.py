"""Tests of the cache of rendered sources: in memory, in files, and its size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import SourceLocation
from reconciler.packages.charts.request import RenderedSource
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.render_cache import RenderCache

FINDING = SourceCodes.HOOK_LEFT_OUT.finding("left out", SourceLocation(object="Job/a/b", pointer="/x"))
SOURCE = RenderedSource(FileTree({"a.yaml": File("ä: 1\n".encode())}), (FINDING,), {"a.yaml": "templates/a.yaml"})


def open_cache(folder: Path, file_bytes: int = 1 << 20, memory_bytes: int = 1 << 20) -> RenderCache:
    return RenderCache(folder / "renders", file_bytes, memory_bytes)


def test_entry_is_read_by_another_process(tmp_path: Path) -> None:
    open_cache(tmp_path).write("k", SOURCE)

    assert open_cache(tmp_path).read("k") == SOURCE
    assert open_cache(tmp_path).read("other") is None
    assert (tmp_path / "renders").stat().st_mode & 0o777 == 0o700


def test_entry_in_memory_has_no_file(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    cache.keep_in_memory("k", SOURCE)

    assert cache.read("k") is SOURCE
    assert open_cache(tmp_path).read("k") is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no-fields"),
        pytest.param(b"[1]", id="other-type"),
        pytest.param(b'{"tree": "x", "files": {"a": "b"}, "findings": [], "templates": {}}', id="other-tree"),
    ],
)
@pytest.mark.emits("render_cache_read_failed")
def test_damaged_file_is_no_entry(tmp_path: Path, content: bytes) -> None:
    cache = open_cache(tmp_path)
    cache.write("k", SOURCE)
    (tmp_path / "renders/k").write_bytes(content)

    assert open_cache(tmp_path).read("k") is None


def test_unused_files_are_deleted(tmp_path: Path) -> None:
    for index, key in enumerate("abc"):
        open_cache(tmp_path).write(key, SOURCE)
        os.utime(tmp_path / "renders" / key, (index, index))
    size = (tmp_path / "renders/a").stat().st_size

    assert open_cache(tmp_path).read("a") == SOURCE
    open_cache(tmp_path, file_bytes=2 * size).write("d", SOURCE)

    assert sorted(path.name for path in (tmp_path / "renders").iterdir()) == ["a", "d"]


def test_oldest_entries_in_memory_are_deleted(tmp_path: Path) -> None:
    cache = open_cache(tmp_path, memory_bytes=2_500)
    for key in "ab":
        cache.keep_in_memory(key, SOURCE)
    cache.read("a")
    cache.keep_in_memory("c", SOURCE)

    assert [key for key in "abc" if cache.read(key)] == ["a", "c"]


@pytest.mark.emits("render_cache_write_failed")
def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "renders").write_text("a file")
    cache = open_cache(tmp_path)
    cache.write("k", SOURCE)

    assert cache.read("k") == SOURCE


def test_version_is_stored(tmp_path: Path) -> None:
    open_cache(tmp_path).write_version("sha256:1", "3.22")

    assert [open_cache(tmp_path).read_version(digest) for digest in ("sha256:1", "sha256:2")] == ["3.22", ""]
