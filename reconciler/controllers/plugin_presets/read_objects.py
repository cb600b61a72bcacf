"""Readers of PluginPresets, Plugins, PluginOverrides, and the pluginOverrides of Organizations and Clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.model import (
    API_VERSION,
    DEFINITION,
    DEFINITION_KINDS,
    DELETION_POLICIES,
    MODES,
    DefinitionNameFilter,
    DefinitionRef,
    DeletionPolicy,
    OptionList,
    OverrideClusterChoice,
    OverrideClusterSelection,
    OverrideMode,
    PluginOverride,
    PluginSpec,
    Preset,
    StandalonePlugin,
    WaitForEntry,
)
from reconciler.controllers.plugin_presets.read_options import OptionFindings, read_entries, read_unquoted_mappings
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.names import MAX_LABEL_CHARACTERS, validate_name_segment
from reconciler.krm.selectors import SELECTOR_FIELDS, LabelSelector, read_label_selector
from reconciler.krm.yaml import DataPath

REF, SHORT_REF = "pluginDefinitionRef", "pluginDefinitionName"
SPEC_FIELDS = (
    REF, SHORT_REF, "displayName", "optionValues", "releaseNamespace", "releaseName", "deletionPolicy",
    "ignoreDifferences",
)  # fmt: skip
_COPIED_FIELDS = ("deletionPolicy", "ignoreDifferences")
_IGNORED_FIELDS = ("group", "version", "kind", "name", "paths")
RELEASE_NAME_LENGTH = 53
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def read_plugin_spec(
    fields: FieldReader, wait_for: tuple[WaitForEntry, ...], option_findings: OptionFindings, *, strict: bool = True
) -> PluginSpec:
    """Return the spec fields that presets and Plugins have in common.

    If `strict` is True, unknown fields of nested mappings are errors.
    """
    release = fields.read_text("releaseName")
    if release and (error := validate_release_name(release)):
        fields.add_finding(
            "releaseName", f"must be a valid Helm release name: {error}", PluginCodes.RELEASE_NAME_INVALID
        )
    if fields.has_value("deletionPolicy"):
        fields.read_choice("deletionPolicy", DELETION_POLICIES)
    _check_ignore_differences(fields, strict=strict)
    return PluginSpec(
        read_definition_ref(fields, strict=strict),
        read_entries(fields, "optionValues", option_findings, strict=strict),
        fields.read_text("displayName"),
        release,
        fields.read_text("releaseNamespace"),
        wait_for,
        {name: fields.data[name] for name in _COPIED_FIELDS if fields.has_value(name)},
    )


def validate_release_name(name: str) -> str:
    """Return the reason why a release name is invalid in Helm. Return "" if the name is valid."""
    if len(name) > RELEASE_NAME_LENGTH:
        return f"at most {RELEASE_NAME_LENGTH} characters, but {quote_value(name)} has {len(name)}"
    if not _RELEASE_NAME.fullmatch(name):
        return f'lower-case letters, digits and "-", in parts joined by single ".", not {quote_value(name)}'
    return ""


def read_definition_ref(fields: FieldReader, *, strict: bool) -> DefinitionRef:
    """Return the plugin definition that `pluginDefinitionRef` or `pluginDefinitionName` refers to."""
    if fields.has_value(SHORT_REF) and not fields.has_value(REF):
        return DefinitionRef(DEFINITION, fields.read_text(SHORT_REF))
    ref = fields.read_mapping(REF, ("name", "kind") if strict else None)
    kind, name = ref.read_choice("kind", DEFINITION_KINDS, DEFINITION), ref.read_text("name")
    if not name:
        ref.add_finding("name", "must name a plugin definition", PluginCodes.DEFINITION_REF_MISSING)
    if fields.has_value(SHORT_REF) and fields.data[SHORT_REF] != name:
        fields.add_finding(
            SHORT_REF, f"must be omitted or have the same name as {REF}, not {quote_value(fields.data[SHORT_REF])}"
        )
    return DefinitionRef(kind, name)


def read_wait_for(fields: FieldReader, *, strict: bool = True) -> tuple[WaitForEntry, ...]:
    """Return the distinct `waitFor` entries.

    An entry that does not name exactly one Plugin or preset is an error. A duplicate entry is an error as well.
    """
    entries: dict[WaitForEntry, DataPath] = {}
    for reader in fields.iterate_mappings("waitFor", ("pluginRef",) if strict else None):
        ref = reader.read_mapping("pluginRef", ("name", "pluginPreset") if strict else None)
        entry = WaitForEntry(ref.read_text("name"), ref.read_text("pluginPreset"))
        if bool(entry.name) == bool(entry.preset):
            error = "not both" if entry.name else "both are missing"
            reader.add_finding(
                "pluginRef", f"must have either name or pluginPreset; {error}", PluginCodes.WAIT_FOR_INVALID
            )
        elif entry in entries:
            reader.add_finding(
                "pluginRef",
                f"must not name {quote_value(entry.name or entry.preset)} again",
                PluginCodes.WAIT_FOR_DUPLICATE,
            )
        entries.setdefault(entry, reader.path)
    return tuple(entries)


def check_object(fields: FieldReader, api_version: str, expected: str) -> None:
    """Add an error if `api_version` is not the expected version, and an error if the spec is missing."""
    if api_version != expected:
        fields.add_finding("apiVersion", f"must be {expected}, not {quote_value(api_version)}")
    if not fields.has_value("spec"):
        fields.add_finding("spec", "must be a mapping")


def _check_ignore_differences(fields: FieldReader, *, strict: bool) -> None:
    for reader in fields.iterate_mappings("ignoreDifferences", _IGNORED_FIELDS if strict else None):
        for name in _IGNORED_FIELDS[:-1]:
            reader.read_text(name)
        if not reader.read_texts("paths"):
            reader.add_finding("paths", "must be a list of paths that is not empty")


def read_plugin(manifest: ConfigObject) -> tuple[StandalonePlugin | None, tuple[Finding, ...]]:
    """Return the Plugin and the findings. The Plugin is None if it is invalid. Unknown fields are ignored."""
    field_findings, option_findings = FieldFindings(manifest.location_of, PluginCodes.PLUGIN_INVALID), OptionFindings()
    reader = FieldReader(manifest.data, (), field_findings, None)
    check_object(reader, manifest.api_version, API_VERSION)
    if error := validate_name_segment(manifest.key.name):
        field_findings.add(
            ("metadata", "name"), f"must be a valid folder name: {error}", PluginCodes.PLUGIN_NAME_INVALID
        )
    spec = reader.read_mapping("spec", None, quotes=False)
    plugin = read_plugin_spec(spec, read_wait_for(spec, strict=False), option_findings, strict=False)
    cluster = spec.read_text("clusterName")
    valid_plugin = None if field_findings.findings else StandalonePlugin(manifest, plugin, cluster)
    return valid_plugin, (*field_findings.findings, *option_findings.findings)


_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_PRESET_FIELDS = ("plugin", "clusterSelector", "clusterOptionOverrides", "waitFor", "deletionPolicy")


def read_preset(manifest: ConfigObject) -> tuple[Preset | None, tuple[Finding, ...]]:
    """Return the preset, and the findings about the preset and its Plugins. The preset is None if it is invalid."""
    field_findings, option_findings = (
        FieldFindings(manifest.location_of, PluginCodes.PLUGIN_PRESET_INVALID),
        OptionFindings(),
    )
    reader = FieldReader(manifest.data, (), field_findings, _OBJECT_FIELDS)
    check_object(reader, manifest.api_version, API_VERSION)
    _check_names(manifest, field_findings)
    spec = reader.read_mapping("spec", _PRESET_FIELDS, quotes=False)
    selector = _read_selector(spec)
    plugin = read_plugin_spec(
        spec.read_mapping("plugin", SPEC_FIELDS, quotes=False), read_wait_for(spec), option_findings
    )
    cluster_options, paths = _read_cluster_options(spec, option_findings)
    policy = cast("DeletionPolicy", spec.read_choice("deletionPolicy", DELETION_POLICIES, "Delete"))
    if field_findings.findings or selector is None:
        return None, (*field_findings.findings, *option_findings.findings)
    return Preset(manifest, plugin, selector, cluster_options, paths, policy), tuple(option_findings.findings)


def _check_names(manifest: ConfigObject, field_findings: FieldFindings) -> None:
    path: DataPath = ("metadata", "name")
    if error := validate_name_segment(manifest.key.name):
        field_findings.add(path, f"must be a valid prefix of Plugin names: {error}", PluginCodes.PLUGIN_NAME_INVALID)
    elif len(manifest.key.name) > MAX_LABEL_CHARACTERS:
        message = (
            f"must have at most {MAX_LABEL_CHARACTERS} characters, because the name is also a label value;"
            f" {quote_value(manifest.key.name)} has {len(manifest.key.name)}"
        )
        field_findings.add(path, message, PluginCodes.PLUGIN_NAME_INVALID)


def _read_selector(spec: FieldReader) -> LabelSelector | None:
    data = spec.data.get("clusterSelector")
    selector, errors = read_label_selector(data)
    for error in errors:
        spec.add_finding("clusterSelector", f"is not valid: {error}", ControllerCodes.SELECTOR_INVALID)
    if selector == LabelSelector():
        # Reject an empty selector. Greenhouse rejects an empty selector in a new preset, but selects all clusters if an
        # update makes the selector empty.
        message = f"must have a non-empty {' or '.join(SELECTOR_FIELDS)}, not {quote_value(data)}"
        spec.add_finding("clusterSelector", message, PluginCodes.SELECTOR_EMPTY)
    return selector


def _read_cluster_options(
    spec: FieldReader, option_findings: OptionFindings
) -> tuple[Mapping[str, OptionList], Mapping[str, DataPath]]:
    """Return the options in `clusterOptionOverrides` by cluster, and the path of the first entry of each cluster."""
    options_by_cluster: dict[str, OptionList] = {}
    paths: dict[str, DataPath] = {}
    for reader in read_unquoted_mappings(spec, "clusterOptionOverrides", ("clusterName", "overrides")):
        name = reader.read_text("clusterName", required=True)
        if not reader.has_value("overrides"):
            reader.add_finding("overrides", "must be a list of options")
        options = read_entries(reader, "overrides", option_findings)
        if name and name in options_by_cluster:
            message = (
                f"{format_path(reader.path)} must not name cluster {quote_value(name)} again, which"
                f" {format_path(paths[name])} already names"
            )
            error = PluginCodes.DUPLICATE_CLUSTER_OVERRIDE.finding(message, spec.faults.where_at(reader.path))
            option_findings.findings.append(error)
            options = OptionList(
                options_by_cluster[name].entries, (*options_by_cluster[name].errors, *options.errors, error)
            )
        paths.setdefault(name, reader.path)
        options_by_cluster[name] = options
    return options_by_cluster, paths


_OVERRIDE_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = ("mode", "priority", "pluginDefinitionNames", "clusterSelector", "overrides")
_CHOICE_FIELDS = ("labelSelector", "clusterNames", "ignoreClusters")


def read_override(manifest: ConfigObject) -> tuple[PluginOverride, tuple[Finding, ...]]:
    """Return the PluginOverride and the findings. Errors in single options do not make the override invalid."""
    field_findings, option_findings = (
        FieldFindings(manifest.location_of, PluginCodes.PLUGIN_OVERRIDE_INVALID),
        OptionFindings(),
    )
    reader = FieldReader(manifest.data, (), field_findings, _OVERRIDE_FIELDS)
    check_object(reader, manifest.api_version, API_VERSION)
    spec = reader.read_mapping("spec", _SPEC_FIELDS, quotes=False)
    options = read_entries(spec, "overrides", option_findings, duplicate_code=PluginCodes.DUPLICATE_OVERRIDE)
    if not spec.data.get("overrides"):
        spec.add_finding("overrides", "must be a list of options that is not empty")
    mode = cast("OverrideMode", spec.read_choice("mode", MODES, "Override"))
    priority = _read_priority(spec)
    error_count = len(field_findings.findings)
    clusters, definitions = _read_clusters(spec), tuple(_read_definition_names(spec))
    if len(field_findings.findings) > error_count:
        # Select all Plugins if a selector is unreadable, because the override may apply to any Plugin.
        clusters, definitions = OverrideClusterSelection(), ()
    findings = (*field_findings.findings, *option_findings.findings)
    return PluginOverride(
        manifest, clusters, definitions, options, mode, priority, not field_findings.findings
    ), findings


def read_own_overrides(manifest: ConfigObject) -> tuple[OptionList, tuple[Finding, ...]]:
    """Return the options in `spec.pluginOverrides` of an Organization or a Cluster, and the findings about them."""
    field_findings, option_findings = (
        FieldFindings(manifest.location_of, PluginCodes.PLUGIN_OVERRIDES_INVALID),
        OptionFindings(),
    )
    data = manifest.data.get("spec")
    # Do not check other fields, because other controllers report the errors in these fields.
    spec = FieldReader(data if isinstance(data, Mapping) else None, ("spec",), field_findings, None)
    options = read_entries(spec, "pluginOverrides", option_findings)
    errors = tuple(field_findings.findings)
    return OptionList(options.entries, (*errors, *options.errors)), (*errors, *option_findings.findings)


def _read_priority(spec: FieldReader) -> int:
    value = spec.data.get("priority")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value or 0
    spec.add_finding("priority", f"must be a whole number, not {quote_value(value)}")
    return 0


def _read_definition_names(spec: FieldReader) -> Iterator[DefinitionNameFilter]:
    for index, text in enumerate(spec.read_texts("pluginDefinitionNames")):
        kind, slash, name = text.rpartition("/")
        if not name or (slash and kind not in DEFINITION_KINDS):
            allowed = ", ".join(("NAME", *(f"{definition_kind}/NAME" for definition_kind in DEFINITION_KINDS)))
            path: DataPath = (*spec.path, "pluginDefinitionNames", index)
            spec.faults.add(path, f"must be one of {allowed}, not {quote_value(text)}")
        else:
            yield DefinitionNameFilter(name, kind)


def _read_clusters(spec: FieldReader) -> OverrideClusterSelection:
    """Return the clusters that `clusterSelector` selects.

    The field contains a mapping, a label selector, or a list of mappings and label selectors.
    """
    choices: list[OverrideClusterChoice] = []
    ignored: list[str] = []
    for reader in _iterate_selector_items(spec):
        choice, ignored_names = _read_cluster_choice(reader), reader.read_texts("ignoreClusters")
        ignored += ignored_names
        # An item that contains no names and no labels selects all clusters. The clusters in `ignoreClusters` are
        # excluded from the whole selection.
        choices.append(choice or OverrideClusterChoice(LabelSelector()))
    is_for_all = all(item_choice.selector == LabelSelector() for item_choice in choices)
    return OverrideClusterSelection(() if is_for_all else tuple(choices), tuple(ignored))


def _iterate_selector_items(spec: FieldReader) -> Iterator[FieldReader]:
    value, path = spec.data.get("clusterSelector"), (*spec.path, "clusterSelector")
    if value is None:
        return
    items: list[tuple[DataPath, Any]] = (
        list(spec.iterate_items("clusterSelector")) if isinstance(value, list) else [(path, value)]
    )
    for item_path, item in items:
        is_bare = isinstance(item, Mapping) and any(name in item for name in SELECTOR_FIELDS)
        if is_bare:
            yield FieldReader({"labelSelector": item}, item_path, spec.faults, _CHOICE_FIELDS)
        else:
            yield FieldReader(item, item_path, spec.faults, _CHOICE_FIELDS)


def _read_cluster_choice(reader: FieldReader) -> OverrideClusterChoice | None:
    selector, errors = read_label_selector(reader.data.get("labelSelector"))
    for error in errors:
        reader.add_finding("labelSelector", f"is not valid: {error}", ControllerCodes.SELECTOR_INVALID)
    names = reader.read_texts("clusterNames")
    non_empty_selector = selector if selector != LabelSelector() else None
    return OverrideClusterChoice(non_empty_selector, names) if non_empty_selector or names else None
