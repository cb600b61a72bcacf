"""Shards: each does its own destinations, and together they leave what one daemon alone would have left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from reconciler.planning.shard import Shard, read_shard
from tests.support.git_env import git, read_refs
from tests.support.world import STATE, Pass, World, config_map, injected_set, package, repository, small_world, variant

# of three shards, in the order of their numbers
NAMES = tuple(f"city-{number}" for number in range(6))
STATUS = "refs/heads/reconciler/status"


def wide_world(folder: Path) -> World:
    """Six clusters with a gateway each, and metrics on two of them."""
    world = small_world(folder)
    world.write({f"clusters/{one}.yaml": None for one in ("berlin", "lisbon")})
    world.write({f"clusters/{one}.yaml": repository(one) for one in NAMES})
    world.write(
        {
            "gateway.yaml": injected_set("gateway", NAMES),
            "metrics.yaml": variant("metrics", NAMES[0], "metrics"),
            "more.yaml": variant("metrics-too", NAMES[1], "metrics"),
        }
    )
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return wide_world(tmp_path)


def shard(world: World, text: str, cache: str = "") -> World:
    """The same world through the daemon of a shard, with a cache of its own unless it is told to share one."""
    own = cache or f"cache-{text.replace('/', '-of-')}"
    return World(world.folder, shard=text, cache=str(world.folder / own))


def shards(world: World, count: int) -> list[World]:
    return [shard(world, f"{index}/{count}") for index in range(1, count + 1)]


def in_turns(daemons: list[World]) -> None:
    """Let daemons pass, one after the other, until all of them are silent."""
    for _ in range(5):
        if all([one.sync().is_silent for one in daemons]):
            return
    raise AssertionError("never silent")


def start_again(world: World) -> Mapping[str, str]:
    """Take every ref of the fleet away, and return them."""
    refs = read_refs(world.fleet)
    for name in refs:
        git(world.fleet, "update-ref", "-d", name)
    return refs


def alone(world: World) -> Mapping[str, str]:
    """Return the refs that one daemon without shards leaves, and leave none of them behind."""
    world.settle()
    return start_again(world)


def without_status(refs: Mapping[str, str]) -> dict[str, str]:
    return {name: commit for name, commit in refs.items() if name != STATUS}


def status(world: World) -> str:
    return git(world.fleet, "rev-parse", f"{STATUS}^{{tree}}")


def test_shards_one_after_the_other_make_the_commits_of_a_single_pass(world: World) -> None:
    world.sync()
    told = status(world)
    expected = start_again(world)
    daemons = shards(world, 3)

    written = [one.sync().report.written.keys() for one in daemons]

    assert without_status(read_refs(world.fleet)) == without_status(expected)
    assert sorted(name for names in written for name in names) == sorted(NAMES)
    in_turns(daemons)
    assert without_status(read_refs(world.fleet)) == without_status(expected)
    assert status(world) == told
