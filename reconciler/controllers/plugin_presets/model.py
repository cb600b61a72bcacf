"""Models of PluginPresets, Plugins, plugin definitions, PluginOverrides and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import DataPath

GROUP = "greenhouse.sap"
API_VERSION = f"{GROUP}/v1alpha1"
PRESET, PLUGIN, OVERRIDE = "PluginPreset", "Plugin", "PluginOverride"
DEFINITION, CLUSTER_DEFINITION = "PluginDefinition", "ClusterPluginDefinition"
DEFINITION_KINDS = (DEFINITION, CLUSTER_DEFINITION)
ORGANIZATION, CLUSTER, TEAM = "Organization", "Cluster", "Team"
PRESET_LABEL = f"{GROUP}/pluginpreset"
DEFINITION_LABELS = {DEFINITION: f"{GROUP}/plugindefinition", CLUSTER_DEFINITION: f"{GROUP}/clusterplugindefinition"}

OptionType = Literal["string", "secret", "bool", "int", "list", "map"]
OPTION_TYPES: tuple[OptionType, ...] = ("string", "secret", "bool", "int", "list", "map")
DeletionPolicy = Literal["Delete", "Retain"]
DELETION_POLICIES: tuple[DeletionPolicy, ...] = ("Delete", "Retain")
OverrideMode = Literal["Override", "Default"]
MODES: tuple[OverrideMode, ...] = ("Override", "Default")


@dataclass(frozen=True)
class LiteralValue:
    """A literal value: any JSON value except null."""

    value: Any


@dataclass(frozen=True)
class SecretRef:
    """A reference to a key of a Secret. The Secret is never read."""

    name: str
    key: str

    def as_data(self) -> dict[str, Any]:
        """Return the reference in its canonical notation."""
        return {"secret": {"name": self.name, "key": self.key}}


@dataclass(frozen=True)
class OptionExpression:
    """A text with CEL placeholders that is evaluated for each cluster."""

    text: str


ValueSource = LiteralValue | SecretRef | OptionExpression


@dataclass(frozen=True)
class OptionEntry:
    """One option of a list, and the path of its entry in the document."""

    name: str
    source: ValueSource
    path: DataPath = ()


@dataclass(frozen=True)
class OptionList:
    """A list of options. With `errors` no Plugin that uses the list can be built. Warnings are not included."""

    entries: tuple[OptionEntry, ...] = ()
    errors: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class DefinitionRef:
    """Reference to a plugin definition."""

    kind: str
    name: str

    def build_key(self, namespace: str) -> ObjectKey:
        """Return the identity of the definition for Plugins of a namespace."""
        return ObjectKey(GROUP, self.kind, namespace if self.kind == DEFINITION else "", self.name)

    def as_data(self) -> dict[str, str]:
        """Return the reference in the notation of the API."""
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True)
class OptionDeclaration:
    """An option that a plugin definition declares. `path` is its entry there. `default` is None without a default."""

    name: str
    type: OptionType
    is_required: bool = False
    default: LiteralValue | None = None
    regex: str = ""
    path: DataPath = ()


@dataclass(frozen=True)
class PluginDefinition:
    """A valid plugin definition. `chart` is the name of its Helm chart; "" if it is only a user interface."""

    manifest: ConfigObject
    version: str
    chart: str
    options: Mapping[str, OptionDeclaration] = field(default_factory=dict)


@dataclass(frozen=True)
class WaitForEntry:
    """A Plugin that must be ready first: a Plugin by name, or the Plugin of a preset on the same cluster."""

    name: str = ""
    preset: str = ""

    def get_plugin_name(self, cluster: str) -> str:
        """Return the name of the Plugin on a cluster."""
        return self.name or format_plugin_name(self.preset, cluster)

    def as_data(self) -> dict[str, Any]:
        """Return the entry in the notation of the API."""
        return {"pluginRef": {"name": self.name} if self.name else {"pluginPreset": self.preset}}


@dataclass(frozen=True)
class PluginSpec:
    """The fields that presets and Plugins share. `copied_fields` are copied without changes."""

    definition: DefinitionRef
    options: OptionList = OptionList()
    display_name: str = ""
    release_name: str = ""
    release_namespace: str = ""
    wait_for: tuple[WaitForEntry, ...] = ()
    copied_fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """A valid PluginPreset. `cluster_options` are its clusterOptionOverrides by cluster, located at `cluster_paths`."""

    manifest: ConfigObject
    spec: PluginSpec
    selector: LabelSelector
    cluster_options: Mapping[str, OptionList] = field(default_factory=dict)
    cluster_paths: Mapping[str, DataPath] = field(default_factory=dict)
    deletion_policy: DeletionPolicy = "Delete"

    @property
    def key(self) -> ObjectKey:
        """The preset's identity."""
        return self.manifest.key


@dataclass(frozen=True)
class StandalonePlugin:
    """A valid Plugin from the config, which no preset generates."""

    manifest: ConfigObject
    spec: PluginSpec
    cluster: str = ""


@dataclass(frozen=True)
class OverrideClusterChoice:
    """One item of a PluginOverride's clusterSelector, without its ignored clusters."""

    selector: LabelSelector | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class OverrideClusterSelection:
    """The clusters of a PluginOverride: any cluster that a choice matches, except the ignored ones.

    An empty selection matches every cluster, and Plugins without a cluster.
    """

    choices: tuple[OverrideClusterChoice, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def is_for_all(self) -> bool:
        """Whether the selection is empty."""
        return not self.choices and not self.ignored

    @property
    def names(self) -> tuple[str, ...]:
        """Every cluster name in the selection."""
        return (*(name for choice in self.choices for name in choice.names), *self.ignored)


@dataclass(frozen=True)
class DefinitionNameFilter:
    """An entry of pluginDefinitionNames. Without a kind it matches definitions of both kinds."""

    name: str
    kind: str = ""

    def matches(self, ref: DefinitionRef) -> bool:
        """Return whether the entry matches a definition."""
        return ref.name == self.name and self.kind in ("", ref.kind)


@dataclass(frozen=True)
class PluginOverride:
    """A PluginOverride, possibly with errors. An override that is not `is_valid` applies to no Plugin.

    The Plugins that it may be for then stay unchanged. `clusters` and `definitions` contain the readable parts.
    """

    manifest: ConfigObject
    clusters: OverrideClusterSelection = OverrideClusterSelection()
    definitions: tuple[DefinitionNameFilter, ...] = ()
    options: OptionList = OptionList()
    mode: OverrideMode = "Override"
    priority: int = 0
    is_valid: bool = True


def format_plugin_name(preset: str, cluster: str) -> str:
    """Return the name of a preset's Plugin on a cluster."""
    return f"{preset}-{cluster}"


def create_plugin_key(namespace: str, name: str) -> ObjectKey:
    """Return the identity of a Plugin."""
    return ObjectKey(GROUP, PLUGIN, namespace, name)
