"""Deletion of Plugins that are no longer requested.

The module detects Plugins that stay on the cluster without an owner (orphans). It also builds deletion guards, for
example for suspended Plugins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.api.greenhouse import CLUSTER, GROUP, PREVENT_DELETION_ANNOTATION, SUSPEND_ANNOTATION
from reconciler.api.greenhouse_overrides import PLUGIN_DELETION_ANNOTATION
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.cluster_packages import build_deletion_guard, get_package_target
from reconciler.controllers.deletion_guards import ACK_DELETIONS, DeletionDecision, PackageLocation, decide_deletions
from reconciler.controllers.plugin_presets.config_objects import Preset
from reconciler.controllers.plugin_presets.inputs import PluginPresetInputs
from reconciler.controllers.plugin_presets.plugin_requests import PluginTargets
from reconciler.controllers.results import DeletionGuard
from reconciler.krm.field_text import format_list
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace


def is_retained(preset: Preset | None, cluster: ConfigObject | None) -> bool:
    """Return whether the preset or the Cluster of a Plugin sets the deletion policy `Retain`."""
    if cluster and cluster.annotations.get(PLUGIN_DELETION_ANNOTATION, "").lower() == "retain":
        return True
    return preset is not None and preset.spec.deletion_policy == "Retain"


def find_orphans(
    preset: Preset, known_locations: Collection[PackageLocation], targets: PluginTargets, catalog: Catalog
) -> tuple[PackageLocation, ...]:
    """Return the locations of orphans.

    Orphans are published Plugins that have the label of a preset, but have no owner after this pass.

    Args:
        preset: The preset that the label refers to.
        known_locations: Locations of requested Plugins, and of Plugins whose deletion is blocked. These Plugins are not
            orphans.
    """
    orphans: list[PackageLocation] = []
    for location in targets.labelled_locations.get(preset.key, ()):
        cluster = catalog.get(ObjectKey(GROUP, CLUSTER, preset.key.namespace, location[0]))
        if location not in known_locations and (location not in targets.owners or is_retained(preset, cluster)):
            orphans.append(location)
    return tuple(orphans)


@dataclass(frozen=True)
class GuardedPlugins:
    """The deletion guard of a preset, and the Plugins that the guard protects.

    Attributes:
        is_guarded: Whether all deletions are blocked, because they exceed the limit or the preset prevents deletions.
            If False, only the deletion of suspended Plugins is blocked.
    """

    guard: DeletionGuard
    blocked: tuple[PackageLocation, ...] = ()
    is_guarded: bool = False


def guard_preset(
    preset: Preset, requested_locations: Collection[PackageLocation], targets: PluginTargets
) -> GuardedPlugins:
    """Return the deletion guard for the Plugins that a preset no longer requests."""
    existing = targets.locations_by_owner.get(preset.key, ())
    obsolete = sorted(location for location in existing if location not in requested_locations)
    suspended = [location for location in obsolete if is_suspended(location, targets)]
    deletions = [location for location in obsolete if location not in suspended]
    if not deletions:
        reason = _format_suspended_reason(suspended) if suspended else ""
        return GuardedPlugins(DeletionGuard(frozenset(), reason), tuple(suspended))
    decision = _decide(preset, deletions, len(existing), targets.inputs)
    package_targets = frozenset(get_package_target(location, targets.inventory) for location in deletions)
    acknowledged_hashes = frozenset({preset.manifest.annotations.get(ACK_DELETIONS, "")} - {""})
    # Do not offer a confirmation if the preset prevents deletions, because a confirmation would have no effect.
    can_be_confirmed = not is_deletion_prevented(preset)
    guard = build_deletion_guard(decision, package_targets, acknowledged_hashes, can_be_confirmed=can_be_confirmed)
    if decision.reason:
        return GuardedPlugins(guard, (*deletions, *suspended), is_guarded=True)
    return GuardedPlugins(replace(guard, reason=_format_suspended_reason(suspended)), tuple(suspended))


def guard_suspended(
    locations: Collection[PackageLocation], targets: PluginTargets
) -> Mapping[ObjectKey, DeletionGuard]:
    """Return a deletion guard for each owner of a suspended Plugin in `locations`."""
    locations_by_owner: dict[ObjectKey, list[PackageLocation]] = {}
    for location in sorted(locations):
        owner = targets.owners[location]
        locations_by_owner.setdefault(owner.parent or owner.key, []).append(location)
    guards: dict[ObjectKey, DeletionGuard] = {}
    for owner_key, owned in locations_by_owner.items():
        suspended = [location for location in owned if is_suspended(location, targets)]
        if suspended:
            allowed = frozenset(
                get_package_target(location, targets.inventory) for location in owned if location not in suspended
            )
            guards[owner_key] = DeletionGuard(allowed, _format_suspended_reason(suspended))
    return guards


def is_suspended(location: PackageLocation, targets: PluginTargets) -> bool:
    """Return whether the Plugin that is published at a location has the suspend annotation."""
    cluster, package = location
    published = targets.list_published(cluster).get(package)
    return published is not None and published.is_suspended


def is_deletion_prevented(preset: Preset) -> bool:
    """Return whether a preset has the annotation that prevents all deletions of Plugins, even confirmed deletions."""
    return PREVENT_DELETION_ANNOTATION in preset.manifest.annotations


def _decide(
    preset: Preset, deletions: list[PackageLocation], existing_count: int, inputs: PluginPresetInputs
) -> DeletionDecision:
    annotations = preset.manifest.annotations
    if is_deletion_prevented(preset):
        examples = format_list(["/".join(location) for location in deletions])
        return DeletionDecision(
            f"the annotation {PREVENT_DELETION_ANNOTATION} of {preset.key} prevents the deletion of Plugins that the"
            f" preset no longer requests: {examples}",
            existing_count,
        )
    acknowledged_hashes, blocked_counts = (
        {annotations.get(ACK_DELETIONS, "")},
        inputs.blocked_counts.get(preset.key, {}),
    )
    nouns = ("Plugins", str(preset.key))
    return decide_deletions(
        deletions, existing_count, blocked_counts, acknowledged_hashes, inputs.max_delete_percent, nouns
    )


def _format_suspended_reason(locations: Collection[PackageLocation]) -> str:
    examples = ", ".join("/".join(location) for location in locations)
    return (
        f"Plugins that are suspended by the annotation {SUSPEND_ANNOTATION} are not deleted: {examples}"
        if locations
        else ""
    )
