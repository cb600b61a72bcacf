"""Reading Plugins that people wrote themselves; unknown fields are kept (greenhouse 2.7, design 10.4)."""

from __future__ import annotations

from reconciler.krm.findings import Finding
from reconciler.krm.names import segment_fault
from reconciler.rules.fields import Faults, Fields
from reconciler.rules.presets.codes import PLUGIN_INVALID, PLUGIN_NAME_INVALID
from reconciler.rules.presets.model import API_VERSION, StandalonePlugin
from reconciler.rules.presets.read_entries import Told
from reconciler.rules.presets.read_spec import check_object, read_plugin_spec, read_wait_for
from reconciler.snapshot.catalog import ConfigObject


def read_plugin(one: ConfigObject) -> tuple[StandalonePlugin | None, tuple[Finding, ...]]:
    """Return the Plugin, None if it cannot be used, and what is wrong with it."""
    faults, told = Faults(one.where_at, PLUGIN_INVALID), Told()
    whole = Fields(one.data, (), faults, None)
    check_object(whole, one.api_version, API_VERSION)
    if fault := segment_fault(one.key.name):
        faults.add(("metadata", "name"), f"must be one that a folder can have: {fault}", PLUGIN_NAME_INVALID)
    spec = whole.mapping("spec", None, quotes=False)
    plugin = read_plugin_spec(spec, read_wait_for(spec, strict=False), told, strict=False)
    cluster = spec.text("clusterName")
    sound = None if faults.findings else StandalonePlugin(one, plugin, cluster)
    return sound, (*faults.findings, *told.findings)
