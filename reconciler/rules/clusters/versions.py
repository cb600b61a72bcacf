"""Which release of Kubernetes each cluster runs, as far as its objects say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding, Where
from reconciler.krm.schema.api_removals import Release, read_release
from reconciler.rules.clusters.inventory import CLUSTER_KINDS, Inventory
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.codes import KUBERNETES_VERSION_INVALID
from reconciler.rules.fields import shown
from reconciler.snapshot.catalog import Catalog

VERSION_ANNOTATION = "reconciler.dev/kubernetes-version"


@dataclass(frozen=True)
class Releases:
    """The release that each cluster says it runs, by name; those that do not say are not in it."""

    known: Mapping[str, Release] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class KnownClusters:
    """The clusters that there are, where each is written, and which release each runs, as far as it says."""

    clusters: Mapping[str, Cluster]
    places: Mapping[str, Where]
    releases: Releases


def read_known_clusters(catalog: Catalog, inventory: Inventory) -> KnownClusters:
    """Return what is known of clusters beside their labels."""
    homes = ((name, catalog.objects.get(home)) for name, home in inventory.homes.items())
    places = {name: one.where for name, one in homes if one}
    return KnownClusters(inventory.clusters, places, read_releases(catalog, inventory))


def read_releases(catalog: Catalog, inventory: Inventory) -> Releases:
    """Return the releases of clusters, by an annotation of any object that speaks of them.

    As with labels, a Cluster has the last word, then a FederatedCluster, then a Repository (design 10.3).
    """
    known: dict[str, Release] = {}
    findings = []
    for group, kind in CLUSTER_KINDS:
        for one in catalog.of_kind(group, kind):
            text = one.annotations.get(VERSION_ANNOTATION)
            if text is None or one.key.name not in inventory.clusters:
                continue
            release = read_release(text)
            if release:
                known[one.key.name] = release
            else:
                message = (
                    f'metadata.annotations.{VERSION_ANNOTATION} must be a version of Kubernetes, as "1.31", not'
                    f" {shown(text)}"
                )
                where = one.where_at(("metadata", "annotations", VERSION_ANNOTATION))
                findings.append(KUBERNETES_VERSION_INVALID.finding(message, where))
    return Releases(known, tuple(findings))
