"""Option layers in the order of their precedence, and the resolved options of a Plugin.

`LAYERS` defines the precedence: a layer replaces the values of all earlier layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from reconciler.api.greenhouse_options import LiteralValue, SecretKeyReference, ValueSource
from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.field_text import format_path
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, emit
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached


@dataclass(frozen=True)
class OptionLayer:
    """One option layer.

    `id` is the name of the layer in status files and explanations. `source` describes the field that contains the
    options.
    """

    id: str
    source: str


# The order of this tuple is the precedence of the layers: a layer replaces the values of all earlier layers.
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
# These layers set options for specific definitions. Therefore, an option that the definition does not declare causes a
# warning. In all other layers, such an option causes only an info.
DEFINITION_AWARE_LAYERS: Final = frozenset({
    PRESET_OPTIONS, PLUGIN_OPTIONS, PRESET_CLUSTER_OPTIONS, "default-definition", "default-cluster-definition",
    "override-definition", "override-cluster-definition",
})  # fmt: skip
NON_OVERRIDE_LAYERS: Final = frozenset({DEFAULTS_LAYER, PRESET_OPTIONS, PLUGIN_OPTIONS, INJECTED_LAYER})
"""Layers that are not overrides. Status files list the objects of all other layers in `appliedOverrides`."""


@dataclass(frozen=True, eq=False)
class OptionAssignment:
    """An entry of a layer. It sets one option. `path` is the path of the entry in its manifest."""

    layer: str
    manifest: ConfigObject
    name: str
    source: ValueSource
    path: DataPath

    @property
    def object_key(self) -> ObjectKey:
        """The identity of the config object that contains the entry."""
        return self.manifest.key

    @property
    def field(self) -> str:
        """The path of the entry as text, e.g. "spec.overrides[0]"."""
        return format_path(self.path)

    @property
    def location(self) -> SourceLocation:
        """The file and the position of the entry."""
        return self.manifest.location_of(self.path)

    def __str__(self) -> str:
        return f"{self.object_key} ({self.field} at {self.manifest.file}:{self.manifest.document.find_line(self.path)})"


@dataclass(frozen=True, eq=False)
class LayerOptions:
    """The options that one config object sets on one layer.

    If several config objects set an option on the same layer, the object with the highest `priority` is used. If the
    priorities are equal, the object with the latest `created` is used. `errors` contains only errors, and no warnings.
    If there are errors, no Plugin that uses the options can be built.
    """

    layer: str
    manifest: ConfigObject
    assignments: tuple[OptionAssignment, ...] = ()
    errors: tuple[Finding, ...] = ()
    priority: int = 0
    created: str = ""

    @cached_property
    def sort_key(self) -> tuple[int, int, str, str]:
        """The sort key of the options: options with a higher key replace options with a lower key.

        The key does not contain the file name, so that a config object can be moved to another file.
        """
        return LAYER_RANK[self.layer], self.priority, self.created, self.manifest.key.name


def is_same_value(first: ValueSource, second: ValueSource) -> bool:
    """Return whether two option values are equal. Expressions are compared as text, and references by their fields."""
    if isinstance(first, LiteralValue) and isinstance(second, LiteralValue):
        return is_equal_data(first.value, second.value)
    return first == second and not isinstance(first, LiteralValue)


def collect_assignments(layers: Iterable[LayerOptions]) -> Mapping[str, list[OptionAssignment]]:
    """Return a mapping from option names to all assignments of the option, lowest layer first.

    The last assignment alone determines the value of the option. Values of several layers are not merged.
    """
    assignments: dict[str, list[OptionAssignment]] = {}
    for layer_options in sorted(layers, key=lambda layer: layer.sort_key):
        for assignment in layer_options.assignments:
            assignments.setdefault(assignment.name, []).append(assignment)
    return assignments


@dataclass(frozen=True, eq=False)
class ResolvedOption:
    """One option of a Plugin: its value, and the assignments of all layers, lowest layer first.

    If `is_secret` is True, no output may show a value of the option.
    """

    name: str
    source: LiteralValue | SecretKeyReference
    assignments: tuple[OptionAssignment, ...]
    is_secret: bool = False

    @property
    def winner(self) -> OptionAssignment:
        """The assignment that determines the value: the assignment of the highest layer."""
        return self.assignments[-1]

    @cached_property
    def data(self) -> dict[str, Any]:
        """The option as an entry of the field `optionValues`."""
        if isinstance(self.source, SecretKeyReference):
            return {"name": self.name, "valueFrom": {"secret": self.source.as_data()}}
        return {"name": self.name, "value": self.source.value}

    @property
    def yaml_text(self) -> str:
        """The option as an entry of `optionValues` in YAML, indented for the spec of a Plugin."""
        return self._formatted[0]

    @property
    def digest(self) -> str:
        """The digest of the option's entry in `optionValues`."""
        return self._formatted[1]

    @cached_property
    def _formatted(self) -> tuple[str, str]:
        value = self.source.value if isinstance(self.source, LiteralValue) else None
        return _format_string_entry(self.name, value) if isinstance(value, str) else _format_entry(self.data)


# Cache these texts, because injected options such as the cluster name are equal in many Plugins.
@cached(8_192)
def _format_string_entry(name: str, value: str) -> tuple[str, str]:
    return _format_entry({"name": name, "value": value})


def _format_entry(data: dict[str, Any]) -> tuple[str, str]:
    # Do not use `splitlines`, because it also splits at other line separators inside a value, e.g. U+2028.
    *lines, _ = emit([data]).split("\n")
    return "".join(f"  {line}\n" if line else "\n" for line in lines), compute_digest(data)


@dataclass(frozen=True, eq=False)
class OptionResolution:
    """The resolved options of one Plugin, sorted by name, and the findings. A Plugin with an error is not built.

    `applied_layers` are the layers that apply to the Plugin, lowest layer first.
    """

    options: tuple[ResolvedOption, ...] = ()
    findings: tuple[Finding, ...] = ()
    applied_layers: tuple[LayerOptions, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors. An error prevents the build of the Plugin."""
        return select_errors(self.findings)
