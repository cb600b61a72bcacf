"""The one ordering: every layer that may give an option, lowest first (greenhouse 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from reconciler.krm.findings import Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.fields import dotted
from reconciler.rules.presets.model import Definition, Entries, Entry, PluginOverride, Source
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True)
class Layer:
    """One step of the ladder: its id as status files and explanations name it, and where its options stand."""

    id: str
    source: str


# greenhouse 4.2: who wants another order changes it here, and nowhere else
LAYERS: Final = (
    Layer("definition-default", "options[].default of the plugin definition"),
    Layer("default-generic", "PluginOverrides with mode Default, for all"),
    Layer("default-cluster", "PluginOverrides with mode Default, for clusters"),
    Layer("default-definition", "PluginOverrides with mode Default, for plugin definitions"),
    Layer("default-cluster-definition", "PluginOverrides with mode Default, for clusters and plugin definitions"),
    Layer("preset", "spec.plugin.optionValues of the PluginPreset"),
    Layer("plugin", "spec.optionValues of a Plugin without a preset"),
    Layer("organization", "spec.pluginOverrides of the Organization"),
    Layer("override-generic", "PluginOverrides, for all"),
    Layer("cluster", "spec.pluginOverrides of the Cluster"),
    Layer("override-cluster", "PluginOverrides, for clusters"),
    Layer("override-definition", "PluginOverrides, for plugin definitions"),
    Layer("override-cluster-definition", "PluginOverrides, for clusters and plugin definitions"),
    Layer("preset-cluster", "spec.clusterOptionOverrides of the PluginPreset"),
    Layer("injected", "global.greenhouse.* of the reconciler"),
)
DEFAULTS, PRESET_OPTIONS, PLUGIN_OPTIONS, ORGANIZATION_OPTIONS = (
    "definition-default",
    "preset",
    "plugin",
    "organization",
)
CLUSTER_OPTIONS, PRESET_CLUSTER_OPTIONS, INJECTED = "cluster", "preset-cluster", "injected"
RANK: Final[Mapping[str, int]] = {layer.id: rank for rank, layer in enumerate(LAYERS)}
# whoever writes these knows the definition, and is told of an option that it does not declare (greenhouse 6)
KNOWING_THE_DEFINITION: Final = frozenset({
    PRESET_OPTIONS, PLUGIN_OPTIONS, PRESET_CLUSTER_OPTIONS, "default-definition", "default-cluster-definition",
    "override-definition", "override-cluster-definition",
})  # fmt: skip
NOT_OVERRIDES: Final = frozenset({DEFAULTS, PRESET_OPTIONS, PLUGIN_OPTIONS, INJECTED})
"""What every Plugin has; the other layers are told as the overrides that were applied to it (greenhouse 13)."""


@dataclass(frozen=True, eq=False)
class Statement:
    """What one entry of one layer says of an option."""

    layer: str
    one: ConfigObject
    source: Source
    path: Path

    @property
    def by(self) -> ObjectKey:
        """The object that says it."""
        return self.one.key

    @property
    def field(self) -> str:
        """The field of the object that says it."""
        return dotted(self.path)

    @property
    def where(self) -> Where:
        """The place of that field."""
        return self.one.where_at(self.path)

    def __str__(self) -> str:
        return f"{self.by} ({self.field} at {self.one.file}:{self.one.document.line_of(self.path)})"


@dataclass(frozen=True, eq=False)
class Contributor:
    """A list of options of one object, at its layer; `priority` only orders those of one layer."""

    layer: str
    one: ConfigObject
    options: Entries
    priority: int = 0
    created: str = ""

    @cached_property
    def statements(self) -> Sequence[tuple[str, Statement]]:
        """What it says of each option; the same for every Plugin of a fleet."""
        entries = self.options.entries
        return [(entry.name, Statement(self.layer, self.one, entry.source, entry.path)) for entry in entries]

    @cached_property
    def order(self) -> tuple[int, int, str, str]:
        """When it is applied: from what its object says, and never from where that stands (greenhouse 4.4)."""
        return RANK[self.layer], self.priority, self.created, self.one.key.name


def layer_of(override: PluginOverride) -> str:
    """Return the layer that a PluginOverride is on, by its mode and by what it is for."""
    mode = "default" if override.mode == "Default" else "override"
    parts = [
        name
        for name, is_for in (("cluster", not override.clusters.is_for_all), ("definition", bool(override.definitions)))
        if is_for
    ]
    return "-".join((mode, *(parts or ["generic"])))


def of_definition(definition: Definition) -> Contributor:
    """Return the lowest layer: the defaults that a definition has."""
    entries = (
        Entry(option.name, option.default, (*option.path, "default"))
        for option in definition.options.values()
        if option.default is not None
    )
    return Contributor(DEFAULTS, definition.one, Entries(tuple(entries)))


def of_override(override: PluginOverride) -> Contributor:
    """Return what a PluginOverride contributes, where it is for a Plugin."""
    created = override.one.data["metadata"].get("creationTimestamp")
    return Contributor(
        layer_of(override), override.one, override.options, override.priority,
        created if isinstance(created, str) else "",
    )  # fmt: skip


def stacked(contributors: Iterable[Contributor]) -> Mapping[str, list[Statement]]:
    """Return all that is said of each option, in the order in which it is applied: the last one wins, whole."""
    found: dict[str, list[Statement]] = {}
    for one in sorted(contributors, key=lambda each: each.order):
        for name, statement in one.statements:
            found.setdefault(name, []).append(statement)
    return found
