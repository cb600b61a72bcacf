"""A script around kustomize: a base for each package, a component for each region, an overlay for each variant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.beside.fleet.outputs import CONTEXT, is_deployed
from benchmarks.beside.fleet.place import LABEL, Cluster, Place
from benchmarks.scale.world import INJECTED, PACKAGES

_NAMESPACES = {"ghost": "ghost", "guestbook": "default", "tenant": "tenant-name"}
"""What the packages' own pipelines set; the other functions in them have no counterpart in a kustomization."""
_COMPONENTS = {
    "gke": """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [object.yaml]
replacements:
  - source: {kind: ConfigMap, name: gcp-context, fieldPath: data.project-id}
    targets:
      - select: {kind: Repository}
        fieldPaths: [spec.git.repo]
        options: {delimiter: /, index: 4}
""",
    "kind": """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [object.yaml]
replacements:
  - source: {kind: WorkloadCluster, name: workload-cluster, fieldPath: spec.clusterName}
    targets:
      - select: {kind: Cluster}
        fieldPaths: [metadata.name]
""",
}
_OVERLAY = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../../base/{package}]
components: {components}
labels:
  - pairs: {{{label[0]}: {label[1]}}}
    includeSelectors: true
configMapGenerator:
  - name: {context}
    literals: [cluster={cluster}]
    options: {{disableNameSuffixHash: true}}
"""


@dataclass(frozen=True)
class Kustomize:
    """`kustomize build` of each overlay, into one file for each package."""

    tool: str

    def prepare(self, place: Place) -> None:
        """Write the bases from the catalog, and the overlays."""
        base = place.folder / "base"
        place.run("git", "clone", "--quiet", "--branch=ghost/v1", str(place.world / "catalog.git"), str(base))
        for package in PACKAGES:
            (base / package / "kustomization.yaml").write_text(_base(base / package, package))
            for cluster in place.clusters():
                _write(_overlay(place, cluster, package) / "kustomization.yaml", _variant(cluster, package))

    def take_values(self, place: Place) -> None:
        """Write the component of each region, which adds its object."""
        for region in range(place.sizes.regions):
            for package in INJECTED:
                folder = place.folder / "regions" / str(region) / package
                _write(folder / "kustomization.yaml", _COMPONENTS[package])
                _write(folder / "object.yaml", place.injected(package, region))

    def render(self, place: Place, cluster: Cluster) -> None:
        """Build the overlays of a cluster with one process for each."""
        for package in PACKAGES:
            target = place.tree(cluster) / package / "manifest.yaml"
            target.parent.mkdir(exist_ok=True)
            place.run(self.tool, "build", str(_overlay(place, cluster, package)), "--output", str(target))


def _overlay(place: Place, cluster: Cluster, package: str) -> Path:
    return place.folder / "overlays" / cluster.name / package


def _variant(cluster: Cluster, package: str) -> str:
    components = f"[../../../regions/{cluster.region}/{package}]" if package in INJECTED else "[]"
    return _OVERLAY.format(package=package, components=components, label=LABEL, context=CONTEXT, cluster=cluster.name)


def _base(folder: Path, package: str) -> str:
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [*_resources(folder)],
        **({"namespace": _NAMESPACES[package]} if package in _NAMESPACES else {}),
    }  # fmt: skip
    return yaml.safe_dump(kustomization)


def _resources(folder: Path) -> Iterator[str]:
    """Yield the files with deployed objects, without the files for kpt and for local use."""
    for file in sorted(folder.rglob("*.yaml")):
        if any(map(is_deployed, yaml.safe_load_all(file.read_text()))):
            yield file.relative_to(folder).as_posix()


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
