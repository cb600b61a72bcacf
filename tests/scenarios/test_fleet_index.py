"""Tests of the index of the console: equal drafts are one variant, and only targets with moved refs are read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.inspect import fleet_index
from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.inspect.report import read_cluster
from reconciler.output.fleet.model import FleetIndex
from reconciler.output.report.model import ReportCluster
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import CLUSTERS, World, config_map, injected_set, package


def update(world: World, indexer: FleetIndexer) -> FleetIndex:
    return indexer.update(world.observe_pass(), lambda done, total: None)


def list_members(index: FleetIndex) -> dict[str, list[list[str]]]:
    """Return the targets of each variant by the title of the change."""
    return {
        change.title: [[member.target for member in variant.members] for variant in change.variants]
        for change in index.changes
    }


@pytest.fixture
def unpublished(tmp_path: Path) -> World:
    """All packages are drafted, and no package is published."""
    return begin(tmp_path, drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages of Berlin and Lisbon are published."""
    return begin(tmp_path, published)


def test_drafts_with_equal_effects_are_one_variant(unpublished: World) -> None:
    first = update(unpublished, unpublished.create_indexer())
    for cluster in CLUSTERS:
        unpublished.merge(cluster)
    unpublished.sync_until_unchanged()
    endpoints = config_map("endpoints", "required", api="none")
    unpublished.release("gateway", "v2", package("gateway", replicas=3, endpoints=endpoints))
    unpublished.write({"gateway.yaml": injected_set("gateway", CLUSTERS, "v2")})
    second = update(unpublished, unpublished.create_indexer())

    # The installed ConfigMaps differ between the regions.
    assert list_members(first) == {"install gateway v1": [["berlin"], ["lisbon"]], "install metrics v1": [["berlin"]]}
    assert list_members(second) == {"update gateway v1 → v2": [["berlin", "lisbon"]]}


def test_only_targets_with_moved_refs_are_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    indexer = world.create_indexer()
    first = update(world, indexer)
    read: list[str] = []

    def record_read(reader: DraftReader, open_target: OpenTarget) -> ReportCluster:
        read.append(open_target.target.name)
        return read_cluster(reader, open_target)

    monkeypatch.setattr(fleet_index, "read_cluster", record_read)
    world.write({"regions/north.yaml": config_map("region-north", api="other")})
    second = update(world, indexer)

    assert read == ["berlin"]
    assert list_members(second) == {"re-render gateway v1": [["berlin"]]}
    assert second.by_target["lisbon"] is first.by_target["lisbon"]
    assert second.number == first.number + 1


def test_the_packages_of_an_unreadable_target_remain(world: World) -> None:
    indexer = world.create_indexer()
    first = update(world, indexer)
    world.fleet.rename(world.folder / "moved.git")
    second = update(world, indexer)

    assert second.state_counts == first.state_counts
    assert all("moved" not in target.read_error and target.read_error for target in second.targets)
