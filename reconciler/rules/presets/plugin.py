"""The Plugin that is generated: its name, its labels, its spec, as it is written (greenhouse 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.findings import Finding, softened
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import emit
from reconciler.rules.presets.codes import IMMUTABLE_FIELD_CHANGED, RELEASE_NAME_INVALID
from reconciler.rules.presets.model import (
    API_VERSION,
    DEFINITION_LABELS,
    GROUP,
    PLUGIN,
    PRESET_LABEL,
    Definition,
    PluginSpec,
    Preset,
    StandalonePlugin,
)
from reconciler.rules.presets.propagation import MEMORY, Propagated, read_memory
from reconciler.rules.presets.read_spec import release_name_fault
from reconciler.rules.presets.resolved import ResolvedOption
from reconciler.snapshot.catalog import ConfigObject

CLUSTER_LABEL = f"{GROUP}/cluster"
LEGACY_LABEL = f"{GROUP}/plugin"
_REPLACED = ("pluginDefinitionRef", "pluginDefinitionName", "optionValues")


@dataclass(frozen=True)
class Release:
    """The Helm release of a Plugin; both are "" for one that is only a user interface."""

    namespace: str = ""
    name: str = ""


@dataclass(frozen=True)
class Marks:
    """The labels and annotations that a Plugin is given, and those that are taken from it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    without_labels: frozenset[str] = frozenset()
    without_annotations: frozenset[str] = frozenset()


def release_of(
    spec: PluginSpec, definition: Definition, namespace: str, published: Mapping[str, Any], written: ConfigObject
) -> tuple[Release, tuple[Finding, ...]]:
    """Return the release of a Plugin, and why it cannot be that.

    What is published keeps its name and its namespace: Helm cannot move a release.
    """
    if not definition.chart:
        return Release(), ()
    known = published.get("spec")
    known = known if isinstance(known, dict) else {}
    wanted = Release(
        spec.release_namespace or namespace, str(known.get("releaseName") or spec.release_name or definition.chart)
    )
    return wanted, tuple(_release_faults(spec, wanted, known, written))


def _release_faults(
    spec: PluginSpec, wanted: Release, known: Mapping[str, Any], one: ConfigObject
) -> Iterator[Finding]:
    before = known.get("releaseNamespace")
    if before and before != wanted.namespace:
        message = f'releaseNamespace must stay "{before}", as it is published, and cannot become "{wanted.namespace}"'
        yield IMMUTABLE_FIELD_CHANGED.finding(message, one.where)
    if spec.release_name and spec.release_name != wanted.name:
        message = f'releaseName stays "{wanted.name}", as it is published, and does not become "{spec.release_name}"'
        yield softened(IMMUTABLE_FIELD_CHANGED.finding(message, one.where))
    if fault := release_name_fault(wanted.name):
        yield RELEASE_NAME_INVALID.finding(f"releaseName must be one that Helm takes: {fault}", one.where)


def preset_marks(preset: Preset, passed: Propagated, cluster: str, published: Mapping[str, Any]) -> Marks:
    """Return the labels and annotations of a preset's Plugin: those that tell what it is, and what is passed on."""
    wanted = DEFINITION_LABELS[preset.spec.definition.kind]
    own = {PRESET_LABEL: preset.key.name, CLUSTER_LABEL: cluster, wanted: preset.spec.definition.name}
    remembered = read_memory(string_map(published, "annotations"))
    labels, annotations = {**passed.labels, **own}, {**passed.annotations, **passed.memory}
    gone = {*DEFINITION_LABELS.values(), LEGACY_LABEL, *remembered.labels}
    return Marks(
        dict(sorted(labels.items())),
        dict(sorted(annotations.items())),
        frozenset(gone - labels.keys()),
        frozenset({MEMORY, *remembered.annotations} - annotations.keys()),
    )


def preset_plugin(preset: Preset, key: ObjectKey, cluster: str, release: Release, marks: Marks) -> dict[str, Any]:
    """Return the Plugin of a preset on a cluster, without its options."""
    spec = preset.spec
    fields = {
        "pluginDefinitionRef": spec.definition.as_data(),
        "displayName": spec.display_name or display_name(key.name),
        "clusterName": cluster,
        "releaseNamespace": release.namespace,
        "releaseName": release.name,
        **spec.written,
        "waitFor": [one.as_data() for one in spec.wait_for],
    }
    metadata = {"name": key.name, "namespace": key.namespace, "labels": dict(marks.labels)}
    if marks.annotations:
        metadata["annotations"] = dict(marks.annotations)
    written = {name: value for name, value in fields.items() if value not in ("", [])}
    return {"apiVersion": API_VERSION, "kind": PLUGIN, "metadata": metadata, "spec": written}


def standalone_plugin(plugin: StandalonePlugin, release: Release) -> dict[str, Any]:
    """Return a Plugin of people's own without its options; what else they wrote is kept as it is."""
    data, name = plugin.one.data, plugin.one.key.name
    written = {field: value for field, value in data["spec"].items() if value is not None}
    filled = {
        "displayName": display_name(name), "releaseNamespace": release.namespace, "releaseName": release.name,
    }  # fmt: skip
    spec = {**{field: value for field, value in filled.items() if value}, **written}
    if release.name:
        spec["releaseName"] = release.name
    ref = {"pluginDefinitionRef": plugin.spec.definition.as_data()}
    spec = {**ref, **{field: value for field, value in spec.items() if field not in _REPLACED}}
    return {"apiVersion": API_VERSION, "kind": PLUGIN, "metadata": dict(data["metadata"]), "spec": spec}


def with_options(data: Mapping[str, Any], options: Sequence[ResolvedOption]) -> tuple[dict[str, Any], str]:
    """Return the spec of a Plugin with its options, last, and the text of the whole.

    Most options of most Plugins are those of others, so that their texts are put together, and not written anew.
    """
    spec = {**data["spec"], "optionValues": [one.data for one in options]}
    if not options:
        return spec, emit({**data, "spec": spec})
    return spec, f"{emit(dict(data))}  optionValues:\n{''.join(one.text for one in options)}"


def display_name(name: str) -> str:
    """Return what a Plugin is called where nobody says so."""
    return name.replace("-", " ").strip()


def string_map(data: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the labels or annotations of a Plugin that stands on a branch, whatever people made of it."""
    metadata = data.get("metadata")
    entries = metadata.get(name) if isinstance(metadata, dict) else None
    found = entries.items() if isinstance(entries, dict) else ()
    return {key: value for key, value in found if isinstance(key, str) and isinstance(value, str)}
