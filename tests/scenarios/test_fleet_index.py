"""Tests of the index of the console: equal drafts are one variant, and only targets with moved refs are read again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.inspect import fleet_index
from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.output.fleet.builder import index_target
from reconciler.output.fleet.model import DraftMember, FleetIndex, TargetEntry
from reconciler.output.fleet.target_data import TargetData
from reconciler.output.fleet.variants import VariantPool
from tests.support.components import components_drafted
from tests.support.index_reads import record_read_targets
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.presets import presets_drafted, presets_published
from tests.support.templates import templates_drafted
from tests.support.world import CLUSTERS, World, config_map, injected_set, package, repository


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
    read = record_read_targets(monkeypatch)
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


# Changes that the index detects. Each test updates the index before and after one change.


def update_after(world: World, change: Callable[[], object]) -> tuple[FleetIndex, FleetIndex]:
    """Return the index before and after a change of the fleet or config, built by one indexer."""
    indexer = world.create_indexer()
    first = update(world, indexer)
    change()
    return first, update(world, indexer)


def find_member(index: FleetIndex, target: str, package: str = "gateway") -> DraftMember:
    draft = index.by_target[target].by_package[package].draft
    assert draft
    return draft.member


def test_changed_labels_are_detected(world: World) -> None:
    labelled = repository("lisbon").replace("{region: south}", "{region: south, tier: edge}")
    first, second = update_after(world, lambda: world.write({"clusters/lisbon.yaml": labelled}))

    assert "tier" not in first.by_target["lisbon"].labels
    assert second.by_target["lisbon"].labels["tier"] == "edge"
    assert second.by_target["berlin"] is first.by_target["berlin"]


def test_changed_url_is_detected(world: World) -> None:
    def move() -> None:
        shutil.copytree(world.fleet, world.folder / "other.git")
        world.write({"clusters/lisbon.yaml": repository("lisbon", "./other.git")})

    first, second = update_after(world, move)

    urls = [index.by_target["lisbon"].url.rpartition("/")[2] for index in (first, second)]
    assert urls == ["fleet.git", "other.git"]
    assert second.by_target["lisbon"].state_counts == first.by_target["lisbon"].state_counts == {"published": 1}


def test_removed_target_is_not_in_the_index(world: World) -> None:
    without = {"clusters/lisbon.yaml": None, "gateway.yaml": injected_set("gateway", ("berlin",))}
    first, second = update_after(world, lambda: world.write(without))

    assert list(first.by_target) == ["berlin", "lisbon"]
    assert list(second.by_target) == ["berlin"]


def test_target_that_can_be_read_again_has_no_error(world: World) -> None:
    indexer = world.create_indexer()
    update(world, indexer)
    moved = world.fleet.rename(world.folder / "moved.git")
    failed = update(world, indexer)
    moved.rename(world.fleet)
    recovered = update(world, indexer)

    assert all(target.read_error for target in failed.targets)
    assert not any(target.read_error for target in recovered.targets)
    assert recovered.state_counts == failed.state_counts == {"published": 3}


def test_target_that_was_never_read_has_no_packages(world: World) -> None:
    world.fleet.rename(world.folder / "moved.git")
    index = update(world, world.create_indexer())

    assert [(bool(target.read_error), target.packages) for target in index.targets] == [(True, ())] * 2


def test_push_of_a_person_to_a_draft_is_detected(unpublished: World) -> None:
    first, second = update_after(
        unpublished, lambda: unpublished.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")
    )

    before, after = find_member(first, "lisbon"), find_member(second, "lisbon")
    assert (before.editors, len(after.editors)) == ((), 1)
    assert after.head == unpublished.head("drafts/lisbon") != before.head
    assert second.by_target["berlin"] is first.by_target["berlin"]


def test_draft_that_differs_is_another_variant(world: World) -> None:
    world.release(
        "gateway", "v2", package("gateway", replicas=3, endpoints=config_map("endpoints", "required", api="x"))
    )
    world.write({"gateway.yaml": injected_set("gateway", CLUSTERS, "v2")})
    first, second = update_after(
        world, lambda: world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 3", "replicas: 7")
    )

    assert list_members(first) == {"update gateway v1 → v2": [["berlin", "lisbon"]]}
    assert list_members(second) == {"update gateway v1 → v2": [["berlin"], ["lisbon"]]}


def test_draft_that_only_a_person_wrote_is_detected(world: World) -> None:
    def create_draft() -> None:
        world.set_ref("refs/heads/drafts/lisbon", world.head("clusters/lisbon"))
        world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")

    first, second = update_after(world, create_draft)

    assert (first.changes, list_members(second)) == ((), {"re-render gateway v1": [["lisbon"]]})
    assert find_member(second, "lisbon").state == "waiting"


def test_proposal_is_detected(unpublished: World) -> None:
    first, second = update_after(unpublished, lambda: unpublished.run_review_action("propose", "lisbon"))

    assert [find_member(index, "lisbon").state for index in (first, second)] == ["waiting", "proposed"]
    assert find_member(second, "berlin").state == "waiting"


def test_rejection_is_detected(unpublished: World) -> None:
    unpublished.run_review_action("propose", "lisbon")
    first, second = update_after(
        unpublished, lambda: unpublished.run_review_action("reject", "lisbon", message="not now")
    )

    assert find_member(first, "lisbon").state == "proposed"
    rejected = find_member(second, "lisbon")
    assert (rejected.state, rejected.rejection) == ("rejected", "rejected by Grace: not now")


def test_publication_is_detected(unpublished: World) -> None:
    first, second = update_after(unpublished, lambda: unpublished.merge("lisbon"))

    assert first.by_target["lisbon"].state_counts == {"draft": 1}
    assert second.by_target["lisbon"].state_counts == {"published": 1}


def test_new_pass_over_equal_refs_keeps_every_key_and_digest(unpublished: World) -> None:
    def list_digests(index: FleetIndex) -> list[tuple[str, str, str]]:
        return [(change.key, variant.digest, variant.key) for change in index.changes for variant in change.variants]

    first, second = update_after(unpublished, lambda: None)
    rebuilt = update(unpublished, unpublished.create_indexer())

    assert list_digests(first) == list_digests(second) == list_digests(rebuilt)
    assert second.targets == first.targets == rebuilt.targets


def test_internal_error_of_one_target_keeps_its_last_packages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_for_berlin(cluster: TargetData, pool: VariantPool) -> TargetEntry:
        if cluster.target.name == "berlin":
            raise ZeroDivisionError("planted")
        return index_target(cluster, pool)

    def change() -> None:
        world.write({"regions/north.yaml": config_map("region-north", api="other")})
        world.write({"regions/south.yaml": config_map("region-south", api="other")})
        monkeypatch.setattr(fleet_index, "index_target", fail_for_berlin)

    first, second = update_after(world, change)

    assert "ZeroDivisionError" in second.by_target["berlin"].read_error
    assert second.by_target["berlin"].packages == first.by_target["berlin"].packages
    assert list_members(second) == {"re-render gateway v1": [["lisbon"]]}


# Presets, components and Kafka templates


def test_plugins_of_one_preset_are_one_change(tmp_path: Path) -> None:
    index = update(world := begin(tmp_path, presets_drafted), world.create_indexer())

    assert list_members(index) == {
        "install plugins/logs-*": [["berlin"], ["lisbon"], ["oslo"]],
        "install plugins/metrics-*": [["berlin", "oslo"]],
    }
    columns = {row.column for target in index.targets for row in target.packages}
    assert columns == {"plugins/logs-*", "plugins/metrics-*"}


def test_removals_of_one_preset_are_one_change(tmp_path: Path) -> None:
    world = begin(tmp_path, presets_published)
    world.write({"presets/metrics.yaml": None})
    index = update(world, world.create_indexer())

    assert list_members(index) == {"delete plugins/metrics-*": [["berlin", "oslo"]]}
    assert index.changes[0].risk.risk_class == "deletion"


def test_components_of_equal_environments_are_one_variant(tmp_path: Path) -> None:
    index = update(world := begin(tmp_path, components_drafted), world.create_indexer())

    assert list_members(index) == {
        "install components/production/shop/cart": [["lisbon", "oslo"]],
        "install components/production/shop/feed": [["lisbon", "oslo"]],
        "install components/production/shop/till": [["lisbon", "oslo"]],
        "install components/staging/shop/cart": [["berlin"]],
        "install components/staging/shop/till": [["berlin"]],
    }


def test_packages_with_kafka_templates_are_one_variant(tmp_path: Path) -> None:
    index = update(world := begin(tmp_path, templates_drafted), world.create_indexer())

    # Each PackageVariant has the name of its cluster in its own name.
    assert list_members(index) == {
        "install brokers v1": [["berlin", "lisbon"]],
        "install kafka v1": [["berlin", "lisbon"]],
        "install readers v1": [["berlin", "lisbon"]],
        "install metrics v1": [["lisbon"]],
    }


def test_a_pass_without_changes_keeps_the_number_of_the_index(world: World) -> None:
    indexer = world.create_indexer()
    first = update(world, indexer)
    world.now += 60
    second = update(world, indexer)
    world.write({"broken.yaml": "kind: [}"})
    third = update(world, indexer)

    assert (second.number, second.completed_at) == (first.number, first.completed_at + 60)
    assert second.targets == first.targets
    assert third.number == first.number + 1
