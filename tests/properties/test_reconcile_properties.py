"""Invariants of every pass: no further changes, equal outputs for equal inputs, and preserved local changes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.git_environment import HERMETIC
from tests.support.git_repositories import commit_files, git, read_refs
from tests.support.world import MERGES, STATE, World, config_map, injected_set, package, small_world, variant

REVISIONS = ("v1", "v2")
# creating a fleet takes a second: the first failure is reported without minimization
FEW = settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
PLACES = ("metrics", "logs", "team/probe")


def make(folder: Path, expected: dict[str, str], regions: dict[str, str]) -> World:
    """Return a small fleet with these packages at these revisions in Berlin."""
    world = small_world(folder)
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": None, **request_packages(expected), **values(regions)})
    return world


def request_packages(expected: dict[str, str]) -> dict[str, str | None]:
    mapping = {
        place: variant(place.replace("/", "-"), "berlin", place, rev, "metrics") for place, rev in expected.items()
    }
    return {"requests.yaml": "---\n".join(mapping.values()) or None}


def values(regions: dict[str, str]) -> dict[str, str]:
    return {f"regions/{name}.yaml": config_map(f"region-{name}", api=value) for name, value in regions.items()}


WANTED = st.dictionaries(st.sampled_from(PLACES), st.sampled_from(REVISIONS), min_size=1)
VALUES = st.fixed_dictionaries({name: st.sampled_from(["a", "b"]) for name in ("north", "south")})


def drafts_and_status(world: World) -> dict[str, str]:
    """Return all refs except the states, which contain their history."""
    return {name: commit for name, commit in read_refs(world.fleet).items() if not name.startswith(STATE)}


@pytest.mark.slow
@settings(FEW, max_examples=5)
@given(WANTED, VALUES, WANTED, VALUES)
def test_the_second_pass_is_silent(
    wanted: dict[str, str], regions: dict[str, str], later: dict[str, str], later_regions: dict[str, str]
) -> None:
    with TemporaryDirectory() as folder:
        world = make(Path(folder) / "world", wanted, regions)
        world.sync()
        assert world.sync().is_unchanged
        world.write({**request_packages(later), **values(later_regions)})
        world.sync()
        assert world.sync().is_unchanged


def forget_traces(world: World, cluster: str) -> None:
    """Mark every package of a cluster as never rendered."""
    ref = STATE + cluster
    names = git(world.fleet, "ls-tree", "-r", "--name-only", ref, "packages/").split()
    records = {name: json.loads(git(world.fleet, "show", f"{ref}:{name}")) for name in names}
    forgotten = {name: json.dumps({**record, "trace": {}}).encode() for name, record in records.items()}
    commit_files(world.fleet, ref, forgotten)


@pytest.mark.slow
@settings(FEW, max_examples=4)
@given(WANTED, VALUES, WANTED, VALUES)
def test_an_incremental_pass_equals_a_full_one(
    wanted: dict[str, str], regions: dict[str, str], later: dict[str, str], later_regions: dict[str, str]
) -> None:
    with TemporaryDirectory() as folder:
        world = make(Path(folder) / "world", wanted, regions)
        world.sync()
        world.merge("berlin", "squash")
        world.sync()
        twin = copied(world, Path(folder) / "twin")
        for item in (world, twin):
            item.write({**request_packages(later), **values(later_regions)})
        forget_traces(twin, "berlin")
        forget_traces(twin, "lisbon")

        incremental, full = world.sync(), twin.sync()

        assert incremental.report.render_count <= full.report.render_count
        assert trees(world) == trees(twin)


def trees(world: World) -> dict[str, str]:
    """Return the tree of every branch. Commit messages may name causes that a full pass does not detect."""
    names = [name for name in drafts_and_status(world) if "reconciler/" not in name]
    return {name: git(world.fleet, "rev-parse", f"{name}^{{tree}}") for name in names}


def copied(world: World, folder: Path) -> World:
    """Return an equal fleet in another folder with a new cache."""
    shutil.copytree(world.folder, folder, ignore=shutil.ignore_patterns("cache", "working-clone"))
    return World(folder)


def test_the_order_of_files_and_documents_and_the_place_of_the_world_change_no_commit(tmp_path: Path) -> None:
    world = small_world(tmp_path / "one")
    twin = copied(world, tmp_path / "another" / "place")
    documents = [path.read_text() for path in sorted(twin.config.rglob("*.yaml"))]
    shutil.rmtree(twin.config)
    random.Random(3).shuffle(documents)
    twin.config.mkdir()
    twin.write({"z.yaml": "---\n".join(documents[:4]), "a/b.yaml": "# first\n" + "---\n".join(documents[4:])})

    world.sync()
    twin.sync()

    assert trees_without_inputs(world) == trees_without_inputs(twin)


def trees_without_inputs(world: World) -> dict[str, dict[str, str]]:
    """Return the files of every draft without the config commit and object positions in status files."""
    named = ("config: ", "file: ", "from: ")
    mapping = {}
    for branch in ("drafts/berlin", "drafts/lisbon"):
        files = world.files(world.fleet, branch)
        mapping[branch] = {
            path: "\n".join(line for line in text.splitlines() if not line.strip(" -").startswith(named))
            for path, text in files.items()
        }
    return mapping


@pytest.mark.slow
def test_equal_worlds_give_equal_commits_whatever_the_hash_seed(tmp_path: Path) -> None:
    world = small_world(tmp_path / "one")
    twins = {seed: copied(world, tmp_path / f"seed-{seed}") for seed in ("1", "77")}
    script = (
        "import sys; from pathlib import Path; from tests.support.world import World; World(Path(sys.argv[1])).sync()"
    )
    root = Path(__file__).resolve().parents[2]

    for seed, twin in twins.items():
        environment = {**os.environ, **HERMETIC, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", script, str(twin.folder)]
        subprocess.run(command, env=environment, check=True, capture_output=True)

    mapping, other = (read_refs(twin.fleet) for twin in twins.values())
    assert mapping == other
    assert len([name for name in mapping if name.startswith("refs/heads/drafts/")]) == 2


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"walk-{seed}") for seed in range(3)])
def test_whatever_people_do_nothing_of_theirs_is_lost_and_passes_settle(tmp_path: Path, seed: int) -> None:
    walk = Walk(small_world(tmp_path), random.Random(seed))
    for _ in range(10):
        walk.step()
        before = walk.world.head("clusters/berlin")
        walk.world.sync_until_unchanged()
        assert walk.world.head("clusters/berlin") == before
        assert walk.marks <= walk.standing()


class Walk:
    """Random actions of users and machines. `marks` are the files that users added anywhere."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.marks: set[str] = set()
        self._chance = chance
        self._count = self._version = 1
        world.sync()

    def step(self) -> None:
        """Run one random action."""
        actions = (
            self.release, self.region, self.edit, self.edit, self.merge, self.merge, self.decline, self.select,
            self.give_up, self.approve, self.keep,
        )  # fmt: skip
        self._chance.choice(actions)()

    def standing(self) -> set[str]:
        """Return the paths on the cluster branch, on its draft, and on drafts that were deleted with their package."""
        refs = [name for name in read_refs(self.world.fleet) if "/kept/berlin/" in name]
        listed = [git(self.world.fleet, "ls-tree", "-r", "--name-only", name).splitlines() for name in refs]
        return {*self._paths("clusters/berlin"), *self._paths("drafts/berlin"), *chain.from_iterable(listed)}

    def _paths(self, branch: str) -> list[str]:
        return self.world.paths(self.world.fleet, branch)

    def release(self) -> None:
        self._count += 1
        self._version = self._count
        version = f"v{self._count}"
        self.world.release("metrics", version, package("metrics", image=f"{self._count}.0"))
        self.world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})

    def region(self) -> None:
        self.world.write(values({"north": self._chance.choice("abc")}))

    def edit(self) -> None:
        branch = self._chance.choice(["clusters/berlin", "drafts/berlin"])
        if self.world.tree(branch, "metrics"):
            self._count += 1
            path = self._chance.choice(["metrics/", ""]) + f"mark-{self._count}.txt"
            self.world.commit(branch, {path: "a person's\n"})
            self.marks.add(path)

    def merge(self) -> None:
        if self.world.head("drafts/berlin"):
            self.world.merge("berlin", self._chance.choice(MERGES[::2]), delete=self._chance.random() < 0.5)

    def decline(self) -> None:
        if self.world.head("drafts/berlin"):
            self.marks &= set(self.world.paths(self.world.fleet, "clusters/berlin"))
            self.world.delete("drafts/berlin")

    def give_up(self) -> None:
        exists = (self.world.config / "metrics.yaml").exists()
        result = variant("metrics-berlin", "berlin", "metrics", f"v{self._version}")
        self.world.write({"metrics.yaml": None if exists else result})

    def approve(self) -> None:
        if self.world.head("removals/berlin"):
            deleted = {*self._paths("clusters/berlin")} - {*self._paths("removals/berlin")}
            self.world.merge("berlin", self._chance.choice(MERGES[::2]), "removals/berlin", self._chance.random() < 0.5)
            # the deletion of this content was approved
            self.marks -= deleted - {*self._paths("drafts/berlin")}

    def keep(self) -> None:
        if self.world.head("removals/berlin"):
            self.world.delete("removals/berlin")

    def select(self) -> None:
        clusters = self._chance.choice([("berlin", "lisbon"), ("lisbon",)])
        self.world.write({"gateway.yaml": injected_set("gateway", clusters)})
