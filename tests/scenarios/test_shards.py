"""Shards: each does its own destinations, and together they leave what one daemon alone would have left."""

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
from tests.support.git_repositories import HERMETIC, git, read_refs
from tests.support.policies import HOUR, RINGS, policy, rollout_rule, rollout_world
from tests.support.shards import ShardedWorld, shard_of, shards_of
from tests.support.world import STATE, World, config_map, injected_set, package, repository, small_world, variant
from tests.unit.planning.values import destination

# every one of three shards has some of them
NAMES = tuple(f"city-{number}" for number in range(6))
STATUS = "refs/heads/reconciler/status"


def wide_world(folder: Path) -> World:
    """Six clusters with a gateway each, and metrics on two of them."""
    world = small_world(folder, guards={"max_delete_percent": 30})
    world.write({f"clusters/{cluster}.yaml": None for cluster in ("berlin", "lisbon")})
    world.write({f"clusters/{name}.yaml": repository(name) for name in NAMES})
    world.write({"gateway.yaml": injected_set("gateway", NAMES), "metrics.yaml": metrics("city-0")})
    return world


def metrics(cluster: str, version: str = "v1") -> str:
    return variant("metrics", cluster, "metrics", version)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return wide_world(tmp_path)


def holder(name: str, count: int = 3) -> int:
    """Return which shard has a cluster."""
    target = destination(name)
    return next(index for index in range(1, count + 1) if parse_shard(f"{index}/{count}").is_responsible_for(target))


@dataclass(frozen=True)
class Left:
    """What daemons leave behind: every ref but the status branch, and the files of that."""

    refs: Mapping[str, str]
    status: str

    @classmethod
    def of(cls, world: World) -> Left:
        refs = {name: commit for name, commit in read_refs(world.fleet).items() if name != STATUS}
        return cls(refs, git(world.fleet, "rev-parse", f"{STATUS}^{{tree}}"))


def in_turns(daemons: Sequence[World]) -> None:
    """Let daemons pass, one after the other, until all of them are silent."""
    for _ in range(5):
        passes = [daemon.sync() for daemon in daemons]
        if all(pass_result.is_unchanged for pass_result in passes):
            return
    raise AssertionError("never silent")


def at_once(daemons: Sequence[World]) -> None:
    """Let every daemon begin at the same moment."""
    ready = Barrier(len(daemons))

    def run(value: World) -> None:
        ready.wait()
        value.sync()

    with ThreadPoolExecutor(len(daemons)) as pool:
        list(pool.map(run, daemons))


def start_again(world: World) -> None:
    """Take every ref of the fleet away, and all that was remembered."""
    for name in read_refs(world.fleet):
        git(world.fleet, "update-ref", "-d", name)
    for cache in world.folder.glob("cache*"):
        shutil.rmtree(cache)


def left_alone(world: World) -> Left:
    """Return what one daemon without shards leaves, and leave nothing of it behind."""
    world.sync_until_unchanged()
    left = Left.of(world)
    start_again(world)
    return left


def test_every_shard_has_some_of_the_clusters() -> None:
    assert {holder(name) for name in NAMES} == {1, 2, 3}


def test_shards_one_after_the_other_make_the_commits_of_a_single_pass(world: World) -> None:
    world.sync()
    expected = Left.of(world)
    start_again(world)
    daemons = shards_of(world, 3)

    passes = [daemon.sync() for daemon in daemons]

    assert Left.of(world).refs == expected.refs
    written = [{name for name in NAMES if holder(name) == index} for index in (1, 2, 3)]
    assert [{*pass_result.report.written} for pass_result in passes] == written
    assert [pass_result.report.render_count for pass_result in passes] == [
        len(names) + ("city-0" in names) for names in written
    ]
    in_turns(daemons)
    assert Left.of(world) == expected


def test_a_second_pass_of_each_is_silent(world: World) -> None:
    daemons = shards_of(world, 3)
    # the first one tells of all others, and so comes last
    for daemon in reversed(daemons):
        daemon.sync()

    assert all(item.sync().is_unchanged for item in daemons)


@pytest.mark.parametrize(
    "cache", [pytest.param("", id="each-with-a-cache-of-its-own"), pytest.param("cache", id="with-one-cache-for-all")]
)
def test_shards_and_replicas_race_and_the_refs_end_the_same(world: World, cache: str) -> None:
    expected = left_alone(world)
    daemons = shards_of(world, 3)
    replicas = [shard_of(world, f"{index}/3", cache or f"replica-{index}") for index in (1, 2, 3)]

    at_once([*daemons, *replicas])

    in_turns([*daemons, *replicas])
    assert Left.of(world) == expected
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write({"gateway.yaml": injected_set("gateway", NAMES, "v2")})
    at_once([*daemons, *replicas])
    in_turns([*daemons, *replicas])
    raced = Left.of(world)
    assert World(world.folder, cache=str(world.folder / "cache-alone")).sync().is_unchanged
    assert Left.of(world) == raced


def test_with_one_shard_more_nothing_is_lost_and_no_draft_moves(world: World) -> None:
    in_turns(shards_of(world, 3))
    world.merge("city-0", "squash")
    edited = world.edit("drafts/city-3", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    in_turns(shards_of(world, 3))
    before = Left.of(world)
    moved = [name for name in NAMES if holder(name) != holder(name, 4)]

    in_turns(shards_of(world, 4))

    assert moved
    assert Left.of(world) == before
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write({"metrics.yaml": metrics("city-0", "v2"), "gateway.yaml": injected_set("gateway", NAMES, "v2")})
    in_turns(shards_of(world, 4))
    assert git(world.fleet, "merge-base", edited, "drafts/city-3") == edited
    assert "replicas: 5" in world.text("drafts/city-3", "gateway/deployment.yaml")
    assert all("gateway:2.0" in world.text(f"drafts/{name}", "gateway/deployment.yaml") for name in NAMES)
    assert "metrics:2.0" in world.text("drafts/city-0", "metrics/deployment.yaml")


def test_daemons_of_two_numbers_at_the_same_time_lose_nothing(world: World) -> None:
    """In the middle of a resize a cluster may have two daemons for a while, or none."""
    expected = left_alone(world)
    old, new = shards_of(world, 3), shards_of(world, 4)

    at_once([old[0], old[2], *new])

    in_turns([*old, *new])
    assert Left.of(world) == expected


def test_the_first_shard_tells_nothing_new_of_what_its_shard_has_yet_to_decide_on(world: World) -> None:
    in_turns(shards_of(world, 3))
    before = world.files(world.fleet, "reconciler/status")
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write({"gateway.yaml": injected_set("gateway", NAMES, "v2")})
    first, *worlds = shards_of(world, 3)
    mine = {name for name in NAMES if holder(name) == 1}

    pass_result = first.sync()

    after = world.files(world.fleet, "reconciler/status")
    changed = {path for path, text in after.items() if before.get(path) != text and path != "summary.yaml"}
    assert pass_result.report.render_count == len(mine)
    assert {re.sub(r".*gateway-(city-.)-.*|.*", r"\1", path) for path in changed} == mine
    assert after.keys() == before.keys()
    assert parse_yaml(after["summary.yaml"]).documents[0].data["totals"]["awaited"] == len(NAMES) - len(mine)
    in_turns([*worlds, first])
    files = world.files(world.fleet, "reconciler/status")
    assert "awaited" not in files["summary.yaml"]
    assert World(world.folder, cache=str(world.folder / "cache-alone")).sync().is_unchanged
    assert world.files(world.fleet, "reconciler/status") == files


def test_what_a_policy_is_used_for_is_not_told_by_who_sees_a_part(world: World) -> None:
    world.write({"policies/site.yaml": policy("site", [])})

    values = [item.sync().codes for item in shards_of(world, 3)]

    assert "PolicyUnused" in World(world.folder, cache=str(world.folder / "cache-alone")).plan().codes
    assert not any("PolicyUnused" in codes for codes in values)
    in_turns(shards_of(world, 3))
    assert "PolicyUnused" in world.text("reconciler/status", "summary.yaml")


def test_clusters_of_one_branch_are_approved_by_their_shards_at_once(tmp_path: Path) -> None:
    world = small_world(tmp_path, approvals={"by_annotation": True})
    extra = "annotations: {approval.nephio.org/policy: initial}"
    names = ("city-0", next(name for name in NAMES if holder(name) != holder("city-0")))
    world.write({f"clusters/{cluster}.yaml": None for cluster in ("berlin", "lisbon")} | {"gateway.yaml": None})
    world.write({f"clusters/{name}.yaml": repository(name, branch="all", directory=name) for name in names})
    world.write({"metrics.yaml": variant("one", names[0], "metrics", extra=extra)})
    world.write({"more.yaml": variant("other", names[1], "metrics", extra=extra)})
    daemons = shards_of(world, 3)

    for _ in range(4):
        at_once(daemons)

    in_turns(daemons)
    assert {path.split("/")[0] for path in world.paths(world.fleet, "all")} == {*names}
    assert [world.record(name, "metrics")["revision"] for name in names] == [1, 1]


# what people and platforms do, once with one daemon and once with three shards: both leave the same

Scenario = Callable[[World], None]


def news(world: World) -> None:
    """A new version of one package, and a wrong one of another, while a draft is merged and another one edited."""
    world.sync_until_unchanged()
    world.merge("city-0", "squash")
    world.edit("drafts/city-1", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("gateway", "v2", package("gateway", image="2.0", endpoints=config_map("endpoints", "required")))
    world.write({"gateway.yaml": injected_set("gateway", NAMES, "v2"), "metrics.yaml": metrics("city-0", "v9")})


def a_move(world: World) -> None:
    """A package moves to a cluster of another shard, where another owner has the place at first."""
    there = next(name for name in NAMES if holder(name) != holder("city-0"))
    world.sync_until_unchanged()
    world.merge("city-0", "squash")
    world.write({"aa.yaml": variant("aa", there, "metrics"), "metrics.yaml": metrics(there)})
    world.sync_until_unchanged()
    assert world.record("city-0", "metrics")["outcome"]["kind"] == "held"  # type: ignore[index]
    world.write({"aa.yaml": None})


def a_departure(world: World) -> None:
    """A set gives up more than it may, and people say that it shall."""
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


def a_chain(world: World) -> None:
    """A package whose upstream is what another shard publishes, and tags."""
    there = next(name for name in NAMES if holder(name) != holder("city-0"))
    text = variant("next", there, "next", "v1", "metrics").replace("repo: catalog", "repo: city-0")
    world.write({"next.yaml": text})
    world.sync_until_unchanged()
    world.merge("city-0", "squash")


def two_of_one_branch(world: World) -> None:
    """Clusters with directories of their own on one branch."""
    world.write({f"clusters/{item}.yaml": repository(item, branch="all", directory=item) for item in NAMES})
    world.sync_until_unchanged()
    for name in NAMES[:2]:
        desk = world._clone()
        git(desk, "checkout", "--quiet", "-B", "all", "origin/all")
        git(desk, "merge", "--quiet", "--squash", f"origin/drafts/{name}")
        git(desk, "commit", "--quiet", "-m", "Take the draft")
        git(desk, "push", "--quiet", "origin", "all")


def trouble(world: World) -> None:
    """A cluster branch that is gone, a state that nobody can read, and a file of the config that is none."""
    world.sync_until_unchanged()
    world.merge("city-0", "squash")
    world.sync_until_unchanged()
    world.delete("clusters/city-0")
    world.set_ref(f"{STATE}city-1", world.head("drafts/city-1"))
    world.write({"broken.yaml": "a: [\n"})


def in_waves(world: World) -> None:
    """A rule comes in waves, each to a cluster of its own, and every wave waits for all shards."""
    world.write({"policies/site.yaml": policy("site", [rollout_rule(5)])})
    for ring in RINGS:
        world.sync_until_unchanged()
        assert [name for name in RINGS if world.head(f"drafts/{name}")] == [ring]
        with patched.dict(HERMETIC, {"GIT_COMMITTER_DATE": f"@{world.now} +0000"}):
            world.merge(ring, "squash")
        world.sync_until_unchanged()
        world.now += HOUR


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(item, id=item.__name__)
        for item in (news, a_move, a_departure, a_chain, two_of_one_branch, trouble, in_waves)
    ],
)
def test_three_shards_leave_what_one_daemon_leaves(tmp_path: Path, scenario: Scenario) -> None:
    values = []
    begin = rollout_world if scenario is in_waves else wide_world
    for among in (lambda entry: entry, ShardedWorld.with_shards):
        world = among(begin(tmp_path / "world"))
        scenario(world)
        world.sync_until_unchanged()
        values.append((Left.of(world), world.files(world.fleet, "reconciler/status")))
        shutil.rmtree(tmp_path / "world")
    (alone, value), (sharded, too) = values

    assert too == value
    assert sharded == alone
