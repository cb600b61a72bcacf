"""Test environment of the placement controller: a small fleet, resources with placements, and branches in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.placement.controller import place_resources
from reconciler.controllers.placement.model import PlacementInputs
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import ControllerResult, GeneratedSource, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey

POLICY_LABEL = "kubeadmiral.io/propagation-policy-name"
CLUSTER_POLICY_LABEL = "kubeadmiral.io/cluster-propagation-policy-name"
CLUSTERS = "reconciler.dev/clusters"
UNREADABLE = "a: ]\n"


def build_cluster(name: str, labels: str = "{}") -> str:
    metadata = f"{{name: {name}, namespace: acme, labels: {labels}}}"
    return f"apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {metadata}\n"


FLEET = {
    "fleet/east.yaml": build_cluster("east", "{tier: edge, zone: e}"),
    "fleet/north.yaml": build_cluster("north", "{tier: core, zone: n}"),
    "fleet/west.yaml": build_cluster("west", "{tier: edge, zone: w}"),
}
ALL = ["east", "north", "west"]


def build_config_map(
    name: str = "tuning",
    namespace: str = "ferry",
    *,
    clusters: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    kind: str = "v1 ConfigMap",
) -> str:
    """Return a resource. `clusters` is its annotation; the texts are written unchanged."""
    annotations = {**(annotations or {}), **({} if clusters is None else {CLUSTERS: clusters})}
    api_version, kind = kind.split()
    lines = [f"apiVersion: {api_version}", f"kind: {kind}", "metadata:", f"  name: {name}"]
    lines += [f"  namespace: {namespace}"] if namespace else []
    lines += [f"  labels: {_format_flow_mapping(labels)}"] if labels else []
    lines += [f"  annotations: {_format_flow_mapping(annotations)}"] if annotations else []
    return "\n".join([*lines, "data: {size: '4'}  # as measured", ""])


def _format_flow_mapping(entries: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"


def build_policy(
    spec: str = "{}", name: str = "edge", namespace: str = "ferry", *, kind: str = "PropagationPolicy", ack: str = ""
) -> str:
    annotations = f", annotations: {{reconciler.dev/ack-deletions: '{ack}'}}" if ack else ""
    where = f", namespace: {namespace}" if namespace else ""
    return (
        f"apiVersion: core.kubeadmiral.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}{where}{annotations}}}\n"
        f"spec: {spec}\n"
    )


def build_cluster_policy(spec: str = "{}", name: str = "edge", *, ack: str = "") -> str:
    return build_policy(spec, name, "", kind="ClusterPropagationPolicy", ack=ack)


def build_policy_label(name: str = "edge") -> dict[str, str]:
    return {POLICY_LABEL: name}


@dataclass
class FakeBranches:
    """Published packages as trees by cluster and package. It records the packages that the controller reads.

    The packages of `deleting_clusters` are being deleted.
    """

    packages: Mapping[tuple[str, str], FileTree] = field(default_factory=dict)
    requested: list[tuple[str, str]] = field(default_factory=list)
    unreadable_clusters: Collection[str] = ()
    deleting_clusters: Collection[str] = ()
    has_complete_config: bool = True

    @classmethod
    def of(cls, result: ControllerResult) -> FakeBranches:
        """Return branches on which all packages of a result are published."""
        return cls(
            {(variant.target.repository, variant.target.package): read_files(variant) for variant in result.variants}
        )

    def find_clusters_by_owner(self) -> Mapping[ObjectKey, Collection[str]]:
        mapping: dict[ObjectKey, list[str]] = {}
        for name, package in self.packages:
            if name in self.deleting_clusters:
                continue
            owner = ObjectKey("reconciler.dev", "Placement", "", package.rpartition("/")[2])
            mapping.setdefault(owner, []).append(name)
        return mapping

    def is_config_complete(self, cluster: str, package: str) -> bool:
        return self.has_complete_config

    def read_last_draft(self, cluster: str, package: str) -> FileTree | None:
        self.requested.append((cluster, package))
        return None if cluster in self.unreadable_clusters else self.packages.get((cluster, package))


def read_files(variant: Variant) -> FileTree:
    assert isinstance(variant.source, GeneratedSource)
    return variant.source.files


def build_catalog(files: Mapping[str, str]) -> Catalog:
    return read_catalog(FileTree({path: File(text.encode()) for path, text in files.items()}))


def run_controller(
    files: Mapping[str, str],
    branches: FakeBranches | None = None,
    fleet: Mapping[str, str] = FLEET,
    held: Mapping[ObjectKey, Mapping[PackageLocation, int]] | None = None,
) -> ControllerResult:
    catalog = build_catalog({**fleet, **files})
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    branches = branches or FakeBranches()
    branches.has_complete_config = catalog.is_complete
    return place_resources(catalog, inventory, PlacementInputs(branches, 30, "engine-1", held or {}))


def build_single_file(*texts: str) -> dict[str, str]:
    return {"app.yaml": "---\n".join(texts)}


def list_files(result: ControllerResult) -> dict[str, list[str]]:
    """Return the files of each cluster, with their packages."""
    mapping: dict[str, list[str]] = {}
    for variant in result.variants:
        package = variant.target.package.removeprefix("resources/")
        mapping.setdefault(variant.target.repository, []).extend(f"{package}/{path}" for path in read_files(variant))
    return mapping


def list_clusters(result: ControllerResult) -> list[str]:
    return [variant.target.repository for variant in result.variants]


def read_content(result: ControllerResult, name: str, path: str) -> str:
    """Return the content of a file on a cluster."""
    package, _, file = path.rpartition("/")
    (variant,) = (item for item in result.variants if item.target.repository == name and item.target.package == package)
    return read_files(variant)[file].data.decode()


def list_codes(result: ControllerResult) -> list[str]:
    return [item.code for item in result.findings]


def find_finding(result: ControllerResult, code: str) -> Finding:
    (item,) = (entry for entry in result.findings if entry.code == code)
    return item
