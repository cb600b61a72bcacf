"""A sync that is killed at any moment leaves no state that the next sync does not repair.

RECONCILER_KILLS sets the number of kills: 6, or 200 for the long run. Each moment has its own seed, so that
a failure can be repeated.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.fleet_world import Sizes, build_world
from tests.support.command_line import run_in
from tests.support.daemon import ENVIRONMENT, start_program
from tests.support.git_repositories import assert_sound, read_refs

KILLS = int(os.environ.get("RECONCILER_KILLS", "6"))
CLUSTERS = 20
SIZES = Sizes(clusters=CLUSTERS, regions=5, files=5, repositories=1)
SYNC = ("sync", "config", "--fleet", "./fleet-0.git", "--cache", "cache")
# The start takes a large part of the run time of a process.
STARTED = 0.4


@dataclass(frozen=True)
class Scene:
    """A world with 20 drafts pending, the refs that an undisturbed sync leaves, and its duration."""

    world: Path
    refs: dict[str, str]
    seconds: float


def observed(world: Path) -> Scene:
    undisturbed = world.with_name(world.name + "-undisturbed")
    shutil.copytree(world, undisturbed)
    began = time.monotonic()
    with start_program(undisturbed, *SYNC) as process:
        out, err = process.communicate(timeout=300)
    seconds = time.monotonic() - began
    assert process.returncode == 0, out + err
    before, after = read_refs(world / "fleet-0.git"), read_refs(undisturbed / "fleet-0.git")
    drafts = [ref for ref in after if ref.startswith("refs/heads/drafts/") and before.get(ref) != after[ref]]
    assert len(drafts) == CLUSTERS
    return Scene(world, after, seconds)


@pytest.fixture(scope="module")
def new_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = tmp_path_factory.mktemp("first") / "world"
    build_world(world, SIZES)
    # With many small pushes, most moments are between two pushes.
    (world / "reconciler.yaml").write_text("git: {max_refs_per_push: 4}\n")
    return world


@pytest.fixture(scope="module")
def first_sync(new_world: Path) -> Scene:
    return observed(new_world)


@pytest.fixture(scope="module")
def later_sync(new_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """All drafts are pushed, and one change of the PackageVariantSet updates all of them."""
    world = tmp_path_factory.mktemp("later") / "world"
    shutil.copytree(new_world, world)
    synced = run_in(world, ENVIRONMENT, *SYNC)
    assert synced.returncode == 0, synced.stdout + synced.stderr
    spec = world / "config" / "set.yaml"
    spec.write_text(spec.read_text().replace("namespace: edge", "namespace: rim"))
    return observed(world)


@pytest.mark.parametrize("scene", [pytest.param("first_sync", marks=pytest.mark.slow), "later_sync"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, (KILLS + 1) // 2))]
)
def test_a_killed_sync_is_made_good_by_the_next(
    scene: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    result: Scene = request.getfixturevalue(scene)
    world = tmp_path / "world"
    shutil.copytree(result.world, world)
    moment = random.Random(f"{scene} {seed}").uniform(STARTED, 1) * result.seconds
    with start_program(world, *SYNC) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
    left = read_refs(world / "fleet-0.git")
    output = sum(result.refs[ref] == left.get(ref) for ref in result.refs)
    print(f"killed after {moment:.2f} s, when {output} of {len(result.refs)} refs stood as they should")
    repaired = run_in(world, ENVIRONMENT, *SYNC)

    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert read_refs(world / "fleet-0.git") == result.refs
    assert_sound(world / "fleet-0.git")
