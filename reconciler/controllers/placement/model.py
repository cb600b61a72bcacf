"""Values of placement: propagation policies, resources that go to clusters, and the controller's inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.selection import ClusterSelection
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.results import PackageOwner
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey

KUBEADMIRAL_GROUP = "core.kubeadmiral.io"
KUBEADMIRAL_API_VERSION = f"{KUBEADMIRAL_GROUP}/v1alpha1"
PROPAGATION_POLICY_KIND = "PropagationPolicy"
CLUSTER_PROPAGATION_POLICY_KIND = "ClusterPropagationPolicy"
OWNER_GROUP = "reconciler.dev"
OWNER_API_VERSION = f"{OWNER_GROUP}/v1alpha1"
OWNER_KIND = "Placement"
CLUSTER_SCOPED_NAMESPACE = "_cluster"


class PlacementState(Protocol):
    """The placed resources on clusters, according to the recorded state of the targets."""

    def find_clusters_by_owner(self) -> Mapping[ObjectKey, Collection[str]]:
        """Return for each owner of placed resources the clusters that have its package now."""
        ...

    def read_last_draft(self, cluster: str, package: str) -> FileTree | None:
        """Return the source files of the last draft of a package before local changes; None if they are unknown."""
        ...


@dataclass(frozen=True)
class PlacementInputs:
    """Inputs of the controller in addition to the catalog and the clusters.

    `held_counts` is, by owner of packages whose deletion was held before, their number at that time. `engine` changes
    when the rendering may change.
    """

    state: PlacementState
    max_delete_percent: int = 30
    engine: str = ""
    held_counts: Mapping[ObjectKey, Mapping[PackageLocation, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PropagationPolicy:
    """A valid policy: the clusters that it selects, and the deletions that it acknowledges."""

    config_object: ConfigObject
    targets: ClusterSelection
    acknowledged_hashes: frozenset[str] = frozenset()

    @property
    def key(self) -> ObjectKey:
        """The policy's identity."""
        return self.config_object.key


@dataclass(frozen=True)
class PlacementResource:
    """A resource with a placement, and the file that is written for it.

    Attributes:
        namespace: The namespace of its package.
        clusters: None while the clusters cannot be determined; the resource then stays where it is.
        policy: The policy that it names, if any; the policy is valid if `clusters` is known.
        unknown_clusters: Names without a cluster in its placement; one of them may mean a cluster that has the
            resource.
    """

    config_object: ConfigObject
    namespace: str
    file: File
    clusters: frozenset[str] | None = None
    policy: ObjectKey | None = None
    unknown_clusters: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """The resource's identity."""
        return self.config_object.key


@dataclass(frozen=True)
class PlacementResources:
    """The resources of a config that go to clusters, in the order of their identities, and findings about others.

    `ambiguous` are objects that are defined twice or would share a file; existing files of them are kept unchanged.
    `named_policies` are all policies that a resource names.
    """

    resources: tuple[PlacementResource, ...] = ()
    ambiguous: frozenset[ObjectKey] = frozenset()
    named_policies: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()


def build_placement_owner(namespace: str) -> PackageOwner:
    """Return the owner of the resources of a namespace, which is equal on all clusters."""
    return PackageOwner(ObjectKey(OWNER_GROUP, OWNER_KIND, "", namespace), OWNER_API_VERSION)


def build_package_path(namespace: str) -> str:
    """Return the path of the package of a namespace."""
    return f"resources/{namespace}"
