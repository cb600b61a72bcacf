"""Which clusters presets and overrides are for (greenhouse 2.6, 3, design 10.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.krm.yaml import Path
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.fields import dotted
from reconciler.rules.presets.codes import OVERRIDE_CLUSTER_NOT_SELECTED, OVERRIDE_CLUSTER_UNKNOWN
from reconciler.rules.presets.memory import Memory
from reconciler.rules.presets.model import CLUSTER, GROUP, ClusterSelection, PluginOverride, Preset
from reconciler.snapshot.catalog import Catalog


@dataclass(frozen=True)
class Fleet:
    """The clusters of each organization: those with a Cluster in its namespace, by name in order.

    `doubtful` are names that may be clusters, of which not all is known: what they have is left alone (design 10.5).
    """

    by_organization: Mapping[str, Mapping[str, Cluster]]
    doubtful: frozenset[str] = frozenset()

    def of(self, namespace: str) -> Mapping[str, Cluster]:
        """Return the clusters of an organization."""
        return self.by_organization.get(namespace, {})


def fleet_of(catalog: Catalog, inventory: Inventory, memory: Memory) -> Fleet:
    """Return the clusters that presets can choose among, with the labels that they have in the whole inventory."""
    found: dict[str, dict[str, Cluster]] = {}
    for one in catalog.of_kind(GROUP, CLUSTER):
        if one.key.name in inventory.clusters:
            cluster = memory.cluster(inventory.clusters[one.key.name])
            found.setdefault(one.key.namespace, {})[one.key.name] = cluster
    return Fleet(found, inventory.doubtful)


def select_clusters(preset: Preset, fleet: Fleet) -> tuple[Cluster, ...]:
    """Return the clusters that a preset makes Plugins for, by name."""
    clusters = fleet.of(preset.key.namespace).values()
    return tuple(one for one in clusters if preset.selector.matches(one.labels))


def is_for_cluster(selection: ClusterSelection, cluster: Cluster) -> bool:
    """Tell whether an override is for a cluster; one that is ignored stays so, whatever else names it."""
    if cluster.name in selection.ignored:
        return False
    return not selection.choices or any(
        cluster.name in one.names or (one.selector is not None and one.selector.matches(cluster.labels))
        for one in selection.choices
    )


def override_cluster_findings(override: PluginOverride, fleet: Fleet) -> Iterator[Finding]:
    """Yield a warning for each name of a PluginOverride that no cluster of its organization has."""
    path: Path = ("spec", "clusterSelector")
    for name in dict.fromkeys(override.clusters.names):
        if _is_unknown(name, override.one.key.namespace, fleet):
            message = f'{dotted(path)} names "{name}", and no Cluster of {override.one.key.namespace} is called so'
            yield OVERRIDE_CLUSTER_UNKNOWN.finding(message, override.one.where_at(path))


def preset_cluster_findings(preset: Preset, selected: Mapping[str, Cluster], fleet: Fleet) -> Iterator[Finding]:
    """Yield a warning for each entry of clusterOptionOverrides that is for no Plugin of the preset."""
    for name, path in preset.cluster_paths.items():
        where, said = preset.one.where_at((*path, "clusterName")), f'{dotted(path)}.clusterName names "{name}"'
        if _is_unknown(name, preset.key.namespace, fleet):
            message = f"{said}, and no Cluster of {preset.key.namespace} is called so"
            yield OVERRIDE_CLUSTER_UNKNOWN.finding(message, where)
        elif name not in selected and name not in fleet.doubtful:
            message = f"{said}, which spec.clusterSelector does not select"
            yield OVERRIDE_CLUSTER_NOT_SELECTED.finding(message, where)


def _is_unknown(name: str, namespace: str, fleet: Fleet) -> bool:
    return name not in fleet.of(namespace) and name not in fleet.doubtful
