"""Status of presets: their conditions, and the state of each of their Plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from reconciler.api.greenhouse import create_plugin_key
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.plugin_presets.config_objects import Preset
from reconciler.controllers.plugin_presets.plugin_outcomes import (
    BuiltPlugin,
    FailedPlugin,
    PluginOutcome,
    SkippedPlugin,
    SuspendedPlugin,
)
from reconciler.controllers.results import ConfigStatus
from reconciler.krm.findings import Finding, join_messages
from reconciler.krm.objects import Condition, ObjectKey, upsert_conditions
from reconciler.lazy_dataclasses import dataclass, replace

PluginState = Literal["UpToDate", "Draft", "Approved", "Skipped", "Failed", "PendingDeletion", "Orphaned", "Suspended"]
FAILED, NOT_FOUND, EMPTY = "PluginFailed", "PluginDefinitionNotFound", "ClusterListEmpty"
SKIPPED, ALL_READY, OWNER_LABEL = "PluginSkipped", "AllPluginsReady", "OwnerLabelSet"
_UNKNOWN_MESSAGE = "the state of the preset's Plugins is not known yet"


@dataclass(frozen=True)
class RemovedPlugins:
    """The Plugins that a preset no longer requests, but that stay on their target branches.

    `blocked` are Plugins whose deletion is blocked, for the reason `reason`. `orphans` are Plugins without an owner.
    """

    blocked: Sequence[PackageLocation] = ()
    reason: str = ""
    orphans: Sequence[PackageLocation] = ()


def build_invalid_status(
    manifest: ConfigObject, errors: Sequence[Finding], selector_codes: Iterable[str]
) -> ConfigStatus:
    """Return the status of an invalid preset. The Plugins of the preset stay unchanged."""
    first_error = errors[0]
    conditions = [Condition("Ready", "False", first_error.code, first_error.message)]
    about_clusters = [error for error in errors if error.code in selector_codes]
    if about_clusters:
        message = f"Invalid ClusterSelector: {about_clusters[0].message}"
        conditions.append(Condition(EMPTY, "True", about_clusters[0].code, message))
    return ConfigStatus(manifest.key, manifest.api_version, upsert_conditions(conditions))


def build_missing_definition_status(
    preset: Preset, code: str, reason: str, owner_label: Condition | None
) -> ConfigStatus:
    """Return the status of a preset without a usable definition. The Plugins of the preset stay unchanged."""
    conditions = (
        Condition(NOT_FOUND, "True", code, reason),
        Condition(FAILED, "True", code, reason),
        Condition("Ready", "False", FAILED, reason),
    )
    owner_labels = (owner_label,) if owner_label else ()
    return ConfigStatus(preset.key, preset.manifest.api_version, upsert_conditions((*conditions, *owner_labels)))


def build_preset_status(
    preset: Preset,
    outcomes: Sequence[PluginOutcome],
    version: str,
    removed: RemovedPlugins,
    owner_label: Condition | None,
) -> ConfigStatus:
    """Return the status of a preset before its Plugins are rendered. The states of most Plugins are still unknown.

    After planning, `complete_status` adds these states.
    """
    rows = [*(_build_row(outcome) for outcome in outcomes), *_iterate_removed_rows(removed)]
    fields: dict[str, Any] = {
        "matchedClusters": len(outcomes),
        "pluginDefinitionVersion": version,
        "pluginStatuses": sorted(rows, key=_get_sort_key),
    }
    conditions = [
        _build_empty(outcomes),
        _build_failed(outcomes),
        _build_skipped(outcomes),
        Condition(NOT_FOUND, "False", "Found", ""),
    ]
    conditions += [owner_label] if owner_label else []
    conditions += (
        [Condition(ControllerCodes.DELETION_HELD.name, "True", ControllerCodes.DELETION_HELD.name, removed.reason)]
        if removed.reason
        else []
    )
    children = tuple(outcome.request.key for outcome in outcomes if not isinstance(outcome, SkippedPlugin))
    status = ConfigStatus(preset.key, preset.manifest.api_version, tuple(conditions), fields, children=children)
    return complete_status(status, {})


def complete_status(
    status: ConfigStatus,
    states: Mapping[ObjectKey, PluginState],
    deletions: Mapping[PackageLocation, PluginState] | None = None,
) -> ConfigStatus:
    """Return the status of a preset after planning has determined the state of each Plugin.

    If the state of a Plugin is unknown, the condition AllPluginsReady is Unknown. In this case, the condition Ready is
    Unknown too. However, Ready is False if a Plugin has failed or no cluster matches.

    Args:
        status: The status from `build_preset_status`.
        states: The state of each requested Plugin.
        deletions: The state of each Plugin that is being deleted.
    """
    rows = status.fields.get("pluginStatuses")
    if not isinstance(rows, list):
        return status
    new_rows = [
        # If a row of `pluginStatuses` already has a state, e.g. Skipped, keep this state. The state in `states` may
        # belong to a Plugin with the same name on another cluster.
        {**row, "state": row["state"] or states.get(create_plugin_key(status.key.namespace, row["pluginName"]), "")}
        for row in _merge_removed_rows(rows, deletions or {})
    ]
    requested_rows = [row for row in new_rows if row["state"] not in ("Skipped", "PendingDeletion", "Orphaned")]
    ready = sum(row["state"] == "UpToDate" for row in requested_rows)
    failed = sum(row["state"] == "Failed" for row in requested_rows)
    counts = {"totalPlugins": len(requested_rows), "readyPlugins": ready, "failedPlugins": failed}
    is_known = all(row["state"] for row in requested_rows)
    conditions = upsert_conditions(status.conditions, _build_all_ready(ready, len(requested_rows), is_known=is_known))
    conditions = upsert_conditions(conditions, _build_ready(conditions))
    return replace(status, conditions=conditions, fields={**status.fields, **counts, "pluginStatuses": new_rows})


def _build_all_ready(ready: int, total: int, *, is_known: bool) -> Condition:
    message = f"{ready} of {total} plugins are ready"
    if not is_known:
        return Condition(ALL_READY, "Unknown", "Unknown", _UNKNOWN_MESSAGE)
    return Condition(ALL_READY, "True" if total and ready == total else "False", "Counted", message)


def _build_ready(conditions: Sequence[Condition]) -> Condition:
    """Return the condition `Ready`.

    The reason of the condition is the first of these problems: failed Plugins, no clusters, Plugins that are not ready.
    """
    conditions_by_type = {condition.type: condition for condition in conditions}
    if conditions_by_type[FAILED].status == "True":
        return Condition("Ready", "False", FAILED, "Plugin reconciliation failed")
    if conditions_by_type[EMPTY].status == "True":
        return Condition("Ready", "False", EMPTY, conditions_by_type[EMPTY].message)
    if conditions_by_type[ALL_READY].status == "True":
        return Condition("Ready", "True", "Ready", "ready")
    return Condition("Ready", conditions_by_type[ALL_READY].status, ALL_READY, conditions_by_type[ALL_READY].message)


def _build_empty(outcomes: Sequence[PluginOutcome]) -> Condition:
    if outcomes:
        return Condition(EMPTY, "False", "ClustersMatch", "")
    return Condition(EMPTY, "True", "NoClusterMatches", "No cluster matches ClusterSelector")


def _build_failed(outcomes: Sequence[PluginOutcome]) -> Condition:
    causes = [
        f"{outcome.request.key.name}: {outcome.message}" for outcome in outcomes if isinstance(outcome, FailedPlugin)
    ]
    if not causes:
        return Condition(FAILED, "False", "NoneFailed", "")
    return Condition(FAILED, "True", "PluginReconcileFailed", join_messages(causes))


def _build_skipped(outcomes: Sequence[PluginOutcome]) -> Condition:
    names = [outcome.request.key.name for outcome in outcomes if isinstance(outcome, SkippedPlugin)]
    if not names:
        return Condition(SKIPPED, "False", "NoneSkipped", "")
    return Condition(SKIPPED, "True", "ExistingPlugins", f"Skipped existing plugins: {', '.join(sorted(names))}")


def _build_row(outcome: PluginOutcome) -> dict[str, Any]:
    row: dict[str, Any] = {"pluginName": outcome.request.key.name, "clusterName": outcome.request.target.repository}
    match outcome:
        case BuiltPlugin(variant=variant):
            # Sort the codes, because the order of the findings depends on file names.
            return {**row, "state": "", "codes": sorted({finding.code for finding in variant.findings})}
        case FailedPlugin(codes=failures, message=message):
            return {**row, "state": "Failed", "codes": list(failures), "message": message}
        case SuspendedPlugin(finding=finding):
            return {**row, "state": "Suspended", "codes": [finding.code], "message": finding.message}
        case SkippedPlugin(finding=finding):
            return {**row, "state": "Skipped", "codes": [finding.code], "message": finding.message}


def _iterate_removed_rows(removed: RemovedPlugins) -> Iterator[dict[str, Any]]:
    for location in removed.orphans:
        yield _build_removed_row(location, "Orphaned")
    for location in removed.blocked:
        yield {
            **_build_removed_row(location, "PendingDeletion"),
            "codes": [ControllerCodes.DELETION_HELD.name],
            "message": removed.reason,
        }


def _build_removed_row(location: PackageLocation, state: PluginState) -> dict[str, Any]:
    cluster, package = location
    return {"pluginName": package.rpartition("/")[2], "clusterName": cluster, "state": state, "codes": []}


def _merge_removed_rows(
    rows: Sequence[dict[str, Any]], deletions: Mapping[PackageLocation, PluginState]
) -> list[dict[str, Any]]:
    """Return the sorted rows of `pluginStatuses`. The row about a deletion replaces the previous row of the Plugin."""
    deleted_rows = [_build_removed_row(location, state) for location, state in deletions.items()]
    deleted_names = {_get_sort_key(row) for row in deleted_rows}
    return sorted([*(row for row in rows if _get_sort_key(row) not in deleted_names), *deleted_rows], key=_get_sort_key)


def _get_sort_key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["pluginName"], row["clusterName"]
