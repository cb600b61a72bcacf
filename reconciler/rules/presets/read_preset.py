"""Reading PluginPresets: each with everything that is wrong with it (greenhouse 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from reconciler.krm.findings import Finding
from reconciler.krm.names import LABEL_LENGTH, segment_fault
from reconciler.krm.selectors import SELECTOR_FIELDS, LabelSelector, read_label_selector
from reconciler.krm.yaml import Path
from reconciler.rules.codes import SELECTOR_INVALID
from reconciler.rules.fields import Faults, Fields, dotted, shown
from reconciler.rules.presets.codes import (
    DUPLICATE_CLUSTER_OVERRIDE,
    PLUGIN_NAME_INVALID,
    PLUGIN_PRESET_INVALID,
    SELECTOR_EMPTY,
)
from reconciler.rules.presets.model import API_VERSION, DELETION_POLICIES, DeletionPolicy, Entries, Preset
from reconciler.rules.presets.read_entries import Told, read_entries, unquoted_mappings
from reconciler.rules.presets.read_spec import SPEC_FIELDS, check_object, read_plugin_spec, read_wait_for
from reconciler.snapshot.catalog import ConfigObject

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_PRESET_FIELDS = ("plugin", "clusterSelector", "clusterOptionOverrides", "waitFor", "deletionPolicy")


def read_preset(one: ConfigObject) -> tuple[Preset | None, tuple[Finding, ...]]:
    """Return the preset, None if it cannot be used, and what is wrong with it or with Plugins that it makes."""
    faults, told = Faults(one.where_at, PLUGIN_PRESET_INVALID), Told()
    whole = Fields(one.data, (), faults, _OBJECT_FIELDS)
    check_object(whole, one.api_version, API_VERSION)
    _check_names(one, faults)
    spec = whole.mapping("spec", _PRESET_FIELDS, quotes=False)
    selector = _read_selector(spec)
    plugin = read_plugin_spec(spec.mapping("plugin", SPEC_FIELDS, quotes=False), read_wait_for(spec), told)
    cluster_options, paths = _read_cluster_options(spec, told)
    policy = cast("DeletionPolicy", spec.choice("deletionPolicy", DELETION_POLICIES, "Delete"))
    if faults.findings or selector is None:
        return None, (*faults.findings, *told.findings)
    return Preset(one, plugin, selector, cluster_options, paths, policy), tuple(told.findings)


def _check_names(one: ConfigObject, faults: Faults) -> None:
    path: Path = ("metadata", "name")
    if fault := segment_fault(one.key.name):
        faults.add(path, f"must be one that Plugins can begin with: {fault}", PLUGIN_NAME_INVALID)
    elif len(one.key.name) > LABEL_LENGTH:
        message = (
            f"must have at most {LABEL_LENGTH} characters, for it is a label's value, too, not {shown(one.key.name)}"
        )
        faults.add(path, message, PLUGIN_NAME_INVALID)


def _read_selector(spec: Fields) -> LabelSelector | None:
    data = spec.data.get("clusterSelector")
    selector, found = read_label_selector(data)
    for fault in found:
        spec.fault("clusterSelector", f"is not valid: {fault}", SELECTOR_INVALID)
    if selector == LabelSelector():
        # what upstream takes for every cluster after an update, and refuses at first (greenhouse 3.2)
        message = f"must have {' or '.join(SELECTOR_FIELDS)} with something in it, not {shown(data)}"
        spec.fault("clusterSelector", message, SELECTOR_EMPTY)
    return selector


def _read_cluster_options(spec: Fields, told: Told) -> tuple[Mapping[str, Entries], Mapping[str, Path]]:
    """Return the options by cluster, and where those of each begin."""
    found: dict[str, Entries] = {}
    first: dict[str, Path] = {}
    for one in unquoted_mappings(spec, "clusterOptionOverrides", ("clusterName", "overrides")):
        name = one.text("clusterName", required=True)
        if not one.has("overrides"):
            one.fault("overrides", "must be a list of options")
        options = read_entries(one, "overrides", told)
        if name and name in found:
            message = f"{dotted(one.path)} must be for another cluster than {shown(name)}, as {dotted(first[name])} is"
            fault = DUPLICATE_CLUSTER_OVERRIDE.finding(message, spec.faults.where_at(one.path))
            told.findings.append(fault)
            options = Entries(found[name].entries, (*found[name].faults, *options.faults, fault))
        first.setdefault(name, one.path)
        found[name] = options
    return found, first
