"""The Plugin object: its release, metadata and spec. A part of the metadata is copied from the preset of the Plugin."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from reconciler.api.greenhouse import (
    API_VERSION,
    CLUSTER_DEFINITION,
    DEFINITION,
    GROUP,
    PLUGIN,
    PRESET,
    PRESET_LABEL,
    PROPAGATE_ANNOTATIONS,
    PROPAGATE_LABELS,
    SUSPEND_ANNOTATION,
    PluginFields,
    validate_release_name,
)
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import Preset, StandalonePlugin, UsableDefinition
from reconciler.controllers.plugin_presets.option_layers import ResolvedOption
from reconciler.krm.field_text import split_list
from reconciler.krm.findings import Finding, downgrade_to_warning
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import emit
from reconciler.lazy_dataclasses import dataclass, field

LAST_PROPAGATION_ANNOTATION = f"{GROUP}/last-applied-propagator"
_WILDCARD = "/*"
# Never propagate these annotations, because they control the propagation.
_NEVER_PROPAGATED = (PROPAGATE_LABELS, PROPAGATE_ANNOTATIONS, LAST_PROPAGATION_ANNOTATION)
CLUSTER_LABEL = f"{GROUP}/cluster"
DEFINITION_LABELS = {
    DEFINITION: f"{GROUP}/plugindefinition", CLUSTER_DEFINITION: f"{GROUP}/clusterplugindefinition",
}  # fmt: skip
LEGACY_LABEL = f"{GROUP}/plugin"
# Fields of a preset that are copied to its Plugins without changes.
_COPIED_FIELDS = ("deletionPolicy", "ignoreDifferences")
_REPLACED_FIELDS = ("pluginDefinitionRef", "pluginDefinitionName", "optionValues")


@dataclass(frozen=True)
class PropagatedMetadata:
    """The labels and annotations that a preset propagates to its Plugins, sorted by key."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, str]:
        """The annotation that lists the propagated keys, as a mapping. {} if the preset propagates nothing."""
        if not self.labels and not self.annotations:
            return {}
        keys = {"labelKeys": sorted(self.labels), "annotationKeys": sorted(self.annotations)}
        return {LAST_PROPAGATION_ANNOTATION: json.dumps(keys, separators=(",", ":"))}


def select_propagated_metadata(labels: Mapping[str, str], annotations: Mapping[str, str]) -> PropagatedMetadata:
    """Return the labels and annotations that a preset propagates to its Plugins."""
    patterns = split_list(annotations.get(PROPAGATE_LABELS, ""))
    annotation_keys = frozenset(split_list(annotations.get(PROPAGATE_ANNOTATIONS, ""))) - frozenset(_NEVER_PROPAGATED)
    return PropagatedMetadata(
        {key: labels[key] for key in sorted(labels) if _matches_any(key, patterns)},
        {key: annotations[key] for key in sorted(annotations) if key in annotation_keys},
    )


def _read_propagated_keys(annotations: Mapping[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of labels and annotations that a preset propagated to its Plugin in an earlier pass.

    Return no keys if the annotation that lists them is invalid.
    """
    try:
        data = json.loads(annotations.get(LAST_PROPAGATION_ANNOTATION, "{}"))
    except ValueError:
        data = {}
    return _read_keys(data, "labelKeys"), _read_keys(data, "annotationKeys")


def _read_keys(data: object, name: str) -> frozenset[str]:
    keys = data.get(name) if isinstance(data, dict) else None
    return frozenset(key for key in keys if isinstance(key, str)) if isinstance(keys, list) else frozenset()


def _matches_any(key: str, patterns: Iterable[str]) -> bool:
    return any(
        key == pattern or (pattern.endswith(_WILDCARD) and key.startswith(pattern.removesuffix("*")))
        for pattern in patterns
    )


@dataclass(frozen=True)
class PluginRelease:
    """The Helm release of a Plugin. Both fields are "" if the plugin definition has no chart."""

    namespace: str = ""
    name: str = ""


@dataclass(frozen=True)
class PluginMetadata:
    """The labels and annotations to set on a Plugin, and the keys of labels and annotations to remove from it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    removed_labels: frozenset[str] = frozenset()
    removed_annotations: frozenset[str] = frozenset()


def resolve_release(
    spec: PluginFields,
    definition: UsableDefinition,
    namespace: str,
    published: Mapping[str, Any],
    manifest: ConfigObject,
) -> tuple[PluginRelease, tuple[Finding, ...]]:
    """Return the Helm release of a Plugin, and the findings about the release.

    A published Plugin keeps its release name. A new release namespace is an error, because Helm cannot move a release.
    """
    if not definition.chart:
        return PluginRelease(), ()
    published_spec = published.get("spec")
    published_spec = published_spec if isinstance(published_spec, dict) else {}
    release = PluginRelease(
        spec.release_namespace or namespace,
        str(published_spec.get("releaseName") or spec.release_name or definition.chart),
    )
    return release, tuple(_check_release(spec, release, published_spec, manifest))


def _check_release(
    spec: PluginFields, release: PluginRelease, published_spec: Mapping[str, Any], manifest: ConfigObject
) -> Iterator[Finding]:
    published_namespace = published_spec.get("releaseNamespace")
    if published_namespace and published_namespace != release.namespace:
        message = (
            f'releaseNamespace must be "{published_namespace}", but is "{release.namespace}"; Helm cannot move the'
            " published release to another namespace"
        )
        yield PluginCodes.IMMUTABLE_FIELD_CHANGED.finding(message, manifest.location)
    if spec.release_name and spec.release_name != release.name:
        message = (
            f'releaseName "{spec.release_name}" is ignored, because the published release has the name "{release.name}"'
        )
        yield downgrade_to_warning(PluginCodes.IMMUTABLE_FIELD_CHANGED.finding(message, manifest.location))
    if error := validate_release_name(release.name):
        yield PluginCodes.RELEASE_NAME_INVALID.finding(
            f"releaseName is not a valid Helm release name: {error}", manifest.location
        )


def build_preset_metadata(
    preset: Preset, propagated: PropagatedMetadata, cluster: str, published: Mapping[str, Any]
) -> PluginMetadata:
    """Return the metadata of a preset's Plugin: its identifying labels, and the metadata that the preset propagates."""
    definition_label = DEFINITION_LABELS[preset.plugin.definition.kind]
    identity_labels = {
        PRESET_LABEL: preset.key.name,
        CLUSTER_LABEL: cluster,
        definition_label: preset.plugin.definition.name,
    }
    earlier_labels, earlier_annotations = _read_propagated_keys(read_string_map(published, "annotations"))
    labels, annotations = {**propagated.labels, **identity_labels}, {**propagated.annotations, **propagated.record}
    removed_labels = {*DEFINITION_LABELS.values(), LEGACY_LABEL, *earlier_labels}
    return PluginMetadata(
        dict(sorted(labels.items())),
        dict(sorted(annotations.items())),
        frozenset(removed_labels - labels.keys()),
        frozenset({LAST_PROPAGATION_ANNOTATION, *earlier_annotations} - annotations.keys()),
    )


def build_preset_plugin(
    preset: Preset, key: ObjectKey, cluster: str, release: PluginRelease, plugin_metadata: PluginMetadata
) -> dict[str, Any]:
    """Return the Plugin of a preset on a cluster as data. `add_options` adds the options to this data."""
    spec = preset.plugin
    source = preset.manifest.data["spec"]["plugin"]
    fields = {
        "pluginDefinitionRef": spec.definition.as_data(),
        "displayName": spec.display_name or format_display_name(key.name),
        "clusterName": cluster,
        "releaseNamespace": release.namespace,
        "releaseName": release.name,
        **{name: source[name] for name in _COPIED_FIELDS if source.get(name) is not None},
        "waitFor": [item.as_data() for item in preset.spec.wait_for],
    }
    metadata = {"name": key.name, "namespace": key.namespace, "labels": dict(plugin_metadata.labels)}
    if plugin_metadata.annotations:
        metadata["annotations"] = dict(plugin_metadata.annotations)
    non_empty_fields = {name: value for name, value in fields.items() if value not in ("", [])}
    return {"apiVersion": API_VERSION, "kind": PLUGIN, "metadata": metadata, "spec": non_empty_fields}


def build_standalone_plugin(plugin: StandalonePlugin, release: PluginRelease) -> dict[str, Any]:
    """Return the data of a Plugin in the config, with defaults for missing fields. `add_options` adds the options."""
    data, name = plugin.manifest.data, plugin.manifest.key.name
    manifest_fields = {field: value for field, value in data["spec"].items() if value is not None}
    default_fields = {
        "displayName": format_display_name(name), "releaseNamespace": release.namespace, "releaseName": release.name,
    }  # fmt: skip
    spec = {**{field: value for field, value in default_fields.items() if value}, **manifest_fields}
    if release.name:
        spec["releaseName"] = release.name
    ref = {"pluginDefinitionRef": plugin.spec.definition.as_data()}
    spec = {**ref, **{field: value for field, value in spec.items() if field not in _REPLACED_FIELDS}}
    return {"apiVersion": API_VERSION, "kind": PLUGIN, "metadata": dict(data["metadata"]), "spec": spec}


def add_options(data: Mapping[str, Any], options: Sequence[ResolvedOption]) -> tuple[dict[str, Any], str]:
    """Return the spec of a Plugin with its options as the last field, and the YAML text of the whole Plugin.

    The YAML text of each option is cached, because many Plugins have the same options.
    """
    spec = {**data["spec"], "optionValues": [option.data for option in options]}
    if not options:
        return spec, emit({**data, "spec": spec})
    return spec, f"{emit(dict(data))}  optionValues:\n{''.join(option.yaml_text for option in options)}"


def format_display_name(name: str) -> str:
    """Return the default display name of a Plugin, e.g. "cert-manager" -> "cert manager"."""
    return name.replace("-", " ").strip()


def read_string_map(data: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the labels or annotations of a published Plugin.

    Entries that are not strings are ignored, because a person may have changed the file.
    """
    metadata = data.get("metadata")
    entries = metadata.get(name) if isinstance(metadata, dict) else None
    items = entries.items() if isinstance(entries, dict) else ()
    return {key: value for key, value in items if isinstance(key, str) and isinstance(value, str)}


@dataclass(frozen=True, eq=False)
class PublishedPlugin:
    """A Plugin on a target branch. `data` is {} if the branch contains no readable Plugin at the package path."""

    data: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def preset_label(self) -> str:
        """The name of the preset in the Plugin's label. It is "" if the Plugin does not have this label."""
        return read_string_map(self.data, "labels").get(PRESET_LABEL, "")

    @cached_property
    def preset_key(self) -> ObjectKey:
        """The identity of the preset that the Plugin's label refers to."""
        # Do not check whether `metadata` exists, because a Plugin with a label has metadata.
        namespace = self.data["metadata"].get("namespace") if self.preset_label else ""
        return ObjectKey(GROUP, PRESET, namespace if isinstance(namespace, str) else "", self.preset_label)

    @cached_property
    def is_suspended(self) -> bool:
        """Whether the Plugin has the suspend annotation, which prevents changes and the deletion of the Plugin."""
        return SUSPEND_ANNOTATION in read_string_map(self.data, "annotations")
