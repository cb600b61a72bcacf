"""The cache keeps the last known head of every target branch, for all configs and processes that share it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.planning.decide.deletion_safety import KnownHead
from reconciler.planning.model.targets import Target
from reconciler.reconcile.cache_files import KnownHeads

ONE, OTHER = CommitId("1" * 40), CommitId("2" * 40)


def target(name: str = "berlin", repository: str = "/fleet.git", branch: str = "clusters/berlin") -> Target:
    key = ObjectKey("config.porch.kpt.dev", "Repository", "default", name)
    return Target(key, repository, repository, branch, "", True, SourceLocation())


def build_heads(folder: Path, config: str = "config", **more: CommitId) -> KnownHeads:
    heads = KnownHeads(folder / "heads.json", config)
    for name, head in more.items():
        heads.record(target(name, branch=f"clusters/{name}"), head)
    heads.store()
    return heads


def test_a_head_is_found_by_the_next_process(tmp_path: Path) -> None:
    build_heads(tmp_path, berlin=ONE)

    assert KnownHeads(tmp_path / "heads.json", "config").find(target()) == KnownHead(
        "/fleet.git", "clusters/berlin", ONE
    )


def test_another_config_finds_the_head_of_the_same_branch_only(tmp_path: Path) -> None:
    build_heads(tmp_path, berlin=ONE)
    other = KnownHeads(tmp_path / "heads.json", "another")

    assert other.find(target()) == KnownHead("/fleet.git", "clusters/berlin", ONE)
    assert other.find(target(repository="/new.git")) is None


def test_a_target_at_another_place_finds_the_head_of_its_last_place(tmp_path: Path) -> None:
    heads = build_heads(tmp_path, berlin=ONE)

    assert heads.find(target(repository="/new.git")) == KnownHead("/fleet.git", "clusters/berlin", ONE)


def test_two_processes_keep_the_heads_of_both(tmp_path: Path) -> None:
    first, second = (KnownHeads(tmp_path / "heads.json", "config") for _ in range(2))
    assert first.find(target()) is None
    assert second.find(target()) is None
    first.record(target(), ONE)
    second.record(target("lisbon", branch="clusters/lisbon"), OTHER)
    first.store()
    second.store()

    after = KnownHeads(tmp_path / "heads.json", "config")

    assert after.find(target()) == KnownHead("/fleet.git", "clusters/berlin", ONE)
    assert after.find(target("lisbon", branch="clusters/lisbon")) == KnownHead("/fleet.git", "clusters/lisbon", OTHER)


def test_an_equal_head_writes_nothing(tmp_path: Path) -> None:
    build_heads(tmp_path, berlin=ONE)
    before = (tmp_path / "heads.json").stat().st_ino

    build_heads(tmp_path, berlin=ONE)

    assert (tmp_path / "heads.json").stat().st_ino == before


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\x00", id="garbage"),
        pytest.param(b"[]", id="another-type"),
        pytest.param(b'{"branches": {"/fleet.git": 1}, "targets": {}}', id="another-structure"),
        pytest.param(b"[" * 100_000, id="nested"),
    ],
)
def test_an_unreadable_file_has_no_heads_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "heads.json").write_bytes(content)

    assert KnownHeads(tmp_path / "heads.json", "config").find(target()) is None
    build_heads(tmp_path, berlin=ONE)
    assert KnownHeads(tmp_path / "heads.json", "config").find(target()) is not None


@pytest.mark.emits("known_heads_read_failed", "known_heads_store_failed")
def test_a_disk_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    build_heads(tmp_path / "file", berlin=ONE)

    assert KnownHeads(tmp_path / "file" / "heads.json", "config").find(target()) is None
