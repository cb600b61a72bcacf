"""Compares the content of target branches between the programs."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from benchmarks.beside.fleet.place import LABEL, Cluster, Place
from benchmarks.scale.world import CHANGED_REGION, PACKAGES

CONTEXT = "package-context"
"""The ConfigMap with the cluster's name that kustomize makes; elsewhere that one is for local use."""
_LOCAL = "config.kubernetes.io/local-config"


@dataclass
class Outputs:
    """The deployed objects by cluster, package and kind, and the errors."""

    objects: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    unlabelled: int = 0
    unnamed: int = 0
    stale: int = 0

    def describe(self, ours: Outputs) -> str:
        """Return a summary of the objects and errors, compared with the objects of the service."""
        missing, more = (ours.objects - self.objects).total(), (self.objects - ours.objects).total()
        packages = len({(cluster, package) for cluster, package, _ in self.objects})
        return (
            f"{self.objects.total():,} objects in {packages:,} packages ({missing} of ours missing, {more} more), "
            f"{self.unlabelled} without the label; {self.unnamed} packages without the cluster's name; "
            f"{self.stale} clusters with a wrong value"
        )


def outputs_of(place: Place) -> Outputs:
    """Read the branches of all clusters after the change of one region's object."""
    outputs = Outputs()
    for cluster in place.clusters():
        files = dict(_files(place, cluster))
        for package in PACKAGES:
            own = {path: text for path, text in files.items() if path.startswith(f"{package}/")}
            _count(outputs, cluster, package, own)
        value = any("edge-second" in text for path, text in files.items() if path.startswith("gke/"))
        outputs.stale += value != (cluster.region == CHANGED_REGION)
    return outputs


def _count(outputs: Outputs, cluster: Cluster, package: str, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        for item in yaml.load_all(text, yaml.CSafeLoader) if path.endswith(".yaml") else ():
            if is_deployed(item) and item["metadata"]["name"] != CONTEXT:
                outputs.objects[cluster.name, package, item["kind"]] += 1
                key, value = LABEL
                outputs.unlabelled += item["metadata"].get("labels", {}).get(key) != value
    outputs.unnamed += not any(f"cluster: {cluster.name}" in text for text in files.values())


def is_deployed(value: Any) -> bool:
    """Return whether a document of a package is an object for a cluster."""
    return bool(value) and (value["metadata"].get("annotations") or {}).get(_LOCAL) != "true"


def _files(place: Place, cluster: Cluster) -> Iterator[tuple[str, str]]:
    archive = subprocess.check_output(["git", "archive", cluster.branch], cwd=place.remote(cluster))
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            if content := files.extractfile(member) if member.isfile() else None:
                yield member.name, content.read().decode()
