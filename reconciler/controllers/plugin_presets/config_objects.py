"""Presets, Plugins, plugin definitions and PluginOverrides of the config, with their options as layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from reconciler.api.base import FieldMessage, read_model
from reconciler.api.greenhouse import (
    CLUSTER,
    ORGANIZATION,
    Plugin,
    PluginDefinition,
    PluginDefinitionSpec,
    PluginFields,
    PluginPreset,
    PluginPresetSpec,
    PluginSpec,
)
from reconciler.api.greenhouse_options import LiteralValue, PluginOption, PluginOptionValue, quote_option_name
from reconciler.api.greenhouse_overrides import Organization, PluginOverride, PluginOverridesSpec, PluginOverrideTargets
from reconciler.api.manifest import read_manifest
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.option_layers import (
    CLUSTER_OPTIONS,
    DEFAULTS_LAYER,
    ORGANIZATION_OPTIONS,
    PLUGIN_OPTIONS,
    PRESET_CLUSTER_OPTIONS,
    PRESET_OPTIONS,
    LayerOptions,
    OptionAssignment,
    is_same_value,
)
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import CommonCodes, Finding, FindingCode, downgrade_to_warning, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

Findings = tuple[Finding, ...]
_CODES = {**CommonCodes.by_name, **ControllerCodes.by_name, **PluginCodes.by_name}
_LAYERS_BY_KIND = {ORGANIZATION: ORGANIZATION_OPTIONS, CLUSTER: CLUSTER_OPTIONS}
KINDS_WITH_OPTIONS = tuple(_LAYERS_BY_KIND)
"""The kinds whose options apply to all Plugins of an organization or a cluster."""


@dataclass(frozen=True, eq=False)
class Preset:
    """A valid PluginPreset.

    `cluster_options` maps each cluster name in `clusterOptionOverrides` to the options for this cluster.
    """

    plugin_path: ClassVar[DataPath] = ("spec", "plugin")
    """Path of the fields that presets and Plugins have in common."""

    manifest: ConfigObject
    spec: PluginPresetSpec
    options: LayerOptions
    selector: LabelSelector
    cluster_options: Mapping[str, LayerOptions] = field(default_factory=dict)

    @property
    def key(self) -> ObjectKey:
        """The preset's identity."""
        return self.manifest.key

    @property
    def plugin(self) -> PluginFields:
        """The fields that presets and Plugins have in common."""
        return self.spec.plugin


@dataclass(frozen=True, eq=False)
class StandalonePlugin:
    """A valid Plugin object that the config contains, and that no preset generates."""

    plugin_path: ClassVar[DataPath] = ("spec",)
    """Path of the fields that presets and Plugins have in common."""

    manifest: ConfigObject
    spec: PluginSpec
    options: LayerOptions

    @property
    def plugin(self) -> PluginFields:
        """The fields that presets and Plugins have in common."""
        return self.spec


@dataclass(frozen=True, eq=False)
class UsableDefinition:
    """A valid plugin definition, and the layer with the default values of its options."""

    manifest: ConfigObject
    spec: PluginDefinitionSpec
    defaults: LayerOptions
    options: Mapping[str, PluginOption]

    @property
    def chart(self) -> str:
        """The name of the Helm chart. It is "" if the definition contains only a user interface."""
        return self.spec.helm_chart.name if self.spec.helm_chart else ""


@dataclass(frozen=True, eq=False)
class OverrideLayer:
    """A PluginOverride, and its options as a layer. The PluginOverride may have errors.

    An invalid override applies to no Plugin. Plugins that the override may select stay unchanged. If a selector of the
    override is invalid, `targets` selects all Plugins, so that all Plugins stay unchanged.
    """

    targets: PluginOverrideTargets
    layer: LayerOptions
    is_valid: bool = True

    @property
    def manifest(self) -> ConfigObject:
        """The PluginOverride."""
        return self.layer.manifest

    @property
    def key(self) -> ObjectKey:
        """The identity of the PluginOverride."""
        return self.layer.manifest.key


def read_preset(manifest: ConfigObject) -> tuple[Preset | None, Findings]:
    """Return the preset, and the findings about the preset and its Plugins. The preset is None if it is invalid."""
    result = read_manifest(PluginPreset, manifest.data)
    findings = create_field_findings(manifest, result.errors, PluginCodes.PLUGIN_PRESET_INVALID, _CODES)
    if result.model is None:
        return None, findings
    spec, lists = result.model.spec, _OptionLists(manifest, result.errors)
    options = lists.create_layer(PRESET_OPTIONS, ("spec", "plugin", "optionValues"), spec.plugin.option_values)
    cluster_options = _read_cluster_options(spec, lists)
    preset = Preset(manifest, spec, options, spec.cluster_selector.selector, cluster_options)
    return preset, (*findings, *lists.findings)


def _read_cluster_options(spec: PluginPresetSpec, lists: _OptionLists) -> Mapping[str, LayerOptions]:
    options_by_cluster: dict[str, LayerOptions] = {}
    first_paths: dict[str, DataPath] = {}
    for index, override in enumerate(spec.cluster_option_overrides):
        name, path = override.cluster_name, ("spec", "clusterOptionOverrides", index)
        layer = lists.create_layer(PRESET_CLUSTER_OPTIONS, (*path, "overrides"), override.overrides)
        if name in options_by_cluster:
            message = (
                f"{format_path(first_paths[name])} and {format_path(path)} are both for the cluster"
                f" {quote_value(name)}; use only one entry for each cluster"
            )
            error = lists.add_finding(PluginCodes.DUPLICATE_CLUSTER_OVERRIDE, message, path)
            first = options_by_cluster[name]
            layer = LayerOptions(layer.layer, layer.manifest, first.assignments, (*first.errors, *layer.errors, error))
        first_paths.setdefault(name, path)
        options_by_cluster[name] = layer
    return options_by_cluster


def read_plugin(manifest: ConfigObject) -> tuple[StandalonePlugin | None, Findings]:
    """Return the Plugin and the findings. The Plugin is None if it is invalid."""
    result = read_manifest(Plugin, manifest.data)
    findings = create_field_findings(manifest, result.errors, PluginCodes.PLUGIN_INVALID, _CODES)
    if result.model is None:
        return None, findings
    spec, lists = result.model.spec, _OptionLists(manifest, result.errors)
    options = lists.create_layer(PLUGIN_OPTIONS, ("spec", "optionValues"), spec.option_values)
    return StandalonePlugin(manifest, spec, options), (*findings, *lists.findings)


def read_override(manifest: ConfigObject) -> tuple[OverrideLayer, Findings]:
    """Return the PluginOverride and the findings. Errors in single options do not make the override invalid."""
    result = read_manifest(PluginOverride, manifest.data)
    findings = create_field_findings(manifest, result.errors, PluginCodes.PLUGIN_OVERRIDE_INVALID, _CODES)
    if result.model is None:
        return _create_invalid_override(manifest), findings
    spec, lists = result.model.spec, _OptionLists(manifest, result.errors, PluginCodes.DUPLICATE_OVERRIDE)
    created = manifest.data["metadata"].get("creationTimestamp")
    layer = lists.create_layer(
        _get_override_layer(spec, spec.mode), ("spec", "overrides"), spec.overrides, spec.priority,
        created if isinstance(created, str) else "",
    )  # fmt: skip
    is_valid = not select_errors(lists.findings)
    return OverrideLayer(spec, layer, is_valid), (*findings, *lists.findings)


def _create_invalid_override(manifest: ConfigObject) -> OverrideLayer:
    data = manifest.data.get("spec")
    spec = data if isinstance(data, Mapping) else {}
    model = PluginOverrideTargets
    targets = read_model(model, spec, PluginOverride.templates).model or model()
    layer = LayerOptions(_get_override_layer(targets, spec.get("mode")), manifest)
    return OverrideLayer(targets, layer, is_valid=False)


def _get_override_layer(targets: PluginOverrideTargets, mode: object) -> str:
    """Return the ID of the layer for a PluginOverride. The layer depends on the mode and on the selectors."""
    parts = ["default" if mode == "Default" else "override"]
    parts += [] if targets.is_for_all_clusters else ["cluster"]
    parts += ["definition"] if targets.plugin_definition_names else []
    return "-".join(parts if len(parts) > 1 else (*parts, "generic"))


def read_own_options(manifest: ConfigObject) -> tuple[LayerOptions, Findings]:
    """Return the options in `spec.pluginOverrides` of an Organization or a Cluster as a layer, and the findings.

    Other fields are not checked, because other controllers report the errors in these fields.
    """
    data, model = manifest.data.get("spec"), PluginOverridesSpec
    result = read_model(
        model, data if isinstance(data, Mapping) else {}, Organization.templates, ("spec",),
        Organization.lenient_codes,
    )  # fmt: skip
    findings = create_field_findings(manifest, result.errors, PluginCodes.PLUGIN_OVERRIDES_INVALID, _CODES)
    layer_id = _LAYERS_BY_KIND[manifest.key.kind]
    if result.model is None:
        return LayerOptions(layer_id, manifest, errors=findings), findings
    lists = _OptionLists(manifest, result.errors)
    layer = lists.create_layer(layer_id, ("spec", "pluginOverrides"), result.model.plugin_overrides)
    return layer, (*findings, *lists.findings)


def read_definition(manifest: ConfigObject) -> tuple[UsableDefinition | None, Findings]:
    """Return the plugin definition. Return None and all errors if the definition is invalid."""
    # Do not check the version, because all versions of these kinds have the same fields that the reconciler reads.
    result = read_model(PluginDefinition, manifest.data, PluginDefinition.templates)
    findings = create_field_findings(manifest, result.errors, PluginCodes.DEFINITION_INVALID, _CODES)
    if result.model is None:
        return None, findings
    spec = result.model.spec
    defaults = tuple(
        OptionAssignment(
            DEFAULTS_LAYER, manifest, option.name, LiteralValue(option.default), ("spec", "options", index, "default")
        )
        for index, option in enumerate(spec.options)
        if option.default is not None
    )
    layer = LayerOptions(DEFAULTS_LAYER, manifest, defaults)
    return UsableDefinition(manifest, spec, layer, {option.name: option for option in spec.options}), findings


@dataclass
class _OptionLists:
    """The lists of option values in one object. Each list becomes a layer.

    Attributes:
        manifest: The object.
        errors: The errors in single options. These errors do not make the object invalid.
        duplicate_code: The finding code for an option that a list contains twice.
        findings: The other findings that do not make the object invalid.
    """

    manifest: ConfigObject
    errors: Sequence[FieldMessage]
    duplicate_code: FindingCode = PluginCodes.DUPLICATE_OPTION
    findings: list[Finding] = field(default_factory=list)

    def add_finding(self, code: FindingCode, message: str, path: DataPath) -> Finding:
        """Store a finding, and return it."""
        finding = code.finding(message, self.manifest.location_of(path))
        self.findings.append(finding)
        return finding

    def create_layer(
        self,
        layer: str,
        path: DataPath,
        values: Sequence[PluginOptionValue | None],
        priority: int = 0,
        created: str = "",
    ) -> LayerOptions:
        """Return a list of option values as a layer. An option that the list contains twice is an error."""
        assignments: dict[str, OptionAssignment] = {}
        findings = [*self._list_errors(path)] if self.errors else []
        for index, value in enumerate(values):
            if value is None:
                continue
            assignment = OptionAssignment(layer, self.manifest, value.option_name, value.source, (*path, index))
            first = assignments.setdefault(assignment.name, assignment)
            if first is not assignment:
                findings += select_errors([self._add_duplicate(first, assignment)])
        return LayerOptions(layer, self.manifest, tuple(assignments.values()), tuple(findings), priority, created)

    def _list_errors(self, path: DataPath) -> Findings:
        own_errors = [error for error in self.errors if error.path[: len(path)] == path]
        return create_field_findings(self.manifest, own_errors, self.duplicate_code, _CODES)

    def _add_duplicate(self, first: OptionAssignment, duplicate: OptionAssignment) -> Finding:
        """Store a finding about a repeated option, and return it: an error, or a warning if both values are equal."""
        message = (
            f"{duplicate.field} sets {quote_option_name(duplicate.name)} again;"
            " a list must contain each option only once"
        )
        finding = self.duplicate_code.finding(message, duplicate.location)
        if is_same_value(first.source, duplicate.source):
            finding = downgrade_to_warning(finding)
        self.findings.append(finding)
        return finding
