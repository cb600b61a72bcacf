"""Tests of shards: each plans its own targets, and together they produce the same refs as one daemon."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from unittest.mock import patch as patched

import pytest

from reconciler.krm.yaml import parse_yaml
from reconciler.planning.model.shard import parse_shard
from tests.support.git_environment import HERMETIC
from tests.support.git_repositories import git, read_refs
from tests.support.policies import HOUR, RINGS, policy, rollout_rule, rollout_world
from tests.support.shards import ShardedWorld, shard_of, shards_of
from tests.support.world import STATE, World, config_map, injected_set, package, repository, small_world, variant
from tests.unit.planning.builders import build_target

# Each of three shards is responsible for some of these clusters.
NAMES = tuple(f"city-{number}" for number in range(6))
STATUS = "refs/heads/reconciler/status"


def build_six_clusters(folder: Path) -> World:
    """Six clusters with a gateway each, and metrics on one of them."""
    world = small_world(folder, guards={"max_delete_percent": 30})
    world.write({f"clusters/{cluster}.yaml": None for cluster in ("berlin", "lisbon")})
    world.write({f"clusters/{name}.yaml": repository(name) for name in NAMES})
    world.write({"gateway.yaml": injected_set("gateway", NAMES), "metrics.yaml": build_metrics_variant("city-0")})
    return world


def build_metrics_variant(cluster: str, version: str = "v1") -> str:
    return variant("metrics", cluster, "metrics", version)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return build_six_clusters(tmp_path)


def find_shard(name: str, count: int = 3) -> int:
    """Return the index of the shard that is responsible for a cluster."""
    target = build_target(name)
    return next(index for index in range(1, count + 1) if parse_shard(f"{index}/{count}").is_responsible_for(target))


@dataclass(frozen=True)
class FleetRefs:
    """The refs of the fleet repository: all refs except the status branch, and the tree of the status branch."""

    refs: Mapping[str, str]
    status: str

    @classmethod
    def read_from(cls, world: World) -> FleetRefs:
        refs = {name: commit for name, commit in read_refs(world.fleet).items() if name != STATUS}
        return cls(refs, git(world.fleet, "rev-parse", f"{STATUS}^{{tree}}"))


def sync_in_turns(daemons: Sequence[World]) -> None:
    """Run passes of the daemons one after the other until no pass changes a ref."""
    for _ in range(5):
        passes = [daemon.sync() for daemon in daemons]
        if all(pass_result.is_unchanged for pass_result in passes):
            return
    raise AssertionError("the passes do not stop changing refs")


def sync_concurrently(daemons: Sequence[World]) -> None:
    """Run a pass of all daemons at the same moment."""
    ready = Barrier(len(daemons))

    def sync_when_ready(value: World) -> None:
        ready.wait()
        value.sync()

    with ThreadPoolExecutor(len(daemons)) as pool:
        list(pool.map(sync_when_ready, daemons))


def delete_refs_and_caches(world: World) -> None:
    """Delete all refs of the fleet and all caches."""
    for name in read_refs(world.fleet):
        git(world.fleet, "update-ref", "-d", name)
    for cache in world.folder.glob("cache*"):
        shutil.rmtree(cache)


def compute_unsharded_refs(world: World) -> FleetRefs:
    """Return the refs that one daemon without shards produces. Delete them afterwards."""
    world.sync_until_unchanged()
    refs = FleetRefs.read_from(world)
    delete_refs_and_caches(world)
    return refs


def test_every_shard_is_responsible_for_some_clusters() -> None:
    assert {find_shard(name) for name in NAMES} == {1, 2, 3}


@pytest.mark.slow
def test_passes_of_all_shards_produce_the_commits_of_a_single_pass(world: World) -> None:
    world.sync()
    expected = FleetRefs.read_from(world)
    delete_refs_and_caches(world)
    daemons = shards_of(world, 3)

    passes = [daemon.sync() for daemon in daemons]

    assert FleetRefs.read_from(world).refs == expected.refs
    written = [{name for name in NAMES if find_shard(name) == index} for index in (1, 2, 3)]
    assert [{*pass_result.report.written} for pass_result in passes] == written
    assert [pass_result.report.render_count for pass_result in passes] == [
        len(names) + ("city-0" in names) for names in written
    ]
    sync_in_turns(daemons)
    assert FleetRefs.read_from(world) == expected


def test_a_second_pass_of_each_shard_changes_nothing(world: World) -> None:
    daemons = shards_of(world, 3)
    # The first shard writes the status of all shards, so its pass is the last one.
    for daemon in reversed(daemons):
        daemon.sync()

    assert all(item.sync().is_unchanged for item in daemons)


@pytest.mark.slow
@pytest.mark.parametrize("cache", [pytest.param("", id="separate-caches"), pytest.param("cache", id="shared-cache")])
def test_concurrent_shards_and_replicas_produce_the_same_refs(world: World, cache: str) -> None:
    expected = compute_unsharded_refs(world)
    daemons = shards_of(world, 3)
    replicas = [shard_of(world, f"{index}/3", cache or f"replica-{index}") for index in (1, 2, 3)]

    sync_concurrently([*daemons, *replicas])

    sync_in_turns([*daemons, *replicas])
    assert FleetRefs.read_from(world) == expected
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write({"gateway.yaml": injected_set("gateway", NAMES, "v2")})
    sync_concurrently([*daemons, *replicas])
    sync_in_turns([*daemons, *replicas])
    raced = FleetRefs.read_from(world)
    assert World(world.folder, cache=str(world.folder / "cache-alone")).sync().is_unchanged
    assert FleetRefs.read_from(world) == raced


@pytest.mark.slow
def test_adding_a_shard_moves_no_draft_and_keeps_all_edits(world: World) -> None:
    sync_in_turns(shards_of(world, 3))
    world.merge("city-0", "squash")
    edited = world.edit("drafts/city-3", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    sync_in_turns(shards_of(world, 3))
    before = FleetRefs.read_from(world)
    moved = [name for name in NAMES if find_shard(name) != find_shard(name, 4)]

    sync_in_turns(shards_of(world, 4))

    assert moved
    assert FleetRefs.read_from(world) == before
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write(
        {"metrics.yaml": build_metrics_variant("city-0", "v2"), "gateway.yaml": injected_set("gateway", NAMES, "v2")}
    )
    sync_in_turns(shards_of(world, 4))
    assert git(world.fleet, "merge-base", edited, "drafts/city-3") == edited
    assert "replicas: 5" in world.text("drafts/city-3", "gateway/deployment.yaml")
    assert all("gateway:2.0" in world.text(f"drafts/{name}", "gateway/deployment.yaml") for name in NAMES)
    assert "metrics:2.0" in world.text("drafts/city-0", "metrics/deployment.yaml")


@pytest.mark.slow
def test_concurrent_daemons_with_two_shard_counts_produce_the_same_refs(world: World) -> None:
    """During a resize, a cluster may have two daemons or none for some time."""
    expected = compute_unsharded_refs(world)
    old, new = shards_of(world, 3), shards_of(world, 4)

    sync_concurrently([old[0], old[2], *new])

    sync_in_turns([*old, *new])
    assert FleetRefs.read_from(world) == expected


@pytest.mark.slow
def test_the_first_shard_keeps_the_status_of_packages_that_other_shards_have_not_planned(world: World) -> None:
    sync_in_turns(shards_of(world, 3))
    before = world.files(world.fleet, "reconciler/status")
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write({"gateway.yaml": injected_set("gateway", NAMES, "v2")})
    first, *other_shards = shards_of(world, 3)
    first_shard_clusters = {name for name in NAMES if find_shard(name) == 1}

    pass_result = first.sync()

    after = world.files(world.fleet, "reconciler/status")
    changed = {path for path, text in after.items() if before.get(path) != text and path != "summary.yaml"}
    assert pass_result.report.render_count == len(first_shard_clusters)
    assert {re.sub(r".*gateway-(city-.)-.*|.*", r"\1", path) for path in changed} == first_shard_clusters
    assert after.keys() == before.keys()
    assert parse_yaml(after["summary.yaml"]).documents[0].data["totals"]["awaited"] == len(NAMES) - len(
        first_shard_clusters
    )
    sync_in_turns([*other_shards, first])
    files = world.files(world.fleet, "reconciler/status")
    assert "awaited" not in files["summary.yaml"]
    assert World(world.folder, cache=str(world.folder / "cache-alone")).sync().is_unchanged
    assert world.files(world.fleet, "reconciler/status") == files


@pytest.mark.slow
def test_unused_policies_are_reported_in_the_status_but_not_by_single_shards(world: World) -> None:
    world.write({"policies/site.yaml": policy("site", [])})

    values = [item.sync().codes for item in shards_of(world, 3)]

    assert "PolicyUnused" in World(world.folder, cache=str(world.folder / "cache-alone")).plan().codes
    assert not any("PolicyUnused" in codes for codes in values)
    sync_in_turns(shards_of(world, 3))
    assert "PolicyUnused" in world.text("reconciler/status", "summary.yaml")


def test_clusters_that_share_a_branch_are_approved_by_their_shards_concurrently(tmp_path: Path) -> None:
    world = small_world(tmp_path, approvals={"by_annotation": True})
    extra = "annotations: {approval.nephio.org/policy: initial}"
    names = ("city-0", next(name for name in NAMES if find_shard(name) != find_shard("city-0")))
    world.write({f"clusters/{cluster}.yaml": None for cluster in ("berlin", "lisbon")} | {"gateway.yaml": None})
    world.write({f"clusters/{name}.yaml": repository(name, branch="all", directory=name) for name in names})
    world.write({"metrics.yaml": variant("one", names[0], "metrics", extra=extra)})
    world.write({"more.yaml": variant("other", names[1], "metrics", extra=extra)})
    daemons = shards_of(world, 3)

    for _ in range(4):
        sync_concurrently(daemons)

    sync_in_turns(daemons)
    assert {path.split("/")[0] for path in world.paths(world.fleet, "all")} == {*names}
    assert [world.record(name, "metrics")["revision"] for name in names] == [1, 1]


# Each scenario runs with one daemon and with three shards. Both must produce the same refs.

Scenario = Callable[[World], None]


def update_two_packages(world: World) -> None:
    """Release a version of one package and an invalid one of another, while drafts are merged and edited."""
    world.sync_until_unchanged()
    world.merge("city-0", "squash")
    world.edit("drafts/city-1", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write(
        {"gateway.yaml": injected_set("gateway", NAMES, "v2"), "metrics.yaml": build_metrics_variant("city-0", "v9")}
    )


def move_package(world: World) -> None:
    """Move a package to a cluster of another shard, where another owner has the target at first."""
    other_cluster = next(name for name in NAMES if find_shard(name) != find_shard("city-0"))
    world.sync_until_unchanged()
    world.merge("city-0", "squash")
    world.write(
        {"aa.yaml": variant("aa", other_cluster, "metrics"), "metrics.yaml": build_metrics_variant(other_cluster)}
    )
    world.sync_until_unchanged()
    assert world.record("city-0", "metrics")["outcome"]["kind"] == "held"  # type: ignore[index]
    world.write({"aa.yaml": None})


def acknowledge_deletions(world: World) -> None:
    """Remove more packages of a set than the limit allows, and acknowledge the deletions."""
    world.sync_until_unchanged()
    for name in NAMES[2:5]:
        world.merge(name, "squash")
    world.sync_until_unchanged()
    world.write({"gateway.yaml": injected_set("gateway", NAMES[:2])})
    world.sync_until_unchanged()
    match = re.search(r'ack-deletions: \\?"([0-9a-f]+)', world.text("reconciler/status", "summary.yaml"))
    assert match
    acknowledged = f'metadata:\n  annotations: {{reconciler.dev/ack-deletions: "{match[1]}"}}\n'
    text = (world.config / "gateway.yaml").read_text().replace("metadata:\n", acknowledged, 1)
    world.write({"gateway.yaml": text})


def chain_packages(world: World) -> None:
    """Add a package with the published package of another shard as its upstream."""
    other_cluster = next(name for name in NAMES if find_shard(name) != find_shard("city-0"))
    text = variant("next", other_cluster, "next", "v1", "metrics").replace("repo: catalog", "repo: city-0")
    world.write({"next.yaml": text})
    world.sync_until_unchanged()
    world.merge("city-0", "squash")


def share_branch(world: World) -> None:
    """Use one branch with a directory for each cluster."""
    world.write({f"clusters/{item}.yaml": repository(item, branch="all", directory=item) for item in NAMES})
    world.sync_until_unchanged()
    for name in NAMES[:2]:
        clone = world._clone()
        git(clone, "checkout", "--quiet", "-B", "all", "origin/all")
        git(clone, "merge", "--quiet", "--squash", f"origin/drafts/{name}")
        git(clone, "commit", "--quiet", "-m", "Take the draft")
        git(clone, "push", "--quiet", "origin", "all")


def break_refs_and_config(world: World) -> None:
    """Delete a target branch, break a state, and add an invalid file to the config."""
    world.sync_until_unchanged()
    world.merge("city-0", "squash")
    world.sync_until_unchanged()
    world.delete("clusters/city-0")
    world.set_ref(f"{STATE}city-1", world.head("drafts/city-1"))
    world.write({"broken.yaml": "a: [\n"})


def roll_out_in_waves(world: World) -> None:
    """Roll out a rule in waves of one cluster, so that each wave waits for all shards."""
    world.write({"policies/site.yaml": policy("site", [rollout_rule(5)])})
    for ring in RINGS:
        world.sync_until_unchanged()
        assert [name for name in RINGS if world.head(f"drafts/{name}")] == [ring]
        with patched.dict(HERMETIC, {"GIT_COMMITTER_DATE": f"@{world.now} +0000"}):
            world.merge(ring, "squash")
        world.sync_until_unchanged()
        world.now += HOUR


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(move_package, id="move_package"),
        *(
            pytest.param(item, id=item.__name__, marks=pytest.mark.slow)
            for item in (
                update_two_packages,
                acknowledge_deletions,
                chain_packages,
                share_branch,
                break_refs_and_config,
                roll_out_in_waves,
            )
        ),
    ],
)
def test_three_shards_produce_the_refs_of_one_daemon(tmp_path: Path, scenario: Scenario) -> None:
    values = []
    begin = rollout_world if scenario is roll_out_in_waves else build_six_clusters
    for create_fleet in (lambda entry: entry, ShardedWorld.with_shards):
        world = create_fleet(begin(tmp_path / "world"))
        scenario(world)
        world.sync_until_unchanged()
        values.append((FleetRefs.read_from(world), world.files(world.fleet, "reconciler/status")))
        shutil.rmtree(tmp_path / "world")
    (alone, value), (sharded, sharded_status) = values

    assert sharded_status == value
    assert sharded == alone
