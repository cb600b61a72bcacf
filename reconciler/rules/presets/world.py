"""All that presets share: definitions, overrides, and the clusters of organizations, read once (greenhouse 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.codes import OVERRIDE_UNUSED
from reconciler.rules.presets.codes import OVERRIDE_DEFINITION_UNKNOWN
from reconciler.rules.presets.layers import (
    CLUSTER_OPTIONS,
    ORGANIZATION_OPTIONS,
    Contributor,
    of_definition,
    of_override,
)
from reconciler.rules.presets.memory import Memory
from reconciler.rules.presets.model import (
    CLUSTER,
    DEFINITION_KINDS,
    GROUP,
    ORGANIZATION,
    OVERRIDE,
    Definition,
    DefinitionRef,
    PluginOverride,
)
from reconciler.rules.presets.read_definition import read_definition
from reconciler.rules.presets.read_override import read_override, read_own_overrides
from reconciler.rules.presets.selection import Fleet, fleet_of, is_for_cluster, override_cluster_findings
from reconciler.snapshot.catalog import Catalog, ConfigObject

_OWN_LAYERS: Final = {ORGANIZATION: ORGANIZATION_OPTIONS, CLUSTER: CLUSTER_OPTIONS}


@dataclass(frozen=True, eq=False)
class Usable:
    """A sound definition, and the lowest layer that it makes."""

    definition: Definition
    defaults: Contributor


@dataclass(frozen=True, eq=False)
class Override:
    """A PluginOverride, and the layer that it makes."""

    read: PluginOverride
    contributor: Contributor


@dataclass(frozen=True, eq=False)
class World:
    """What presets and Plugins draw from, by namespace, kind and name; `present` are all definitions, usable or not."""

    catalog: Catalog
    fleet: Fleet
    definitions: Mapping[ObjectKey, Usable]
    present: frozenset[ObjectKey]
    own: Mapping[ObjectKey, Contributor]
    overrides: Mapping[str, Sequence[Override]]
    findings: tuple[Finding, ...]

    def why_not(self, key: ObjectKey) -> str:
        """Return why there is no usable definition of this identity."""
        if key in self.present:
            return f"{key} {'is invalid' if key in self.catalog.objects else 'stands twice in the config'}"
        unread = "" if self.catalog.is_whole else ", unless it is in a file that cannot be read"
        return f"{key} does not exist{unread}"

    def lists_for(self, namespace: str, cluster: str) -> Iterator[Contributor]:
        """Yield what the organization and the cluster say of all their Plugins."""
        for key in (ObjectKey(GROUP, ORGANIZATION, "", namespace), ObjectKey(GROUP, CLUSTER, namespace, cluster)):
            if key in self.own:
                yield self.own[key]

    def doubt(self, namespace: str, cluster: str) -> str:
        """Return why it is not known what the organization or the cluster says, or ""."""
        for key in (ObjectKey(GROUP, ORGANIZATION, "", namespace), ObjectKey(GROUP, CLUSTER, namespace, cluster)):
            if key in self.catalog.duplicates:
                return f"{key} stands twice in the config"
        return ""


def read_world(catalog: Catalog, inventory: Inventory, memory: Memory) -> World:
    """Return what there is, with everything that is wrong with it."""
    findings: list[Finding] = []
    definitions: dict[ObjectKey, Usable] = {}
    for one in (one for kind in DEFINITION_KINDS for one in catalog.of_kind(GROUP, kind)):
        usable, faults = memory.read(_read_usable, one)
        findings += faults
        if usable:
            definitions[DefinitionRef(one.key.kind, one.key.name).key(one.key.namespace)] = usable
    fleet = fleet_of(catalog, inventory, memory)
    own = dict(_own_overrides(catalog, memory, findings))
    present = frozenset(_definition_keys(catalog))
    overrides = _overrides(catalog, fleet, present, memory, findings)
    return World(catalog, fleet, definitions, present, own, overrides, tuple(findings))


def _read_usable(one: ConfigObject) -> tuple[Usable | None, tuple[Finding, ...]]:
    definition, faults = read_definition(one)
    return (Usable(definition, of_definition(definition)) if definition else None), faults


def _definition_keys(catalog: Catalog) -> Iterator[ObjectKey]:
    """Yield the identities of all definitions, of copies as well; a cluster-scoped one is in no namespace."""
    for key in (*catalog.objects, *catalog.duplicates):
        if key.group == GROUP and key.kind in DEFINITION_KINDS:
            yield DefinitionRef(key.kind, key.name).key(key.namespace)


def _own_overrides(
    catalog: Catalog, memory: Memory, findings: list[Finding]
) -> Iterator[tuple[ObjectKey, Contributor]]:
    for kind in _OWN_LAYERS:
        for one in catalog.of_kind(GROUP, kind):
            own, faults = memory.read(_read_own, one)
            findings += faults
            if own.options.entries or own.options.faults:
                # an Organization is cluster-scoped, whatever is written
                key = ObjectKey(GROUP, kind, "" if kind == ORGANIZATION else one.key.namespace, one.key.name)
                yield key, own


def _read_own(one: ConfigObject) -> tuple[Contributor, tuple[Finding, ...]]:
    options, faults = read_own_overrides(one)
    return Contributor(_OWN_LAYERS[one.key.kind], one, options), faults


def _overrides(
    catalog: Catalog, fleet: Fleet, present: frozenset[ObjectKey], memory: Memory, findings: list[Finding]
) -> Mapping[str, Sequence[Override]]:
    found: dict[str, list[Override]] = {}
    for one in _override_objects(catalog):
        override, faults = memory.read(_read_override, one)
        if one.key in catalog.duplicates:
            # that it stands twice is told; which of the two counts nobody knows
            override = replace(override, read=replace(override.read, sound=False))
        else:
            read = override.read
            findings += (*faults, *override_cluster_findings(read, fleet), *_unknown_definitions(read, present))
        found.setdefault(one.key.namespace, []).append(override)
    return found


def _read_override(one: ConfigObject) -> tuple[Override, tuple[Finding, ...]]:
    read, faults = read_override(one)
    return Override(read, of_override(read)), faults


def _override_objects(catalog: Catalog) -> Iterator[ConfigObject]:
    yield from catalog.of_kind(GROUP, OVERRIDE)
    for key, copies in catalog.copies.items():
        if (key.group, key.kind) == (GROUP, OVERRIDE):
            yield from copies


def _unknown_definitions(override: PluginOverride, present: frozenset[ObjectKey]) -> Iterator[Finding]:
    for index, name in enumerate(override.definitions):
        refs = [DefinitionRef(kind, name.name) for kind in DEFINITION_KINDS if name.kind in ("", kind)]
        keys = {ref.key(override.one.key.namespace) for ref in refs}
        if not keys & present:
            path: Path = ("spec", "pluginDefinitionNames", index)
            wanted = " or ".join(map(str, sorted(keys)))
            message = f'spec.pluginDefinitionNames[{index}] names "{name.name}", and there is no {wanted}'
            yield OVERRIDE_DEFINITION_UNKNOWN.finding(message, override.one.where_at(path))


class Reach:
    """Which overrides are for which Plugins; what many Plugins ask alike is worked out once."""

    def __init__(self, world: World) -> None:
        self._overrides = world.overrides
        self._on_cluster: dict[tuple[str, str], list[Override]] = {}
        self.plugins: dict[ObjectKey, int] = {}

    def overrides(self, namespace: str, ref: DefinitionRef, cluster: Cluster | None) -> list[Override]:
        """Return the overrides, sound or not, for a Plugin of a definition on a cluster, and count it for each."""
        found = self.meant(namespace, ref, cluster)
        for one in found:
            self.plugins[one.read.one.key] = self.plugins.get(one.read.one.key, 0) + 1
        return found

    def meant(self, namespace: str, ref: DefinitionRef, cluster: Cluster | None) -> list[Override]:
        """Return these overrides, and count nothing."""
        return [
            one
            for one in self._for_cluster(namespace, cluster)
            if not one.read.definitions or any(name.means(ref) for name in one.read.definitions)
        ]

    def _for_cluster(self, namespace: str, cluster: Cluster | None) -> list[Override]:
        name = cluster.name if cluster else ""
        if (namespace, name) not in self._on_cluster:
            self._on_cluster[namespace, name] = [
                one for one in self._overrides.get(namespace, ()) if _is_for(one.read, cluster)
            ]
        return self._on_cluster[namespace, name]

    def unused(self, overrides: Iterable[Override]) -> Iterator[Finding]:
        """Yield a warning for each sound override that is for no Plugin."""
        for one in overrides:
            if one.read.sound and one.read.one.key not in self.plugins:
                message = f"{one.read.one.key} applies to no Plugin: spec chooses none that exists"
                yield OVERRIDE_UNUSED.finding(message, one.read.one.where_at(("spec",)))


def _is_for(override: PluginOverride, cluster: Cluster | None) -> bool:
    return override.clusters.is_for_all or (cluster is not None and is_for_cluster(override.clusters, cluster))
