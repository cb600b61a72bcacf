"""Faults of files in cache folders: a full disk, and files that other threads or processes delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.charts.request import RenderedSource
from reconciler.sources.artifact_cache import ArtifactCache, compute_content_digest
from reconciler.sources.cache_files import list_files, write_file
from reconciler.sources.errors import SourceError
from reconciler.sources.render_cache import RenderCache
from tests.support.emitted_events import collect_events
from tests.support.full_disk import limit_file_size

LARGE = b"x" * 100_000


def store_artifact(folder: Path) -> None:
    ArtifactCache(folder, 0).store([LARGE, LARGE], "", lambda digest: SourceError("DigestMismatch", digest))


def store_record(folder: Path) -> None:
    ArtifactCache(folder, 0).store_record("a", {"text": LARGE.decode()})


def store_render(folder: Path) -> None:
    source = RenderedSource(FileTree({"a.yaml": File(LARGE)}))
    cache = RenderCache(folder, 1, 1)
    cache.write("k", source)
    assert cache.read("k") == source


def list_names(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("store", [store_artifact, store_record])
def test_full_disk_is_an_error_and_leaves_no_file(tmp_path: Path, store: Callable[[Path], None]) -> None:
    with limit_file_size(1_000), pytest.raises(OSError, match="File too large"):
        store(tmp_path)
    assert list_names(tmp_path) == []


@pytest.mark.emits("render_cache_write_failed")
def test_full_disk_leaves_a_render_only_in_memory(tmp_path: Path) -> None:
    with limit_file_size(1_000):
        store_render(tmp_path)
    assert list_names(tmp_path) == []


def test_full_disk_keeps_the_old_content(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"old")
    with limit_file_size(1_000), pytest.raises(OSError, match="File too large"):
        write_file(tmp_path / "a", LARGE)
    assert [(file.path.name, file.path.read_bytes()) for file in list_files(tmp_path)] == [("a", b"old")]


def test_list_contains_no_file_that_another_process_deletes(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"1")
    # The folder contains the name, but a request for the state of the file fails, as after its deletion.
    (tmp_path / "deleted").symlink_to("absent")
    assert [file.path.name for file in list_files(tmp_path)] == ["a"]
    assert list_files(tmp_path / "absent") == []


def test_render_with_a_concurrent_deletion_is_no_failed_write(tmp_path: Path) -> None:
    (tmp_path / "deleted").symlink_to("absent")
    with collect_events() as events:
        store_render(tmp_path)
    assert events == set()


def test_threads_delete_files_of_one_folder_at_once(tmp_path: Path) -> None:
    def evict() -> None:
        cache = ArtifactCache(tmp_path, 0)
        for number in range(50):
            cache.store([str(number).encode()], "", lambda digest: SourceError("DigestMismatch", digest))
            cache.evict([])
        finished.append(cache)

    finished: list[ArtifactCache] = []
    threads = [Thread(target=evict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(finished) == len(threads)
    assert finished[0].read(compute_content_digest(b"1")) is None
