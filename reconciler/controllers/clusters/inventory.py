"""The cluster inventory: all clusters of the fleet with their labels, read from Repositories and cluster objects.

The module also reads the Kubernetes version of each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.api.manifest import KUBERNETES_VERSION_ANNOTATION
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.repositories import Repositories
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.names import validate_name_segment
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease, parse_kubernetes_release
from reconciler.lazy_dataclasses import dataclass, field

CLUSTER_LABEL = "greenhouse.sap/cluster"
_REPOSITORY = (PORCH_GROUP, "Repository")
_FEDERATED = ("core.kubeadmiral.io", "FederatedCluster")
_CLUSTER = ("greenhouse.sap", "Cluster")
# Merge labels in this order, so that labels of a Cluster override labels of a FederatedCluster or a Repository.
CLUSTER_KINDS = (_REPOSITORY, _FEDERATED, _CLUSTER)


def read_cluster_labels(objects: Mapping[ObjectKey, ConfigObject]) -> Mapping[str, Mapping[str, str]]:
    """Return the labels of each cluster or Repository by name.

    The labels of a cluster come from all objects that describe the cluster, including invalid objects.
    """
    by_kind: dict[tuple[str, str], list[tuple[str, Mapping[str, str]]]] = {kind: [] for kind in CLUSTER_KINDS}
    for key, manifest in objects.items():
        if (key.group, key.kind) in by_kind:
            by_kind[key.group, key.kind].append((key.name, manifest.labels))
    labels: dict[str, dict[str, str]] = {}
    for named_labels in by_kind.values():
        for name, object_labels in named_labels:
            labels.setdefault(name, {CLUSTER_LABEL: name}).update(object_labels)
    return labels


@dataclass(frozen=True)
class ClusterInventory:
    """All clusters of the config, sorted by name.

    Attributes:
        target_keys: Maps each cluster name to the key of the object that defines the target branch of the cluster. The
            object is the Repository of the cluster. If the cluster has no Repository, the object is the Cluster or
            FederatedCluster, and the target branch is in the fleet repository.
        conflicts: Maps the name of each cluster that two objects of the same kind define to an error. The daemon must
            not write to the targets of these clusters.
        uncertain_names: Names of invalid Repositories and of objects that are defined twice. Each of these objects may
            define a cluster. Therefore, the packages of a cluster with such a name must not be deleted.
        invalid_objects: Objects whose name is not a valid cluster name. The daemon must not write to the targets of
            these objects.
    """

    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    target_keys: Mapping[str, ObjectKey] = field(default_factory=dict)
    conflicts: Mapping[str, Finding] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    uncertain_names: frozenset[str] = frozenset()
    invalid_objects: Mapping[ObjectKey, Finding] = field(default_factory=dict)


def read_inventory(catalog: Catalog, repositories: Repositories) -> ClusterInventory:
    """Return all clusters. The labels of a cluster are merged from all objects that define the cluster.

    An invalid Repository can be the target of the cluster with the same name. Therefore, the fleet repository does not
    become the target of this cluster.
    """
    objects_by_name: dict[str, list[ConfigObject]] = {}
    findings: dict[ObjectKey, Finding] = {}
    for manifest in _list_cluster_objects(catalog, repositories):
        if error := validate_name_segment(manifest.key.name):
            message = f"metadata.name is not a valid cluster name: {error}"
            findings[manifest.key] = ControllerCodes.NAME_NOT_USABLE.finding(
                message, manifest.location_of(("metadata", "name"))
            )
        else:
            objects_by_name.setdefault(manifest.key.name, []).append(manifest)
    uncertain = _find_uncertain_repositories(catalog, repositories)
    names = sorted(objects_by_name)
    return ClusterInventory(
        {name: Cluster(name, _merge_labels(name, objects_by_name[name])) for name in names},
        {name: _choose_target_key(objects_by_name[name], uncertain.get(name)) for name in names},
        {name: finding for name in names if (finding := _find_conflict(name, objects_by_name[name]))},
        tuple(findings.values()),
        frozenset(uncertain) | {key.name for key in catalog.duplicates if (key.group, key.kind) in CLUSTER_KINDS},
        findings,
    )


def _list_cluster_objects(catalog: Catalog, repositories: Repositories) -> Iterator[ConfigObject]:
    """Yield the objects that define clusters. Labels of a later object override labels of an earlier object.

    If several objects of one kind have the same name, the first object in the catalog is yielded last, so that its
    labels are used.
    """
    for group, kind in CLUSTER_KINDS:
        for manifest in reversed(catalog.objects_of_kind(group, kind)):
            if (group, kind) != _REPOSITORY or _is_deployment(manifest, repositories):
                yield manifest


def _is_deployment(manifest: ConfigObject, repositories: Repositories) -> bool:
    repository = repositories.get((manifest.key.namespace, manifest.key.name))
    return repository is not None and repository.deployment


def _find_uncertain_repositories(catalog: Catalog, repositories: Repositories) -> Mapping[str, ObjectKey]:
    """Map names to the keys of Repositories that are invalid or defined twice.

    Each of these Repositories may define a cluster that has the name of the Repository.
    """
    duplicates = [key for key in catalog.duplicates if (key.group, key.kind) == _REPOSITORY]
    unreadable = [
        manifest.key
        for manifest in catalog.objects_of_kind(*_REPOSITORY)
        if (manifest.key.namespace, manifest.key.name) not in repositories
    ]
    return {key.name: key for key in sorted((*duplicates, *unreadable), reverse=True)}


def _merge_labels(name: str, objects: Iterable[ConfigObject]) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for manifest in objects:
        labels.update(manifest.labels)
    # Add the cluster name as a label, as Greenhouse does in the API server. Selectors use the label, but config files
    # do not contain it.
    return {**labels, CLUSTER_LABEL: name}


def _choose_target_key(objects: Sequence[ConfigObject], uncertain: ObjectKey | None) -> ObjectKey:
    repositories, clusters, federated = (
        sorted(_filter_keys(objects, kind)) for kind in (_REPOSITORY, _CLUSTER, _FEDERATED)
    )
    return next(iter((*repositories, *filter(None, [uncertain]), *clusters, *federated)))


def _filter_keys(objects: Iterable[ConfigObject], kind: tuple[str, str]) -> list[ObjectKey]:
    return [manifest.key for manifest in objects if (manifest.key.group, manifest.key.kind) == kind]


def _find_conflict(name: str, objects: Sequence[ConfigObject]) -> Finding | None:
    """Return an error if two Clusters or two FederatedClusters define the cluster `name`. Otherwise, return None.

    This function does not check Repositories, because the inventory does not contain their branches. Planning reports
    conflicts between Repositories.
    """
    for kind in (_CLUSTER, _FEDERATED):
        duplicates = sorted(
            (manifest for manifest in objects if (manifest.key.group, manifest.key.kind) == kind),
            key=lambda manifest: manifest.key,
        )
        if len(duplicates) > 1:
            locations = ", ".join(
                f"{manifest.key} at {manifest.file}:{manifest.document.line}" for manifest in duplicates
            )
            message = f'the cluster "{name}" must be defined by one {kind[1]}, not by {len(duplicates)}: {locations}'
            return ControllerCodes.DESTINATION_CONFLICT.finding(message, duplicates[0].location)
    return None


@dataclass(frozen=True)
class ClusterVersions:
    """Kubernetes versions by cluster name. A cluster without a valid version annotation is not included."""

    by_cluster: Mapping[str, KubernetesRelease] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class KnownClusters:
    """All clusters, the source locations of their objects in the config, and their Kubernetes versions.

    The keys of `clusters` and `locations` are cluster names.
    """

    clusters: Mapping[str, Cluster]
    locations: Mapping[str, SourceLocation]
    versions: ClusterVersions


def read_known_clusters(catalog: Catalog, inventory: ClusterInventory) -> KnownClusters:
    """Return all clusters, the source locations of their objects, and their Kubernetes versions."""
    manifests = ((name, catalog.objects.get(key)) for name, key in inventory.target_keys.items())
    locations = {name: manifest.location for name, manifest in manifests if manifest}
    return KnownClusters(inventory.clusters, locations, read_cluster_versions(catalog, inventory))


def read_cluster_versions(catalog: Catalog, inventory: ClusterInventory) -> ClusterVersions:
    """Return the Kubernetes version of each cluster from the annotation `reconciler.dev/kubernetes-version`.

    The annotation of a Cluster overrides the annotation of a FederatedCluster. Both override the annotation of a
    Repository.
    """
    versions: dict[str, KubernetesRelease] = {}
    findings = []
    for group, kind in CLUSTER_KINDS:
        for manifest in catalog.objects_of_kind(group, kind):
            text = manifest.annotations.get(KUBERNETES_VERSION_ANNOTATION)
            if text is None or manifest.key.name not in inventory.clusters:
                continue
            release = parse_kubernetes_release(text)
            if release:
                versions[manifest.key.name] = release
            else:
                message = (
                    f"metadata.annotations.{KUBERNETES_VERSION_ANNOTATION} must be a Kubernetes version such as"
                    f' "1.31", but is {quote_value(text)}'
                )
                location = manifest.location_of(("metadata", "annotations", KUBERNETES_VERSION_ANNOTATION))
                findings.append(ControllerCodes.KUBERNETES_VERSION_INVALID.finding(message, location))
    return ClusterVersions(versions, tuple(findings))
