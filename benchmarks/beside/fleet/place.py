"""The fleet of a script: clusters, work trees and objects of regions; measures the cost of each run."""

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
    """Wall-clock seconds, and CPU seconds of all processes."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Cluster:
    """A cluster with the region whose object it gets."""

    name: str
    region: int

    @property
    def branch(self) -> str:
        """The branch with the rendered packages of the cluster."""
        return f"drafts/{self.name}"


@dataclass(frozen=True)
class Place:
    """A folder with the fleet, its remotes, and the files of a script."""

    folder: Path
    sizes: Sizes

    @property
    def world(self) -> Path:
        """The folder with the config, the catalog and the fleet repositories."""
        return self.folder / "world"

    def clusters(self) -> Iterator[Cluster]:
        """Yield all clusters."""
        for index in range(self.sizes.clusters):
            yield Cluster(f"cluster-{index:05}", index // self.sizes.region)

    def remote(self, cluster: Cluster) -> Path:
        """Return the repository with the branch of a cluster."""
        return self.world / f"fleet-{cluster.region}.git"

    def tree(self, cluster: Cluster) -> Path:
        """Return the work tree of a cluster."""
        return self.folder / "trees" / cluster.name

    def injected(self, package: str, region: int) -> str:
        """Return the object of a package in a region, with the values of the region."""
        kind, _, _ = INJECTED[package]
        text = (self.world / "config" / "regions" / f"region-{region:03}.yaml").read_text()
        (item,) = (documents for documents in yaml.safe_load_all(text) if documents["kind"] == kind)
        annotations = {"config.kubernetes.io/local-config": "true"}
        return yaml.safe_dump({**item, "metadata": {"name": RECEIVERS[package], "annotations": annotations}})

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a command with a separate home folder and return its output."""
        # Two concurrent `kpt pkg get` commands fail in a shared cache, so each thread has its own.
        cache = self.folder / "kpt" / threading.current_thread().name
        environment = {
            **os.environ, "HOME": str(self.folder), "KPT_CACHE_DIR": str(cache),
            "GIT_CONFIG_GLOBAL": str(self.folder / "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip
        process = subprocess.run(
            command, cwd=folder or self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: {process.stderr}")
        return process.stdout

    def configure_git(self) -> None:
        """Set the Git identity, and disable automatic maintenance."""
        (self.folder / "gitconfig").write_text(_GIT)


class Script(Protocol):
    """The steps of a script with its tool. The Git steps are the same for all scripts."""

    def prepare(self, place: Place) -> None:
        """Write the files that the author of the script prepares: bases, overlays, a catalog."""

    def take_values(self, place: Place) -> None:
        """Copy the values from the config of the fleet to the files of the script."""

    def render(self, place: Place, cluster: Cluster) -> None:
        """Write all packages of a cluster into its work tree."""


def costs_of(script: Script, place: Place, at_once: int) -> tuple[Cost, Cost]:
    """Return the costs of a script for the first run, and for a run after a change of one region's object."""
    place.configure_git()
    script.prepare(place)
    script.take_values(place)
    first = cost_of(lambda: _run(script, place, at_once))
    change_objects(place.world, "second")
    script.take_values(place)
    return first, cost_of(lambda: _run(script, place, at_once))


def cost_of(work: Callable[[], object]) -> Cost:
    """Return the cost of an action, in this process and its child processes."""
    before, began = cpu_seconds(), time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Cost(seconds, cpu_seconds() - before)


def _run(script: Script, place: Place, at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda cluster: _publish_cluster(script, place, cluster), place.clusters()))


def _publish_cluster(script: Script, place: Place, cluster: Cluster) -> None:
    """Render a cluster, then commit and push the changes. The work tree stays for the next run."""
    tree = place.tree(cluster)
    if not tree.exists():
        place.run("git", "init", "--quiet", f"--initial-branch={cluster.branch}", str(tree))
        place.run("git", "remote", "add", "origin", str(place.remote(cluster)), folder=tree)
    script.render(place, cluster)
    place.run("git", "add", "--all", folder=tree)
    if place.run("git", "status", "--porcelain", folder=tree):
        place.run("git", "commit", "--quiet", "--message", f"{cluster.name}: rendered", folder=tree)
        place.run("git", "push", "--quiet", "origin", cluster.branch, folder=tree)
