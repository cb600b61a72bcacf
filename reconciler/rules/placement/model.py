"""Propagation policies, and resources that go to clusters, as values (design 10.16, 10.32)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.model import Targets
from reconciler.rules.guards import Unit
from reconciler.rules.variant import Owner
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import File, FileTree

GROUP = "core.kubeadmiral.io"
API_VERSION = f"{GROUP}/v1alpha1"
NAMESPACED_KIND = "PropagationPolicy"
CLUSTER_KIND = "ClusterPropagationPolicy"
OWNER_GROUP = "reconciler.dev"
OWNER_API_VERSION = f"{OWNER_GROUP}/v1alpha1"
OWNER_KIND = "Placement"
NO_NAMESPACE = "_cluster"


class Before(Protocol):
    """What clusters have of placed resources, by the state of their branches."""

    def places(self) -> Mapping[ObjectKey, Collection[str]]:
        """Return for each owner of placed resources the clusters that have its package now."""
        ...

    def earlier(self, cluster: str, package: str) -> FileTree | None:
        """Return the source of the last offer of a package as it came, None if that is not known."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What the room needs besides the catalog and the inventory.

    `held` says by owner of packages that were held before how many there were then; `engine` changes when rendering
    may.
    """

    before: Before
    max_delete_percent: int = 30
    engine: str = ""
    held: Mapping[ObjectKey, Mapping[Unit, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PropagationPolicy:
    """A sound policy: which clusters it chooses, and which deletions its author acknowledges."""

    one: ConfigObject
    targets: Targets
    acknowledged: frozenset[str] = frozenset()

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        return self.one.key


@dataclass(frozen=True)
class Resource:
    """A resource that says where it goes, as the file that it makes there.

    `namespace` is that of its package. `clusters` is None where nobody can tell now where it goes: it stays where it
    is. `policy` is the one that it names, if any, which is sound where its clusters are known. `unknown` are the names
    of no cluster that it, or its policy, has: one of them may be meant for a cluster that has the resource.
    """

    one: ConfigObject
    namespace: str
    file: File
    clusters: frozenset[str] | None = None
    policy: ObjectKey | None = None
    unknown: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        return self.one.key


@dataclass(frozen=True)
class Resources:
    """The resources of a config that go to clusters, in the order of their identities, and what is wrong with others.

    `doubtful` are objects that stand twice or would share a file: where they stand, they stay to the byte. `named` are
    the policies that any of all these names.
    """

    found: tuple[Resource, ...] = ()
    doubtful: frozenset[ObjectKey] = frozenset()
    named: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()


def owner_of(namespace: str) -> Owner:
    """Return the owner of the resources of a namespace, the same on every cluster (design 10.16)."""
    return Owner(ObjectKey(OWNER_GROUP, OWNER_KIND, "", namespace), OWNER_API_VERSION)


def package_of(namespace: str) -> str:
    """Return the path of the package of a namespace (design 3)."""
    return f"resources/{namespace}"
