"""Reading PluginOverrides, and the pluginOverrides of organizations and clusters (greenhouse 2.2, 2.3, 2.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from reconciler.krm.findings import Finding
from reconciler.krm.selectors import SELECTOR_FIELDS, LabelSelector, read_label_selector
from reconciler.krm.yaml import Path
from reconciler.rules.codes import SELECTOR_INVALID
from reconciler.rules.fields import Faults, Fields, shown
from reconciler.rules.presets.codes import DUPLICATE_OVERRIDE, PLUGIN_OVERRIDE_INVALID, PLUGIN_OVERRIDES_INVALID
from reconciler.rules.presets.model import (
    API_VERSION,
    DEFINITION_KINDS,
    MODES,
    ClusterChoice,
    ClusterSelection,
    DefinitionName,
    Entries,
    Mode,
    PluginOverride,
)
from reconciler.rules.presets.read_entries import Told, read_entries
from reconciler.rules.presets.read_spec import check_object
from reconciler.snapshot.catalog import ConfigObject

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = ("mode", "priority", "pluginDefinitionNames", "clusterSelector", "overrides")
_CHOICE_FIELDS = ("labelSelector", "clusterNames", "ignoreClusters")


def read_override(one: ConfigObject) -> tuple[PluginOverride, tuple[Finding, ...]]:
    """Return the override, which is not sound where anything is wrong with it as a whole, and what is wrong."""
    faults, told = Faults(one.where_at, PLUGIN_OVERRIDE_INVALID), Told()
    whole = Fields(one.data, (), faults, _OBJECT_FIELDS)
    check_object(whole, one.api_version, API_VERSION)
    spec = whole.mapping("spec", _SPEC_FIELDS, quotes=False)
    options = read_entries(spec, "overrides", told, twice=DUPLICATE_OVERRIDE)
    if not spec.data.get("overrides"):
        spec.fault("overrides", "must be a list of options that is not empty")
    mode = cast("Mode", spec.choice("mode", MODES, "Override"))
    priority = _priority(spec)
    reach = len(faults.findings)
    clusters, definitions = _read_clusters(spec), tuple(_definition_names(spec))
    if len(faults.findings) > reach:
        # whom it is for cannot be read: it may be for anybody
        clusters, definitions = ClusterSelection(), ()
    found = (*faults.findings, *told.findings)
    return PluginOverride(one, clusters, definitions, options, mode, priority, not faults.findings), found


def read_own_overrides(one: ConfigObject) -> tuple[Entries, tuple[Finding, ...]]:
    """Return the spec.pluginOverrides of an Organization or a Cluster; its other fields are not looked at."""
    faults, told = Faults(one.where_at, PLUGIN_OVERRIDES_INVALID), Told()
    data = one.data.get("spec")
    # what else is wrong with the object is for those who read the rest of it
    spec = Fields(data if isinstance(data, Mapping) else None, ("spec",), faults, None)
    options = read_entries(spec, "pluginOverrides", told)
    found = tuple(faults.findings)
    return Entries(options.entries, (*found, *options.faults)), (*found, *told.findings)


def _priority(spec: Fields) -> int:
    value = spec.data.get("priority")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value or 0
    spec.fault("priority", f"must be a whole number, not {shown(value)}")
    return 0


def _definition_names(spec: Fields) -> Iterator[DefinitionName]:
    for index, text in enumerate(spec.texts("pluginDefinitionNames")):
        kind, slash, name = text.rpartition("/")
        if not name or (slash and kind not in DEFINITION_KINDS):
            allowed = ", ".join(("NAME", *(f"{one}/NAME" for one in DEFINITION_KINDS)))
            path: Path = (*spec.path, "pluginDefinitionNames", index)
            spec.faults.add(path, f"must be one of {allowed}, not {shown(text)}")
        else:
            yield DefinitionName(name, kind)


def _read_clusters(spec: Fields) -> ClusterSelection:
    """Return the clusters, in any spelling: a struct, a bare label selector, a list of these (greenhouse 2.6)."""
    choices: list[ClusterChoice] = []
    ignored: list[str] = []
    for one in _items(spec):
        choice, left_out = _read_choice(one), one.texts("ignoreClusters")
        ignored += left_out
        # an item that only ignores is for all others, whatever its neighbours choose; one that says nothing is for all
        choices.append(choice or ClusterChoice(LabelSelector()))
    is_for_all = all(one.selector == LabelSelector() for one in choices)
    return ClusterSelection(() if is_for_all else tuple(choices), tuple(ignored))


def _items(spec: Fields) -> Iterator[Fields]:
    value, path = spec.data.get("clusterSelector"), (*spec.path, "clusterSelector")
    if value is None:
        return
    listed: list[tuple[Path, Any]] = list(spec.items("clusterSelector")) if isinstance(value, list) else [(path, value)]
    for at, item in listed:
        is_bare = isinstance(item, Mapping) and any(name in item for name in SELECTOR_FIELDS)
        if is_bare:
            yield Fields({"labelSelector": item}, at, spec.faults, _CHOICE_FIELDS)
        else:
            yield Fields(item, at, spec.faults, _CHOICE_FIELDS)


def _read_choice(one: Fields) -> ClusterChoice | None:
    selector, found = read_label_selector(one.data.get("labelSelector"))
    for fault in found:
        one.fault("labelSelector", f"is not valid: {fault}", SELECTOR_INVALID)
    names = one.texts("clusterNames")
    wanted = selector if selector != LabelSelector() else None
    return ClusterChoice(wanted, names) if wanted or names else None
