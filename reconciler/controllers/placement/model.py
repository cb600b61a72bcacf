"""Data types of the placement controller: propagation policies, placed resources and the controller's inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.selection import ClusterSelection
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.results import PackageOwner
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field

PROPAGATION_POLICY_KIND = "PropagationPolicy"
CLUSTER_PROPAGATION_POLICY_KIND = "ClusterPropagationPolicy"
OWNER_GROUP = "reconciler.dev"
OWNER_API_VERSION = f"{OWNER_GROUP}/v1alpha1"
OWNER_KIND = "Placement"
CLUSTER_SCOPED_NAMESPACE = "_cluster"


class PlacementState(Protocol):
    """Access to the recorded state of the targets: which clusters have packages of placed resources."""

    def find_clusters_by_owner(self) -> Mapping[ObjectKey, Collection[str]]:
        """Return a mapping from each owner of placed resources to the clusters that contain its package now."""
        ...

    def is_config_complete(self, cluster: str, package: str) -> bool:
        """Return whether the config contains all resources that may belong to a package.

        If this is false, a resource that the catalog does not contain may be in an unreadable file.
        """
        ...

    def read_last_draft(self, cluster: str, package: str) -> FileTree | None:
        """Return the files of the last draft of a package as they were rendered, without later local changes.

        Return None if the files are unknown.
        """
        ...


@dataclass(frozen=True)
class PlacementInputs:
    """Inputs of the controller in addition to the catalog and the clusters.

    Attributes:
        engine: Identifier of the rendering code. If it changes, all packages are rendered again.
        blocked_counts: For each owner, the packages whose deletion an earlier pass blocked. Each package is mapped to
            the number of packages that the owner had in that pass.
    """

    state: PlacementState
    max_delete_percent: int = 30
    engine: str = ""
    blocked_counts: Mapping[ObjectKey, Mapping[PackageLocation, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PropagationPolicy:
    """A valid propagation policy: the clusters that it selects, and the hashes of the deletions that it confirms."""

    config_object: ConfigObject
    targets: ClusterSelection
    acknowledged_hashes: frozenset[str] = frozenset()

    @property
    def key(self) -> ObjectKey:
        """The object key of the policy."""
        return self.config_object.key


@dataclass(frozen=True)
class PlacementResource:
    """A resource with a placement, and the file that is written to the clusters of the placement.

    Attributes:
        namespace: The namespace of the package that contains the resource.
        clusters: The clusters of the placement. If they cannot be determined, the value is None, and the resource is
            kept on its current clusters.
        policy: The propagation policy that a label of the resource refers to. None if no label names a policy. If
            `clusters` is known, the policy is valid.
        unknown_clusters: Names in the placement for which no cluster exists. Such a name may be the misspelled name of
            a cluster on which the resource exists now.
    """

    config_object: ConfigObject
    namespace: str
    file: File
    clusters: frozenset[str] | None = None
    policy: ObjectKey | None = None
    unknown_clusters: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """The object key of the resource."""
        return self.config_object.key


@dataclass(frozen=True)
class PlacementResources:
    """The resources of the config that are placed on clusters, sorted by key, and findings about all resources.

    `ambiguous` are the keys of objects that are defined twice, or that would be written to the same file. Their files
    on clusters are kept. `named_policies` are all propagation policies that at least one resource refers to.
    """

    resources: tuple[PlacementResource, ...] = ()
    ambiguous: frozenset[ObjectKey] = frozenset()
    named_policies: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()


def build_placement_owner(namespace: str) -> PackageOwner:
    """Return the owner of the packages of a namespace. The owner is the same on all clusters."""
    return PackageOwner(ObjectKey(OWNER_GROUP, OWNER_KIND, "", namespace), OWNER_API_VERSION)


def build_package_path(namespace: str) -> str:
    """Return the path of a namespace's package, for example `resources/default`."""
    return f"resources/{namespace}"
