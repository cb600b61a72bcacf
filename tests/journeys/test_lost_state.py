"""State is only memory: lost, old, or newer than we are, nothing is removed, overwritten or fought over."""

import json
from pathlib import Path

import pytest

from tests.support.git_env import commit_files, git
from tests.support.world import STATE, World, config_map, package, small_world, variant


def lose_state(world: World, *clusters: str) -> None:
    for one in clusters:
        git(world.fleet, "update-ref", "-d", STATE + one)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin has both packages published; Lisbon's draft is open."""
    world = small_world(tmp_path)
    world.sync()
    world.merge("berlin", "squash")
    world.settle()
    return world


def test_a_lost_state_is_read_back_from_status_files_and_moves_no_branch(world: World) -> None:
    lose_state(world, "berlin", "lisbon")

    after = world.sync()

    assert after.moved == set()
    assert after.outcomes == {"berlin/gateway": "published", "berlin/metrics": "published", "lisbon/gateway": "drafted"}
    assert world.sync().is_silent


def test_after_a_lost_state_an_update_goes_on_as_before(world: World) -> None:
    lose_state(world, "berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    assert world.sync().outcomes["berlin/metrics"] == "draft"
    world.merge("berlin", "squash")
    assert world.settle().outcomes["berlin/metrics"] == "published"


def test_after_a_lost_state_an_edited_package_is_not_overwritten(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    lose_state(world, "berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    assert world.settle().outcomes["berlin/metrics"] == "drafted"
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:2.0" in text) == (True, True)


def test_after_a_lost_state_an_edited_draft_is_not_overwritten(world: World) -> None:
    edited = world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    lose_state(world, "lisbon")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    world.settle()

    assert git(world.fleet, "merge-base", edited, "drafts/lisbon") == edited
    assert "replicas: 5" in world.text("drafts/lisbon", "gateway/deployment.yaml")
    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")


def test_after_a_lost_state_an_open_draft_is_only_appended_to(world: World) -> None:
    before = world.head("drafts/lisbon")
    lose_state(world, "lisbon")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    world.sync()

    assert git(world.fleet, "merge-base", before, "drafts/lisbon") == before
    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")
    assert world.sync().is_silent


def test_after_a_lost_state_nothing_of_a_vanished_variant_is_removed(world: World) -> None:
    lose_state(world, "berlin")
    world.write({"metrics.yaml": None})

    after = world.settle()

    assert after.moved == set()
    assert world.tree("clusters/berlin", "metrics")


def test_a_status_file_of_another_owner_gives_nobody_a_right(world: World) -> None:
    lose_state(world, "berlin")
    world.write({"metrics.yaml": variant("somebody", "berlin", "metrics")})

    assert world.sync().outcomes["berlin/metrics"] == "DownstreamExists"
    assert world.sync().is_silent


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [\n", id="no-yaml"),
        pytest.param("", id="empty"),
        pytest.param("status: none\n", id="no-mapping"),
        pytest.param("- 1\n", id="a-list"),
    ],
)
def test_a_spoilt_status_file_is_as_good_as_none(world: World, text: str) -> None:
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": text})
    lose_state(world, "berlin")

    after = world.settle()

    assert after.outcomes == {
        "berlin/gateway": "published", "berlin/metrics": "DownstreamExists", "lisbon/gateway": "drafted",
    }  # fmt: skip


def test_a_status_file_that_lies_about_its_trees_does_not_pass_edits_off_as_ours(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    rendered = world.record("berlin", "metrics")["wanted"]
    lie = world.text("clusters/berlin", ".reconciler/metrics.yaml").replace(
        str(rendered), str(world.tree("clusters/berlin", "metrics"))
    )
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": lie})
    lose_state(world, "berlin")

    assert world.settle().moved == set()
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")


def test_a_newer_state_stops_an_older_engine(world: World) -> None:
    text = git(world.fleet, "show", f"{STATE}berlin:destination.json")
    newer = json.dumps({**json.loads(text), "format": 999}).encode()
    commit_files(world.fleet, f"{STATE}berlin", {"destination.json": newer})
    world.write({"regions/north.yaml": config_map("region-north", api="new")})

    after = world.sync()

    assert "EngineTooOld" in after.codes
    assert after.moved == set()


def test_the_state_keeps_every_tree_it_names(world: World) -> None:
    kept = git(world.fleet, "ls-tree", "--name-only", f"{STATE}berlin:trees").split()

    record = world.record("berlin", "metrics")
    assert isinstance(record["ours"], dict)
    assert {record["ours"][name] for name in ("base", "merged", "plain", "rendered")} <= set(kept)
    git(world.fleet, "-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now")
    world.write({"regions/north.yaml": config_map("region-north", api="new")})
    world.sync()
    assert world.sync().is_silent


def test_a_fresh_cache_changes_nothing(world: World) -> None:
    fresh = World(world.folder, cache=str(world.folder / "another-cache"))

    assert fresh.sync().is_silent
