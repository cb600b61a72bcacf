"""Layers of options, lowest first, and the resolved options of a Plugin.

`LAYERS` is the only definition of the precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.plugin_presets.model import (
    LiteralValue,
    OptionEntry,
    OptionList,
    PluginDefinition,
    PluginOverride,
    SecretRef,
    ValueSource,
)
from reconciler.controllers.validation import format_path
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, emit
from reconciler.memory import cached


@dataclass(frozen=True)
class OptionLayer:
    """One layer: its id in status files and explanations, and the field with its options."""

    id: str
    source: str


# The order of this tuple is the precedence of the layers.
LAYERS: Final = (
    OptionLayer("definition-default", "options[].default of the plugin definition"),
    OptionLayer("default-generic", "PluginOverrides with mode Default, for all"),
    OptionLayer("default-cluster", "PluginOverrides with mode Default, for clusters"),
    OptionLayer("default-definition", "PluginOverrides with mode Default, for plugin definitions"),
    OptionLayer("default-cluster-definition", "PluginOverrides with mode Default, for clusters and plugin definitions"),
    OptionLayer("preset", "spec.plugin.optionValues of the PluginPreset"),
    OptionLayer("plugin", "spec.optionValues of a Plugin without a preset"),
    OptionLayer("organization", "spec.pluginOverrides of the Organization"),
    OptionLayer("override-generic", "PluginOverrides, for all"),
    OptionLayer("cluster", "spec.pluginOverrides of the Cluster"),
    OptionLayer("override-cluster", "PluginOverrides, for clusters"),
    OptionLayer("override-definition", "PluginOverrides, for plugin definitions"),
    OptionLayer("override-cluster-definition", "PluginOverrides, for clusters and plugin definitions"),
    OptionLayer("preset-cluster", "spec.clusterOptionOverrides of the PluginPreset"),
    OptionLayer("injected", "global.greenhouse.* of the reconciler"),
)
DEFAULTS_LAYER, PRESET_OPTIONS, PLUGIN_OPTIONS, ORGANIZATION_OPTIONS = (
    "definition-default",
    "preset",
    "plugin",
    "organization",
)
CLUSTER_OPTIONS, PRESET_CLUSTER_OPTIONS, INJECTED_LAYER = "cluster", "preset-cluster", "injected"
LAYER_RANK: Final[Mapping[str, int]] = {layer.id: rank for rank, layer in enumerate(LAYERS)}
# Authors of these layers know the definition. An option that it does not declare is a warning there.
DEFINITION_AWARE_LAYERS: Final = frozenset({
    PRESET_OPTIONS, PLUGIN_OPTIONS, PRESET_CLUSTER_OPTIONS, "default-definition", "default-cluster-definition",
    "override-definition", "override-cluster-definition",
})  # fmt: skip
NON_OVERRIDE_LAYERS: Final = frozenset({DEFAULTS_LAYER, PRESET_OPTIONS, PLUGIN_OPTIONS, INJECTED_LAYER})
"""Layers that every Plugin has. The other layers are reported as applied overrides."""


@dataclass(frozen=True, eq=False)
class OptionAssignment:
    """The value that one entry of one layer assigns to an option."""

    layer: str
    manifest: ConfigObject
    source: ValueSource
    path: DataPath

    @property
    def object_key(self) -> ObjectKey:
        """The object with the entry."""
        return self.manifest.key

    @property
    def field(self) -> str:
        """The path of the entry in the object."""
        return format_path(self.path)

    @property
    def location(self) -> SourceLocation:
        """The location of the entry."""
        return self.manifest.location_of(self.path)

    def __str__(self) -> str:
        return f"{self.object_key} ({self.field} at {self.manifest.file}:{self.manifest.document.find_line(self.path)})"


@dataclass(frozen=True, eq=False)
class LayerOptions:
    """A list of options of one object, on its layer. `priority` only orders lists of the same layer."""

    layer: str
    manifest: ConfigObject
    options: OptionList
    priority: int = 0
    created: str = ""

    @cached_property
    def assignments(self) -> Sequence[tuple[str, OptionAssignment]]:
        """Name and assignment of each option. They are equal for all Plugins."""
        entries = self.options.entries
        return [
            (entry.name, OptionAssignment(self.layer, self.manifest, entry.source, entry.path)) for entry in entries
        ]

    @cached_property
    def sort_key(self) -> tuple[int, int, str, str]:
        """The order of application. It depends on the object's content, and never on its file."""
        return LAYER_RANK[self.layer], self.priority, self.created, self.manifest.key.name


def get_override_layer(override: PluginOverride) -> str:
    """Return the layer of a PluginOverride, from its mode and its selectors."""
    mode = "default" if override.mode == "Default" else "override"
    parts = [
        name
        for name, is_selected in (
            ("cluster", not override.clusters.is_for_all),
            ("definition", bool(override.definitions)),
        )
        if is_selected
    ]
    return "-".join((mode, *(parts or ["generic"])))


def create_definition_layer(definition: PluginDefinition) -> LayerOptions:
    """Return the lowest layer: the default values of a definition."""
    entries = (
        OptionEntry(option.name, option.default, (*option.path, "default"))
        for option in definition.options.values()
        if option.default is not None
    )
    return LayerOptions(DEFAULTS_LAYER, definition.manifest, OptionList(tuple(entries)))


def create_override_layer(override: PluginOverride) -> LayerOptions:
    """Return the layer of a PluginOverride."""
    created = override.manifest.data["metadata"].get("creationTimestamp")
    return LayerOptions(
        get_override_layer(override), override.manifest, override.options, override.priority,
        created if isinstance(created, str) else "",
    )  # fmt: skip


def collect_assignments(layers: Iterable[LayerOptions]) -> Mapping[str, list[OptionAssignment]]:
    """Return all assignments of each option in the order of application. The last one wins completely."""
    assignments: dict[str, list[OptionAssignment]] = {}
    for layer_options in sorted(layers, key=lambda layer: layer.sort_key):
        for name, statement in layer_options.assignments:
            assignments.setdefault(name, []).append(statement)
    return assignments


@dataclass(frozen=True, eq=False)
class ResolvedOption:
    """One option of a Plugin: its value, and the assignments of all layers, lowest first.

    `is_secret`: the definition declares it as a secret, so that no value of any layer may be shown.
    """

    name: str
    source: LiteralValue | SecretRef
    assignments: tuple[OptionAssignment, ...]
    is_secret: bool = False

    @property
    def winner(self) -> OptionAssignment:
        """The effective assignment."""
        return self.assignments[-1]

    @cached_property
    def data(self) -> dict[str, Any]:
        """The entry of optionValues."""
        if isinstance(self.source, SecretRef):
            return {"name": self.name, "valueFrom": self.source.as_data()}
        return {"name": self.name, "value": self.source.value}

    @property
    def yaml_text(self) -> str:
        """The entry as YAML text, indented for the spec of a Plugin."""
        return self._formatted[0]

    @property
    def digest(self) -> str:
        """The digest of the entry."""
        return self._formatted[1]

    @cached_property
    def _formatted(self) -> tuple[str, str]:
        value = self.source.value if isinstance(self.source, LiteralValue) else None
        return _format_string_entry(self.name, value) if isinstance(value, str) else _format_entry(self.data)


# Injected options, for example the cluster name, are equal in the Plugins of all presets.
@cached(8_192)
def _format_string_entry(name: str, value: str) -> tuple[str, str]:
    return _format_entry({"name": name, "value": value})


def _format_entry(data: dict[str, Any]) -> tuple[str, str]:
    # `splitlines` would also split at other characters in a value.
    *lines, _ = emit([data]).split("\n")
    return "".join(f"  {line}\n" if line else "\n" for line in lines), compute_digest(data)


@dataclass(frozen=True, eq=False)
class OptionResolution:
    """The options of one Plugin sorted by name, and the findings. With an error the Plugin is not built.

    `applied_layers` are the lists that apply to the Plugin, lowest layer first.
    """

    options: tuple[ResolvedOption, ...] = ()
    findings: tuple[Finding, ...] = ()
    applied_layers: tuple[LayerOptions, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that prevent the Plugin."""
        return select_errors(self.findings)
