"""Models of PluginPresets, Plugins, plugin definitions, PluginOverrides and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

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
        """Return the reference as data for the field `valueFrom`."""
        return {"secret": {"name": self.name, "key": self.key}}


@dataclass(frozen=True)
class OptionExpression:
    """An expression as the value of an option: a text with CEL placeholders, which is evaluated for each Plugin."""

    text: str


ValueSource = LiteralValue | SecretRef | OptionExpression


@dataclass(frozen=True)
class OptionEntry:
    """One entry of a list of options. `path` is the path of the entry in its manifest."""

    name: str
    source: ValueSource
    path: DataPath = ()


@dataclass(frozen=True)
class OptionList:
    """A list of options. If the list has errors, no Plugin that uses the list can be built.

    `errors` does not contain warnings.
    """

    entries: tuple[OptionEntry, ...] = ()
    errors: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class DefinitionRef:
    """Reference to a plugin definition."""

    kind: str
    name: str

    def build_key(self, namespace: str) -> ObjectKey:
        """Return the identity of the referenced definition. `namespace` is the namespace of the Plugin."""
        return ObjectKey(GROUP, self.kind, namespace if self.kind == DEFINITION else "", self.name)

    def as_data(self) -> dict[str, str]:
        """Return the reference as data for the field `pluginDefinitionRef`."""
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True)
class OptionDeclaration:
    """An option that a plugin definition declares.

    `path` is the path of the declaration in the manifest. `default` is None if the declaration has no default value.
    """

    name: str
    type: OptionType
    is_required: bool = False
    default: LiteralValue | None = None
    regex: str = ""
    path: DataPath = ()


@dataclass(frozen=True)
class PluginDefinition:
    """A valid plugin definition.

    `chart` is the name of the Helm chart. It is "" if the definition contains only a user interface.
    """

    manifest: ConfigObject
    version: str
    chart: str
    options: Mapping[str, OptionDeclaration] = field(default_factory=dict)


@dataclass(frozen=True)
class WaitForEntry:
    """An entry of `waitFor`: the Plugin that must be ready before the waiting Plugin.

    Either `name` is the name of the Plugin, or `preset` is the name of a preset with a Plugin on the same cluster.
    """

    name: str = ""
    preset: str = ""

    def get_plugin_name(self, cluster: str) -> str:
        """Return the name of the Plugin on a cluster that the entry refers to."""
        return self.name or format_plugin_name(self.preset, cluster)

    def as_data(self) -> dict[str, Any]:
        """Return the entry as data for the field `waitFor`."""
        return {"pluginRef": {"name": self.name} if self.name else {"pluginPreset": self.preset}}


@dataclass(frozen=True)
class PluginSpec:
    """The spec fields that presets and Plugins have in common.

    `copied_fields` are written to the generated Plugin without changes.
    """

    definition: DefinitionRef
    options: OptionList = OptionList()
    display_name: str = ""
    release_name: str = ""
    release_namespace: str = ""
    wait_for: tuple[WaitForEntry, ...] = ()
    copied_fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """A valid PluginPreset.

    `cluster_options` are the options in `clusterOptionOverrides` by cluster name. `cluster_paths` are the paths of
    these entries in the manifest.
    """

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
    """A valid Plugin object that the config contains, and that no preset generates."""

    manifest: ConfigObject
    spec: PluginSpec
    cluster: str = ""


@dataclass(frozen=True)
class OverrideClusterChoice:
    """One item of the `clusterSelector` of a PluginOverride: a label selector, cluster names, or both.

    The field `ignoreClusters` of the item is not included.
    """

    selector: LabelSelector | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class OverrideClusterSelection:
    """The clusters that a PluginOverride selects: clusters that match one of the `choices` and are not in `ignored`.

    If `choices` is empty, all clusters that are not in `ignored` match. If `ignored` is empty too, Plugins without a
    cluster match as well.
    """

    choices: tuple[OverrideClusterChoice, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def is_for_all(self) -> bool:
        """Whether the selection is empty, so that the override applies to all Plugins."""
        return not self.choices and not self.ignored

    @property
    def names(self) -> tuple[str, ...]:
        """All cluster names that the selection contains, both selected and ignored clusters."""
        return (*(name for choice in self.choices for name in choice.names), *self.ignored)


@dataclass(frozen=True)
class DefinitionNameFilter:
    """An entry of `pluginDefinitionNames`. If `kind` is "", the entry matches definitions of both kinds."""

    name: str
    kind: str = ""

    def matches(self, ref: DefinitionRef) -> bool:
        """Return whether the entry matches a definition."""
        return ref.name == self.name and self.kind in ("", ref.kind)


@dataclass(frozen=True)
class PluginOverride:
    """A PluginOverride, which may have errors.

    An invalid override applies to no Plugin, and Plugins that it may select stay unchanged. If one of its selectors is
    invalid, `clusters` and `definitions` are empty. The override then matches all Plugins, so that all of them stay
    unchanged.
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
