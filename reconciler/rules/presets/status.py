"""What presets are told of themselves and of each of their Plugins (greenhouse 13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.messages import join_messages
from reconciler.rules.codes import DELETION_HELD
from reconciler.rules.guards import Unit
from reconciler.rules.presets.model import Preset, plugin_key
from reconciler.rules.presets.outcome import Failed, Made, Outcome, Resting, Skipped
from reconciler.rules.variant import ConfigStatus
from reconciler.snapshot.catalog import ConfigObject

PluginState = Literal["UpToDate", "Draft", "Approved", "Skipped", "Failed", "PendingDeletion", "Orphaned", "Suspended"]
FAILED, NOT_FOUND, EMPTY = "PluginFailed", "PluginDefinitionNotFound", "ClusterListEmpty"
SKIPPED, ALL_READY, OWNER_LABEL = "PluginSkipped", "AllPluginsReady", "OwnerLabelSet"
_UNKNOWN = "its Plugins were not looked at yet"


@dataclass(frozen=True)
class Leaving:
    """The Plugins that a preset does not want any more: those that it keeps, for a reason, and those left to people.

    Which of the others go, and how far that has come, is known to whoever plans.
    """

    held: Sequence[Unit] = ()
    why: str = ""
    orphans: Sequence[Unit] = ()


def invalid_status(one: ConfigObject, faults: Sequence[Finding], selector_codes: Iterable[str]) -> ConfigStatus:
    """Return the status of a preset that cannot be read; whatever it made stays."""
    first = faults[0]
    conditions = [Condition("Ready", "False", first.code, first.message)]
    about_clusters = [fault for fault in faults if fault.code in selector_codes]
    if about_clusters:
        message = f"Invalid ClusterSelector: {about_clusters[0].message}"
        conditions.append(Condition(EMPTY, "True", about_clusters[0].code, message))
    return ConfigStatus(one.key, one.api_version, upsert(conditions))


def without_definition(preset: Preset, code: str, why: str, owner_label: Condition | None) -> ConfigStatus:
    """Return the status of a preset whose definition cannot be used; the Plugins that it made stay."""
    conditions = (
        Condition(NOT_FOUND, "True", code, why),
        Condition(FAILED, "True", code, why),
        Condition("Ready", "False", FAILED, why),
    )
    told = (owner_label,) if owner_label else ()
    return ConfigStatus(preset.key, preset.one.api_version, upsert((*conditions, *told)))


def preset_status(
    preset: Preset, outcomes: Sequence[Outcome], version: str, leaving: Leaving, owner_label: Condition | None
) -> ConfigStatus:
    """Return the status of a preset as far as it is known before its Plugins are rendered.

    `settled` completes it.
    """
    rows = [*(_row(one) for one in outcomes), *_leaving_rows(leaving)]
    fields: dict[str, Any] = {
        "matchedClusters": len(outcomes),
        "pluginDefinitionVersion": version,
        "pluginStatuses": sorted(rows, key=_order),
    }
    conditions = [_empty(outcomes), _failed(outcomes), _skipped(outcomes), Condition(NOT_FOUND, "False", "Found", "")]
    conditions += [owner_label] if owner_label else []
    conditions += [Condition(DELETION_HELD.name, "True", DELETION_HELD.name, leaving.why)] if leaving.why else []
    children = tuple(one.wish.key for one in outcomes if not isinstance(one, Skipped))
    known = ConfigStatus(preset.key, preset.one.api_version, tuple(conditions), fields, children=children)
    return settled(known, {})


def settled(
    status: ConfigStatus, states: Mapping[ObjectKey, PluginState], leaving: Mapping[Unit, PluginState] | None = None
) -> ConfigStatus:
    """Return the status of a preset with what became of its Plugins, by their identities; whoever plans knows it.

    `leaving` are the Plugins that it does not want any more and that are on their way out, as long as they are.
    As long as nothing is known of one, AllPluginsReady and Ready are Unknown, unless something is wrong anyway.
    """
    rows = status.fields.get("pluginStatuses")
    if not isinstance(rows, list):
        return status
    told = [
        # of one that is skipped, another of its name may have a state, on another cluster even
        {**row, "state": row["state"] or states.get(plugin_key(status.key.namespace, row["pluginName"]), "")}
        for row in _with_leaving(rows, leaving or {})
    ]
    wanted = [row for row in told if row["state"] not in ("Skipped", "PendingDeletion", "Orphaned")]
    ready = sum(row["state"] == "UpToDate" for row in wanted)
    failed = sum(row["state"] == "Failed" for row in wanted)
    counts = {"totalPlugins": len(wanted), "readyPlugins": ready, "failedPlugins": failed}
    is_known = all(row["state"] for row in wanted)
    conditions = upsert(status.conditions, _all_ready(ready, len(wanted), is_known=is_known))
    conditions = upsert(conditions, _ready(conditions))
    return replace(status, conditions=conditions, fields={**status.fields, **counts, "pluginStatuses": told})


def _all_ready(ready: int, total: int, *, is_known: bool) -> Condition:
    message = f"{ready} of {total} plugins are ready"
    if not is_known:
        return Condition(ALL_READY, "Unknown", "Unknown", _UNKNOWN)
    return Condition(ALL_READY, "True" if total and ready == total else "False", "Counted", message)


def _ready(conditions: Sequence[Condition]) -> Condition:
    """Return whether the preset is ready: the first thing that is wrong decides (greenhouse 13)."""
    found = {one.type: one for one in conditions}
    if found[FAILED].status == "True":
        return Condition("Ready", "False", FAILED, "Plugin reconciliation failed")
    if found[EMPTY].status == "True":
        return Condition("Ready", "False", EMPTY, found[EMPTY].message)
    if found[ALL_READY].status == "True":
        return Condition("Ready", "True", "Ready", "ready")
    return Condition("Ready", found[ALL_READY].status, ALL_READY, found[ALL_READY].message)


def _empty(outcomes: Sequence[Outcome]) -> Condition:
    if outcomes:
        return Condition(EMPTY, "False", "ClustersMatch", "")
    return Condition(EMPTY, "True", "NoClusterMatches", "No cluster matches ClusterSelector")


def _failed(outcomes: Sequence[Outcome]) -> Condition:
    causes = [f"{one.wish.key.name}: {one.message}" for one in outcomes if isinstance(one, Failed)]
    if not causes:
        return Condition(FAILED, "False", "NoneFailed", "")
    return Condition(FAILED, "True", "PluginReconcileFailed", join_messages(causes))


def _skipped(outcomes: Sequence[Outcome]) -> Condition:
    names = [one.wish.key.name for one in outcomes if isinstance(one, Skipped)]
    if not names:
        return Condition(SKIPPED, "False", "NoneSkipped", "")
    return Condition(SKIPPED, "True", "ExistingPlugins", f"Skipped existing plugins: {', '.join(sorted(names))}")


def _row(one: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"pluginName": one.wish.key.name, "clusterName": one.wish.place.repository}
    match one:
        case Made(variant=variant):
            # findings come in the order of files, of which nobody is told here
            return {**row, "state": "", "codes": sorted({finding.code for finding in variant.findings})}
        case Failed(codes=failures, message=message):
            return {**row, "state": "Failed", "codes": list(failures), "message": message}
        case Resting(finding=finding):
            return {**row, "state": "Suspended", "codes": [finding.code], "message": finding.message}
        case Skipped(finding=finding):
            return {**row, "state": "Skipped", "codes": [finding.code], "message": finding.message}


def _leaving_rows(leaving: Leaving) -> Iterator[dict[str, Any]]:
    for unit in leaving.orphans:
        yield _leaving_row(unit, "Orphaned")
    for unit in leaving.held:
        yield {**_leaving_row(unit, "PendingDeletion"), "codes": [DELETION_HELD.name], "message": leaving.why}


def _leaving_row(unit: Unit, state: PluginState) -> dict[str, Any]:
    cluster, package = unit
    return {"pluginName": package.rpartition("/")[2], "clusterName": cluster, "state": state, "codes": []}


def _with_leaving(rows: Sequence[dict[str, Any]], leaving: Mapping[Unit, PluginState]) -> list[dict[str, Any]]:
    """Return the rows with those of what leaves, which say more than that it lies there."""
    gone = [_leaving_row(unit, state) for unit, state in leaving.items()]
    known = {_order(row) for row in gone}
    return sorted([*(row for row in rows if _order(row) not in known), *gone], key=_order)


def _order(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["pluginName"], row["clusterName"]
