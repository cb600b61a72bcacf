"""A script around kpt: `kpt pkg get` for each package, values written into it, `kpt fn render` with an executable."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.beside.fleet.place import LABEL, RECEIVERS, Cluster, Place
from benchmarks.scale.world import INJECTED, PACKAGES

_CONTEXT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: {package}
  cluster: {cluster}
"""


_CLUSTER = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: {cluster}
"""


@dataclass(frozen=True)
class Kpt:
    """`kpt pkg get` once for each package of each cluster, and `kpt fn render` in every run.

    `by_cluster` merges all packages of a cluster into one package, which one process renders.
    """

    tool: str
    set_labels: str
    by_cluster: bool

    def prepare(self, place: Place) -> None:
        """Create a catalog whose pipelines set the label by an executable. The original functions are containers."""
        catalog = _catalog(place)
        place.run("git", "clone", "--quiet", "--branch=ghost/v1", str(place.world / "catalog.git"), str(catalog))
        for file in catalog.rglob("Kptfile"):
            file.write_text(self._without_containers(file, root=file.parent.parent == catalog))
        place.run("git", "commit", "--quiet", "--all", "--message", "programs", folder=catalog)
        for package in PACKAGES:
            place.run("git", "tag", "--force", f"{package}/v1", folder=catalog)

    def _without_containers(self, file: Path, *, root: bool) -> str:
        kptfile = yaml.safe_load(file.read_text())
        labels = {"exec": self.set_labels, "configMap": dict([LABEL])}
        return yaml.safe_dump({**kptfile, "pipeline": {"mutators": [labels] if root else []}}, sort_keys=False)

    def take_values(self, place: Place) -> None:
        """Write the object of each region to the folder of the script."""
        for region in range(place.sizes.regions):
            (place.folder / "values" / str(region)).mkdir(parents=True, exist_ok=True)
            for package in INJECTED:
                _values(place, region, package).write_text(place.injected(package, region))

    def render(self, place: Place, cluster: Cluster) -> None:
        """Get the missing packages, write their values, and render them."""
        tree = place.tree(cluster)
        for package in PACKAGES:
            self._fill(place, cluster, package)
        if self.by_cluster:
            (tree / "Kptfile").write_text(_CLUSTER.format(cluster=cluster.name))
        for folder in [tree] if self.by_cluster else [tree / package for package in PACKAGES]:
            place.run(self.tool, "fn", "render", str(folder), "--allow-exec")

    def _fill(self, place: Place, cluster: Cluster, package: str) -> None:
        folder = place.tree(cluster) / package
        if not folder.exists():
            place.run(self.tool, "pkg", "get", f"file://{_catalog(place)}/{package}@v1", str(folder))
        (folder / "package-context.yaml").write_text(_CONTEXT.format(package=package, cluster=cluster.name))
        if package in INJECTED:
            shutil.copyfile(_values(place, cluster.region, package), folder / f"{RECEIVERS[package]}.yaml")


def _catalog(place: Place) -> Path:
    return place.folder / "catalog.git"


def _values(place: Place, region: int, package: str) -> Path:
    return place.folder / "values" / str(region) / f"{package}.yaml"
