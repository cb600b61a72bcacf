"""Snapshot of the objects that presets share: plugin definitions, overrides, and the clusters of each organization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.api.greenhouse import (
    CLUSTER,
    DEFINITION_KINDS,
    GROUP,
    ORGANIZATION,
    OVERRIDE,
    PluginDefinitionReference,
    create_definition_key,
)
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import (
    KINDS_WITH_OPTIONS,
    OverrideLayer,
    Preset,
    UsableDefinition,
    read_definition,
    read_override,
    read_own_options,
)
from reconciler.controllers.plugin_presets.inputs import PluginPresetCache
from reconciler.controllers.plugin_presets.option_layers import LayerOptions
from reconciler.krm.field_text import format_path, suggest_name
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace


@dataclass(frozen=True)
class OrganizationClusters:
    """The clusters of each organization.

    A cluster belongs to an organization if the Cluster object is in the namespace of the organization. The outer keys
    of `by_organization` are these namespaces, and the inner keys are cluster names.

    `uncertain_names` are names of clusters that may exist: an object with this name is invalid or defined twice. The
    packages of these clusters stay unchanged.
    """

    by_organization: Mapping[str, Mapping[str, Cluster]]
    uncertain_names: frozenset[str] = frozenset()

    def get_clusters(self, namespace: str) -> Mapping[str, Cluster]:
        """Return the clusters of an organization."""
        return self.by_organization.get(namespace, {})


def find_organization_clusters(
    catalog: Catalog, inventory: ClusterInventory, cache: PluginPresetCache
) -> OrganizationClusters:
    """Return the clusters that presets can select, with their labels from the cluster inventory."""
    clusters: dict[str, dict[str, Cluster]] = {}
    for manifest in catalog.objects_of_kind(GROUP, CLUSTER):
        if manifest.key.name in inventory.clusters:
            cluster = cache.intern_cluster(inventory.clusters[manifest.key.name])
            clusters.setdefault(manifest.key.namespace, {})[manifest.key.name] = cluster
    return OrganizationClusters(clusters, inventory.uncertain_names)


def select_clusters(preset: Preset, organization_clusters: OrganizationClusters) -> tuple[Cluster, ...]:
    """Return the clusters of the preset's organization that the preset selects."""
    clusters = organization_clusters.get_clusters(preset.key.namespace).values()
    return tuple(cluster for cluster in clusters if preset.selector.matches(cluster.labels))


def check_override_clusters(override: OverrideLayer, clusters: OrganizationClusters) -> Iterator[Finding]:
    """Yield a warning for each cluster name in a PluginOverride if the organization has no cluster with this name."""
    path: DataPath = ("spec", "clusterSelector")
    namespace = override.key.namespace
    for name in dict.fromkeys(override.targets.cluster_names):
        if _is_unknown(name, namespace, clusters):
            guess = suggest_name(name, sorted(clusters.get_clusters(namespace)))
            message = (
                f'{format_path(path)} contains the cluster name "{name}", but namespace "{namespace}" has no Cluster'
                f" with this name{guess}"
            )
            yield PluginCodes.OVERRIDE_CLUSTER_UNKNOWN.finding(message, override.manifest.location_of(path))


def check_preset_clusters(
    preset: Preset, selected: Mapping[str, Cluster], clusters: OrganizationClusters
) -> Iterator[Finding]:
    """Yield a warning for each `clusterOptionOverrides` entry whose cluster is unknown or not selected."""
    indexes: dict[str, int] = {}
    for index, entry in enumerate(preset.spec.cluster_option_overrides):
        indexes.setdefault(entry.cluster_name, index)
    for name, index in indexes.items():
        path: DataPath = ("spec", "clusterOptionOverrides", index)
        location = preset.manifest.location_of((*path, "clusterName"))
        if _is_unknown(name, preset.key.namespace, clusters):
            guess = suggest_name(name, sorted(clusters.get_clusters(preset.key.namespace)))
            message = (
                f'{format_path(path)}.clusterName is "{name}", but namespace "{preset.key.namespace}" has no Cluster'
                f" with this name{guess}"
            )
            yield PluginCodes.OVERRIDE_CLUSTER_UNKNOWN.finding(message, location)
        elif name not in selected and name not in clusters.uncertain_names:
            message = (
                f'{format_path(path)} has no effect, because spec.clusterSelector does not select the cluster "{name}"'
            )
            yield PluginCodes.OVERRIDE_CLUSTER_NOT_SELECTED.finding(message, location)


def _is_unknown(name: str, namespace: str, clusters: OrganizationClusters) -> bool:
    return name not in clusters.get_clusters(namespace) and name not in clusters.uncertain_names


@dataclass(frozen=True, eq=False)
class PresetSnapshot:
    """The config objects that presets and Plugins use.

    Attributes:
        definition_keys: The identities of all plugin definitions, including invalid definitions.
        namespace_layers: The options in `pluginOverrides` of Organizations and Clusters, by object.
        overrides: The PluginOverrides by namespace.
    """

    catalog: Catalog
    clusters: OrganizationClusters
    definitions: Mapping[ObjectKey, UsableDefinition]
    definition_keys: frozenset[ObjectKey]
    namespace_layers: Mapping[ObjectKey, LayerOptions]
    overrides: Mapping[str, Sequence[OverrideLayer]]
    findings: tuple[Finding, ...]

    def explain_missing_definition(self, key: ObjectKey) -> str:
        """Return the name of a plugin definition, and the reason why it cannot be used, as a relative clause."""
        if key in self.definition_keys:
            return f"{key}, which {'is invalid' if key in self.catalog.objects else 'is defined twice in the config'}"
        suffix = "" if self.catalog.is_complete else ", unless it is in an unreadable file"
        names = [known.name for known in self.definition_keys if known._replace(name=key.name) == key]
        return f"{key}, which does not exist{suffix}{suggest_name(key.name, sorted(names))}"

    def list_namespace_layers(self, namespace: str, cluster: str) -> Iterator[LayerOptions]:
        """Yield the options in `pluginOverrides` of an Organization, and of one of its Clusters, as layers."""
        for key in (ObjectKey(GROUP, ORGANIZATION, "", namespace), ObjectKey(GROUP, CLUSTER, namespace, cluster)):
            if key in self.namespace_layers:
                yield self.namespace_layers[key]

    def explain_unknown_overrides(self, namespace: str, cluster: str) -> str:
        """Return the reason why the `pluginOverrides` of an Organization or of its Cluster are unknown.

        Return "" if both `pluginOverrides` are known.
        """
        for key in (ObjectKey(GROUP, ORGANIZATION, "", namespace), ObjectKey(GROUP, CLUSTER, namespace, cluster)):
            if key in self.catalog.duplicates:
                return f"{key} is defined twice in the config"
        return ""


def read_preset_snapshot(catalog: Catalog, inventory: ClusterInventory, cache: PluginPresetCache) -> PresetSnapshot:
    """Return the config objects that presets and Plugins use, with the findings about these objects."""
    findings: list[Finding] = []
    definitions: dict[ObjectKey, UsableDefinition] = {}
    for manifest in (manifest for kind in DEFINITION_KINDS for manifest in catalog.objects_of_kind(GROUP, kind)):
        usable, errors = cache.read(read_definition, manifest)
        findings += errors
        if usable:
            definitions[_create_definition_key(manifest.key)] = usable
    clusters = find_organization_clusters(catalog, inventory, cache)
    namespace_layers = dict(_read_namespace_layers(catalog, cache, findings))
    definition_keys = frozenset(_iterate_definition_keys(catalog))
    overrides = _read_overrides(catalog, clusters, definition_keys, cache, findings)
    return PresetSnapshot(catalog, clusters, definitions, definition_keys, namespace_layers, overrides, tuple(findings))


def _create_definition_key(key: ObjectKey) -> ObjectKey:
    """Return the identity of a definition.

    A namespace in the manifest of a ClusterPluginDefinition is ignored, because this kind has no namespaces.
    """
    return create_definition_key(key.kind, key.namespace, key.name)


def _iterate_definition_keys(catalog: Catalog) -> Iterator[ObjectKey]:
    """Yield the identities of all plugin definitions, including duplicates."""
    for key in (*catalog.objects, *catalog.duplicates):
        if key.group == GROUP and key.kind in DEFINITION_KINDS:
            yield _create_definition_key(key)


def _read_namespace_layers(
    catalog: Catalog, cache: PluginPresetCache, findings: list[Finding]
) -> Iterator[tuple[ObjectKey, LayerOptions]]:
    for kind in KINDS_WITH_OPTIONS:
        for manifest in catalog.objects_of_kind(GROUP, kind):
            layer, layer_findings = cache.read(read_own_options, manifest)
            findings += layer_findings
            if layer.assignments or layer.errors:
                # Ignore the namespace of an Organization, because Organizations are cluster-scoped.
                key = ObjectKey(GROUP, kind, "" if kind == ORGANIZATION else manifest.key.namespace, manifest.key.name)
                yield key, layer


def _read_overrides(
    catalog: Catalog,
    clusters: OrganizationClusters,
    definition_keys: frozenset[ObjectKey],
    cache: PluginPresetCache,
    findings: list[Finding],
) -> Mapping[str, Sequence[OverrideLayer]]:
    overrides: dict[str, list[OverrideLayer]] = {}
    for manifest in _iterate_override_manifests(catalog):
        override, override_findings = cache.read(read_override, manifest)
        if manifest.key in catalog.duplicates:
            # Set `is_valid` to False, because it is unknown which of the two definitions applies. The catalog reports
            # the duplicate.
            override = replace(override, is_valid=False)
        else:
            findings += (
                *override_findings,
                *check_override_clusters(override, clusters),
                *_check_definition_names(override, definition_keys),
            )
        overrides.setdefault(manifest.key.namespace, []).append(override)
    return overrides


def _iterate_override_manifests(catalog: Catalog) -> Iterator[ConfigObject]:
    yield from catalog.objects_of_kind(GROUP, OVERRIDE)
    for key, copies in catalog.copies.items():
        if (key.group, key.kind) == (GROUP, OVERRIDE):
            yield from copies


def _check_definition_names(override: OverrideLayer, definition_keys: frozenset[ObjectKey]) -> Iterator[Finding]:
    for index, text in enumerate(override.targets.plugin_definition_names):
        kind, _, name = text.rpartition("/")
        kinds = (kind,) if kind else DEFINITION_KINDS
        keys = {create_definition_key(kind, override.key.namespace, name) for kind in kinds}
        if not keys & definition_keys:
            path: DataPath = ("spec", "pluginDefinitionNames", index)
            first, *others = map(str, sorted(keys))
            missing = f"neither {first} nor {others[0]} exists" if others else f"{first} does not exist"
            message = f'spec.pluginDefinitionNames[{index}] is "{text}", but {missing}'
            yield PluginCodes.OVERRIDE_DEFINITION_UNKNOWN.finding(message, override.manifest.location_of(path))


class OverrideMatcher:
    """Finds the PluginOverrides of a Plugin, and counts the Plugins of each PluginOverride."""

    def __init__(self, snapshot: PresetSnapshot) -> None:
        self._overrides = snapshot.overrides
        self._overrides_by_cluster: dict[tuple[str, str], list[OverrideLayer]] = {}
        self.plugin_counts: dict[ObjectKey, int] = {}

    def match_and_count(
        self, namespace: str, ref: PluginDefinitionReference, cluster: Cluster | None
    ) -> list[OverrideLayer]:
        """Return all overrides that match a Plugin, including invalid overrides. Increase the Plugin count of each."""
        overrides = self.match(namespace, ref, cluster)
        for override in overrides:
            self.plugin_counts[override.key] = self.plugin_counts.get(override.key, 0) + 1
        return overrides

    def match(self, namespace: str, ref: PluginDefinitionReference, cluster: Cluster | None) -> list[OverrideLayer]:
        """Return all overrides that match a Plugin, including invalid overrides. Do not change the Plugin counts."""
        return [
            override
            for override in self._match_cluster(namespace, cluster)
            if override.targets.selects_definition(ref.kind, ref.name)
        ]

    def _match_cluster(self, namespace: str, cluster: Cluster | None) -> list[OverrideLayer]:
        key = (namespace, cluster.name if cluster else "")
        if key not in self._overrides_by_cluster:
            self._overrides_by_cluster[key] = [
                override for override in self._overrides.get(namespace, ()) if _is_override_for(override, cluster)
            ]
        return self._overrides_by_cluster[key]

    def find_unused(self, overrides: Iterable[OverrideLayer]) -> Iterator[Finding]:
        """Yield a warning for each valid override that applies to no Plugin."""
        for override in overrides:
            if override.is_valid and override.key not in self.plugin_counts:
                message = f"{override.key} has no effect, because no Plugin matches the selectors in spec"
                yield ControllerCodes.OVERRIDE_UNUSED.finding(message, override.manifest.location_of(("spec",)))


def _is_override_for(override: OverrideLayer, cluster: Cluster | None) -> bool:
    targets = override.targets
    return targets.is_for_all_clusters or (
        cluster is not None and targets.selects_cluster(cluster.name, cluster.labels)
    )
