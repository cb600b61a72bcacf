"""The output of an import: config objects, packages of the catalog, and the objects that request the packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.adopt.units import Choice, Cluster
from reconciler.api.porch.package_variant import PackageVariant
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.scaffold.documents import CLUSTER_LABEL, build_set

CATALOG = "catalog"
"""The name of the Repository with the packages that an import creates."""
REVISION = "v1"

Documents = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class GeneratedPackage:
    """A PackageVariantSet or PackageVariant, which requests packages on some clusters.

    Attributes:
        name: The name of the PackageVariantSet or PackageVariant, and of its file.
        packages: The paths of the packages on the clusters.
        documents: The PackageVariantSet or PackageVariant, then policies and ConfigMaps.
        catalog_files: The files of the package in the catalog. None if the upstream exists already.
    """

    name: str
    packages: tuple[str, ...]
    clusters: tuple[str, ...]
    documents: Documents
    catalog_files: FileTree | None = None

    @property
    def owner(self) -> str:
        """The object that requests the package, as `Kind/name`."""
        return f"{self.documents[0]['kind']}/{self.name}"


@dataclass(frozen=True)
class GeneratedConfig:
    """The result of an import.

    Attributes:
        repositories: Repositories with upstream packages, besides the catalog.
        config_files: Maps paths to other files of the config folder, such as values files.
    """

    packages: tuple[GeneratedPackage, ...] = ()
    repositories: Documents = ()
    config_files: Mapping[str, bytes] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()

    @property
    def catalog(self) -> Mapping[str, FileTree]:
        """The packages of the catalog by name."""
        return {package.name: package.catalog_files for package in self.packages if package.catalog_files is not None}

    @property
    def owners(self) -> Mapping[tuple[str, str], str]:
        """Maps the cluster and the path of each package to the object that requests the package."""
        return {
            (cluster, path): package.owner
            for package in self.packages
            for cluster in package.clusters
            for path in package.packages
        }


def build_targets(
    names: Sequence[str], fleet: Iterable[Cluster], template: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], str]:
    """Return `spec.targets` for the clusters in `names`, and the reason for the choice between a label and names.

    If `names` contains all clusters of the fleet, or all clusters with a label, the target selects clusters by label.
    It then includes new clusters. Otherwise, the target lists the clusters by name.
    """
    clusters = {cluster.name: cluster.labels for cluster in fleet}
    selected = set(names)
    if selected == clusters.keys() and len(selected) > 1:
        return [_build_selector({CLUSTER_LABEL: "true"}, template)], "all clusters have the package"
    labels = sorted({pair for name in selected for pair in clusters[name].items()})
    for key, value in labels:
        with_label = {name for name, found in clusters.items() if found.get(key) == value}
        if with_label == selected and len(selected) > 1:
            reason = f"exactly the clusters with the label {key}={value} have the package"
            return [_build_selector({key: value}, template)], reason
    repositories = [{"name": name} for name in sorted(selected)]
    return [{"repositories": repositories, "template": dict(template)}], "no label selects exactly these clusters"


def _build_selector(labels: Mapping[str, str], template: Mapping[str, Any]) -> dict[str, Any]:
    return {"repositorySelector": {"matchLabels": dict(labels)}, "template": dict(template)}


def build_package_set(name: str, source: Mapping[str, Any], targets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a PackageVariantSet with these targets.

    Args:
        source: The field `upstream`, or the fields for several sources.
    """
    return build_set(name, {**source, "targets": [*targets]})


def build_variant(
    name: str, source: Mapping[str, Any], cluster: str, package: str, options: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """Return a PackageVariant that adopts the existing package.

    Args:
        source: The field `upstream`, or the fields for several sources.
        options: Other fields of the spec.
    """
    spec = {
        **source,
        "downstream": {"repo": cluster, "package": package},
        "adoptionPolicy": "adoptExisting",
        **options,
    }
    kind = PackageVariant
    return {"apiVersion": kind.api_versions[0], "kind": kind.__name__, "metadata": {"name": name}, "spec": spec}
