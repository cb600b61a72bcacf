"""Presets, plugin definitions, overrides and options, as values (greenhouse 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import Path
from reconciler.snapshot.catalog import ConfigObject

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
Mode = Literal["Override", "Default"]
MODES: tuple[Mode, ...] = ("Override", "Default")


@dataclass(frozen=True)
class Given:
    """A value that is written as it is: any JSON but null."""

    value: Any


@dataclass(frozen=True)
class SecretRef:
    """A key of a Secret, which is never looked at (greenhouse 7.1)."""

    name: str
    key: str

    def as_data(self) -> dict[str, Any]:
        """Return the reference in the one spelling that is written (greenhouse 15.1)."""
        return {"secret": {"name": self.name, "key": self.key}}


@dataclass(frozen=True)
class Expression:
    """A text that is worked out for each cluster (greenhouse 8.1)."""

    text: str


Source = Given | SecretRef | Expression


@dataclass(frozen=True)
class Entry:
    """One option of a list, and the path of its entry in the document."""

    name: str
    source: Source
    path: Path = ()


@dataclass(frozen=True)
class Entries:
    """A list of options. With `faults` no Plugin that it applies to can be made; what is only odd is in neither."""

    entries: tuple[Entry, ...] = ()
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class DefinitionRef:
    """Which plugin definition a Plugin is of."""

    kind: str
    name: str

    def key(self, namespace: str) -> ObjectKey:
        """Return the identity of the definition that Plugins of a namespace mean."""
        return ObjectKey(GROUP, self.kind, namespace if self.kind == DEFINITION else "", self.name)

    def as_data(self) -> dict[str, str]:
        """Return the reference as it is written to YAML."""
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True)
class Option:
    """An option as a plugin definition declares it; `path` is its entry there. Without a default, that is None."""

    name: str
    type: OptionType
    required: bool = False
    default: Given | None = None
    regex: str = ""
    path: Path = ()


@dataclass(frozen=True)
class Definition:
    """A sound plugin definition; `chart` is the name of its Helm chart, "" for one that is only a user interface."""

    one: ConfigObject
    version: str
    chart: str
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True)
class WaitFor:
    """What a Plugin waits for: one by name, or the one that a preset makes for the same cluster."""

    name: str = ""
    preset: str = ""

    def plugin(self, cluster: str) -> str:
        """Return the name of the Plugin that is meant on a cluster."""
        return self.name or plugin_name(self.preset, cluster)

    def as_data(self) -> dict[str, Any]:
        """Return the entry as it is written to YAML."""
        return {"pluginRef": {"name": self.name} if self.name else {"pluginPreset": self.preset}}


@dataclass(frozen=True)
class PluginSpec:
    """What presets and Plugins say alike of a plugin; `written` are the fields of theirs that are only copied."""

    definition: DefinitionRef
    options: Entries = Entries()
    display_name: str = ""
    release_name: str = ""
    release_namespace: str = ""
    wait_for: tuple[WaitFor, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """A sound PluginPreset; `cluster_options` are its clusterOptionOverrides by cluster, at `cluster_paths`."""

    one: ConfigObject
    spec: PluginSpec
    selector: LabelSelector
    cluster_options: Mapping[str, Entries] = field(default_factory=dict)
    cluster_paths: Mapping[str, Path] = field(default_factory=dict)
    deletion_policy: DeletionPolicy = "Delete"

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        return self.one.key


@dataclass(frozen=True)
class StandalonePlugin:
    """A sound Plugin that people wrote themselves (greenhouse 2.7)."""

    one: ConfigObject
    spec: PluginSpec
    cluster: str = ""


@dataclass(frozen=True)
class ClusterChoice:
    """One item of a PluginOverride's clusterSelector, ignored clusters aside."""

    selector: LabelSelector | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterSelection:
    """The clusters that a PluginOverride is for: any that a choice lets through, and none of the ignored.

    With nothing at all in it, it is for every cluster, and for Plugins without one (greenhouse 2.6).
    """

    choices: tuple[ClusterChoice, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def is_for_all(self) -> bool:
        """Whether it says nothing."""
        return not self.choices and not self.ignored

    @property
    def names(self) -> tuple[str, ...]:
        """Every cluster that it names."""
        return (*(name for one in self.choices for name in one.names), *self.ignored)


@dataclass(frozen=True)
class DefinitionName:
    """An entry of pluginDefinitionNames; without a kind it means definitions of both."""

    name: str
    kind: str = ""

    def means(self, ref: DefinitionRef) -> bool:
        """Tell whether a definition is meant."""
        return ref.name == self.name and self.kind in ("", ref.kind)


@dataclass(frozen=True)
class PluginOverride:
    """A PluginOverride as far as it can be read; one that is not `sound` applies to nothing.

    What it may be meant for stays as it is then: `clusters` and `definitions` are those of which something is known.
    """

    one: ConfigObject
    clusters: ClusterSelection = ClusterSelection()
    definitions: tuple[DefinitionName, ...] = ()
    options: Entries = Entries()
    mode: Mode = "Override"
    priority: int = 0
    sound: bool = True


def plugin_name(preset: str, cluster: str) -> str:
    """Return what the Plugin of a preset on a cluster is called (greenhouse 3.6)."""
    return f"{preset}-{cluster}"


def plugin_key(namespace: str, name: str) -> ObjectKey:
    """Return the identity of a Plugin."""
    return ObjectKey(GROUP, PLUGIN, namespace, name)
