"""Tests of the stored index of the console: a new process reads only targets whose refs have moved."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.inspect import fleet_index, index_cache
from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.inspect.index_cache import IndexCache
from reconciler.output.fleet.model import FleetIndex
from tests.support.components import components_drafted
from tests.support.index_reads import record_read_targets
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.presets import presets_drafted
from tests.support.templates import templates_drafted
from tests.support.world import World, config_map, package, variant

UNREADABLE = pytest.mark.emits("console_index_unreadable")


def update(world: World, indexer: FleetIndexer | None = None) -> FleetIndex:
    """Return the index of an indexer. The default is that of a new process."""
    return (indexer or world.create_indexer()).update(world.observe_pass(), lambda done, total: None)


def find_file(world: World) -> Path:
    (file,) = world.folder.glob("cache/console_index*")
    return file


@pytest.fixture
def read_targets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the targets whose drafts are read."""
    return record_read_targets(monkeypatch)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(drafted, id="drafts"),
        pytest.param(published, id="publications"),
        pytest.param(presets_drafted, id="plugins"),
        pytest.param(templates_drafted, id="templates"),
        pytest.param(components_drafted, id="components"),
    ],
)
def test_new_process_uses_the_stored_entries(
    tmp_path: Path, prepare: Callable[[Path], World], read_targets: list[str]
) -> None:
    world = begin(tmp_path, prepare)
    first = update(world)
    read_targets.clear()
    second = update(world)

    assert read_targets == []
    assert first.targets
    assert (second.targets, second.changes) == (first.targets, first.changes)


def test_conflicts_and_blocked_packages_are_stored(tmp_path: Path, read_targets: list[str]) -> None:
    world = begin(tmp_path, published)
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.edit("clusters/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("metrics", "v2", package("metrics", replicas=3))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    first = update(world)
    read_targets.clear()
    second = update(world)

    assert (read_targets, second.changes[0].conflict_count) == ([], 1)
    assert (second.targets, second.changes) == (first.targets, first.changes)


def test_new_process_reads_targets_with_moved_refs(tmp_path: Path, read_targets: list[str]) -> None:
    world = begin(tmp_path, published)
    update(world)
    read_targets.clear()
    world.write({"regions/north.yaml": config_map("region-north", api="other")})
    index = update(world)

    assert read_targets == ["berlin"]
    assert [change.title for change in index.changes] == ["re-render gateway v1"]


def test_target_with_another_definition_is_read(tmp_path: Path, read_targets: list[str]) -> None:
    world = begin(tmp_path, published)
    update(world)
    read_targets.clear()
    observed = world.observe_pass()
    targets = {
        replace(target, tag_prefix="other/") if target.name == "berlin" else target: labels
        for target, labels in observed.targets.items()
    }
    world.create_indexer().update(replace(observed, targets=targets), lambda done, total: None)

    assert read_targets == ["berlin"]


@pytest.mark.parametrize(
    ("damage", "events"),
    [
        pytest.param(lambda data: data[:-10], ["console_index_unreadable"], id="truncated", marks=UNREADABLE),
        pytest.param(
            lambda data: data[:200] + b"x" + data[201:],
            ["console_index_unreadable"],
            id="changed-byte",
            marks=UNREADABLE,
        ),
        pytest.param(lambda _data: b"", [], id="empty"),
        pytest.param(lambda data: b"x" * 32 + data[32:], [], id="other-version-or-settings"),
    ],
)
def test_damaged_file_is_not_used(
    tmp_path: Path, damage: Callable[[bytes], bytes], events: list[str], read_targets: list[str]
) -> None:
    world = begin(tmp_path, published)
    first = update(world)
    file = find_file(world)
    file.write_bytes(damage(file.read_bytes()))
    read_targets.clear()
    indexer, observed = world.create_indexer(), world.observe_pass()
    with capture_logs() as logs:
        second = indexer.update(observed, lambda done, total: None)

    assert [entry["event"] for entry in logs] == events
    assert read_targets == ["berlin", "lisbon"]
    assert second.targets == first.targets


class _Command:
    """A value whose pickle calls a function."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("created",)


def test_file_cannot_call_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps({"key": _Command()})

    assert write_content(tmp_path / "index", content).read() == {}
    assert not (tmp_path / "created").exists()


def write_content(file: Path, content: bytes) -> IndexCache:
    """Write a complete file with this pickle, and return its cache."""
    cache = IndexCache(file, "scope")
    cache.write({})
    scope = file.read_bytes()[: sha256().digest_size]
    file.write_bytes(scope + sha256(content).digest() + content)
    return cache


@UNREADABLE
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"N" * 2 + b"s.", id="missing-values"),
        pytest.param(b"h\x00.", id="unknown-value"),
        pytest.param(b"\x96" + (2**40).to_bytes(8, "little") + b".", id="more-memory-than-the-machine-has"),
        pytest.param(pickle.dumps([1]), id="not-a-mapping"),
        pytest.param(pickle.dumps({"key": 1}), id="not-a-target"),
    ],
)
def test_file_with_other_content_is_not_used(content: bytes, tmp_path: Path) -> None:
    cache = write_content(tmp_path / "index", content)
    with capture_logs() as logs:
        stored = cache.read()

    assert (stored, [entry["event"] for entry in logs]) == ({}, ["console_index_unreadable"])


@UNREADABLE
def test_file_above_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = write_content(tmp_path / "index", pickle.dumps({}))
    with capture_logs() as logs:
        cache.read()
        monkeypatch.setattr(index_cache, "MAX_BYTES", 1)
        cache.read()

    assert [entry["event"] for entry in logs] == ["console_index_unreadable"]


@pytest.mark.emits("console_index_store_failed")
def test_file_that_cannot_be_written_causes_only_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index" / "folder").mkdir(parents=True)
    cache = IndexCache(tmp_path / "index", "scope")
    with capture_logs() as logs:
        cache.write({})
        monkeypatch.setattr(index_cache, "MAX_BYTES", 1)
        cache.write({})

    assert [entry["event"] for entry in logs] == ["console_index_store_failed"] * 2
    assert logs[1]["message"].endswith("the limit is 1 bytes")


def test_few_changed_targets_are_stored_only_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_index, "_MAX_UNSTORED_SHARE", 0.5)
    world = begin(tmp_path, published)
    indexer = world.create_indexer()
    update(world, indexer)
    stored = find_file(world).read_bytes()
    world.write({"regions/north.yaml": config_map("region-north", api="other")})
    update(world, indexer)
    unchanged = find_file(world).read_bytes()
    indexer.store()

    assert unchanged == stored
    assert find_file(world).read_bytes() != stored
