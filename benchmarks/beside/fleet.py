"""The fleet as a script has it: clusters, their work trees, the objects of regions; and what each run of it costs."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml

from benchmarks.processes import cpu_seconds
from benchmarks.scale.world import INJECTED, Sizes, change_objects

LABEL = ("example.com/fleet", "edge")
RECEIVERS = {"gke": "gcp-context", "kind": "workload-cluster"}
"""The objects that are injected into, by package; each has a file of its name."""
_GIT = """\
[user]
name = script
email = script@localhost
[maintenance]
auto = false
"""


@dataclass(frozen=True)
class Cost:
    """Seconds of the clock, and of CPU in all processes."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Cluster:
    """A cluster, and the region whose object it gets."""

    name: str
    region: int

    @property
    def branch(self) -> str:
        """The branch it is brought to, by whomever."""
        return f"drafts/{self.name}"


@dataclass(frozen=True)
class Place:
    """A folder with a world, which has the remotes, and with all that a script keeps beside it."""

    folder: Path
    sizes: Sizes

    @property
    def world(self) -> Path:
        """The folder of the world: its config, its catalog and its fleet repositories."""
        return self.folder / "world"

    def clusters(self) -> Iterator[Cluster]:
        """Yield all clusters."""
        for index in range(self.sizes.clusters):
            yield Cluster(f"cluster-{index:05}", index // self.sizes.region)

    def remote(self, cluster: Cluster) -> Path:
        """Return the repository that a cluster's branch is in."""
        return self.world / f"fleet-{cluster.region}.git"

    def tree(self, cluster: Cluster) -> Path:
        """Return the work tree of a cluster."""
        return self.folder / "trees" / cluster.name

    def injected(self, package: str, region: int) -> str:
        """Return the object that a package is to have in a region, with the region's values."""
        kind, _, _ = INJECTED[package]
        text = (self.world / "config" / "regions" / f"region-{region:03}.yaml").read_text()
        (given,) = (one for one in yaml.safe_load_all(text) if one["kind"] == kind)
        annotations = {"config.kubernetes.io/local-config": "true"}
        return yaml.safe_dump({**given, "metadata": {"name": RECEIVERS[package], "annotations": annotations}})

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a command with a home of its own, and return what it says."""
        # two `kpt pkg get` that begin at once trip over each other in one cache, so that each thread has its own
        cache = self.folder / "kpt" / threading.current_thread().name
        environment = {
            **os.environ, "HOME": str(self.folder), "KPT_CACHE_DIR": str(cache),
            "GIT_CONFIG_GLOBAL": str(self.folder / "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip
        done = subprocess.run(
            command, cwd=folder or self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def configure_git(self) -> None:
        """Say who commits, and that nothing is tidied up meanwhile."""
        (self.folder / "gitconfig").write_text(_GIT)


class Script(Protocol):
    """What a script does with its tool; Git is the same for all."""

    def prepare(self, place: Place) -> None:
        """Write what its author has written before: bases, overlays, a catalog."""

    def take_values(self, place: Place) -> None:
        """Bring what is in the config of the world to where the script reads it."""

    def render(self, place: Place, cluster: Cluster) -> None:
        """Write all packages of a cluster into its work tree."""


def costs_of(script: Script, place: Place, at_once: int) -> tuple[Cost, Cost]:
    """Return what a script costs the first time, and again after the object of one region has changed."""
    place.configure_git()
    script.prepare(place)
    script.take_values(place)
    first = cost_of(lambda: _run(script, place, at_once))
    change_objects(place.world, "second")
    script.take_values(place)
    return first, cost_of(lambda: _run(script, place, at_once))


def cost_of(work: Callable[[], object]) -> Cost:
    """Return what something costs, in this process and in all that are below it."""
    before, began = cpu_seconds(), time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Cost(seconds, cpu_seconds() - before)


def _run(script: Script, place: Place, at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda cluster: _bring(script, place, cluster), place.clusters()))


def _bring(script: Script, place: Place, cluster: Cluster) -> None:
    """Render a cluster, and commit and push what is new; its work tree is kept from run to run."""
    tree = place.tree(cluster)
    if not tree.exists():
        place.run("git", "init", "--quiet", f"--initial-branch={cluster.branch}", str(tree))
        place.run("git", "remote", "add", "origin", str(place.remote(cluster)), folder=tree)
    script.render(place, cluster)
    place.run("git", "add", "--all", folder=tree)
    if place.run("git", "status", "--porcelain", folder=tree):
        place.run("git", "commit", "--quiet", "--message", f"{cluster.name}: rendered", folder=tree)
        place.run("git", "push", "--quiet", "origin", cluster.branch, folder=tree)
