"""Entry point of the controller: conversion of the PluginPresets and Plugins of a config into package variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.api.greenhouse import GROUP, PLUGIN, PRESET, PRESET_LABEL
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.cluster_packages import keep_uncertain_packages
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import (
    OverrideLayer,
    Preset,
    StandalonePlugin,
    read_plugin,
    read_preset,
)
from reconciler.controllers.plugin_presets.deletions import (
    GuardedPlugins,
    find_orphans,
    guard_preset,
    guard_suspended,
    is_deletion_prevented,
)
from reconciler.controllers.plugin_presets.inputs import PluginPresetCache, PluginPresetInputs, PreviousPlugins
from reconciler.controllers.plugin_presets.lint import check_catalogs, check_owner_label
from reconciler.controllers.plugin_presets.outcome_checks import check_literal_secrets, check_plugin_conflicts
from reconciler.controllers.plugin_presets.plugin_builder import PluginBuilder
from reconciler.controllers.plugin_presets.plugin_outcomes import (
    BuiltPlugin,
    FailedPlugin,
    PluginOutcome,
    PluginRequest,
    SkippedPlugin,
    SuspendedPlugin,
    create_failure,
)
from reconciler.controllers.plugin_presets.plugin_requests import (
    PluginTargets,
    create_plugin_request,
    create_preset_requests,
    is_requested_by_preset,
    resolve_name_conflicts,
)
from reconciler.controllers.plugin_presets.snapshot import (
    OverrideMatcher,
    PresetSnapshot,
    check_preset_clusters,
    read_preset_snapshot,
    select_clusters,
)
from reconciler.controllers.plugin_presets.status import (
    RemovedPlugins,
    build_invalid_status,
    build_missing_definition_status,
    build_preset_status,
)
from reconciler.controllers.results import (
    ConfigStatus,
    ControllerResult,
    DeletionGuard,
    PackageOwner,
    StalledVariant,
)
from reconciler.krm.findings import Finding, downgrade_to_warning, select_errors
from reconciler.krm.objects import Condition, ObjectKey

__all__ = ["PluginPresetCache", "PluginPresetInputs", "PreviousPlugins", "generate_plugins"]

_SELECTOR_CODES = (PluginCodes.SELECTOR_EMPTY.name, ControllerCodes.SELECTOR_INVALID.name)


def generate_plugins(
    catalog: Catalog, inventory: ClusterInventory, inputs: PluginPresetInputs, cache: PluginPresetCache | None = None
) -> ControllerResult:
    """Return a package variant for every Plugin that a preset or the config requests, and the findings.

    A Plugin with an error keeps its published package. If a preset is invalid, all its Plugins keep their published
    packages. `cache` contains results of the previous pass. A Plugin is built again only if its inputs have changed.
    """
    cache = cache or PluginPresetCache()
    cache.begin_pass(inputs)
    snapshot = read_preset_snapshot(catalog, inventory, cache)
    preset_pass = _PresetPass(snapshot, PluginTargets(snapshot.clusters, inventory, inputs, cache))
    preset_pass.read_presets()
    preset_pass.read_plugins()
    preset_pass.build_plugins()
    preset_pass.keep_uncertain_packages()
    guards = preset_pass.guard_deletions()
    cache.end_pass()
    outcomes = preset_pass.outcomes
    stalled = (outcome.stalled for outcome in outcomes if isinstance(outcome, FailedPlugin | SuspendedPlugin))
    return ControllerResult(
        tuple(outcome.variant for outcome in outcomes if isinstance(outcome, BuiltPlugin)),
        tuple(_remove_repeated_findings((*stalled, *preset_pass.stalled))),
        (
            *preset_pass.statuses,
            *preset_pass.build_preset_statuses(guards),
            *preset_pass.build_override_statuses(),
        ),
        (
            *snapshot.findings,
            *check_catalogs(catalog),
            *preset_pass.findings,
            *preset_pass.find_blocked_and_unused(guards),
        ),
        frozenset(preset_pass.kept_owners),
        guards={
            **preset_pass.guard_deleted_owners(),
            **{preset.key: guarded.guard for preset, guarded in guards},
        },
    )


class _PresetPass:
    """Data of one pass over the presets and Plugins of a config. `generate_plugins` calls the methods in order."""

    def __init__(self, snapshot: PresetSnapshot, targets: PluginTargets) -> None:
        self.snapshot = snapshot
        self.targets = targets
        self.override_matcher = OverrideMatcher(snapshot)
        self.findings: list[Finding] = []
        self.statuses: list[ConfigStatus] = []
        self.stalled: list[StalledVariant] = []
        self.outcomes: list[PluginOutcome] = []
        self.kept_owners: set[ObjectKey] = {key for key in snapshot.catalog.duplicates if _is_owner(key)}
        self._valid_presets: list[Preset] = []
        self._failed_requests: list[FailedPlugin] = []
        self._preset_requests: dict[ObjectKey, list[PluginRequest]] = {}
        self._plugin_requests: dict[ObjectKey, PluginRequest] = {}
        self._owner_label_conditions: dict[ObjectKey, Condition | None] = {}

    def read_presets(self) -> None:
        """Read every PluginPreset, and create a plugin request for each cluster that the preset selects."""
        for manifest in self.snapshot.catalog.objects_of_kind(GROUP, PRESET):
            preset, findings = self.targets.cache.read(read_preset, manifest)
            self.findings += findings
            self._owner_label_conditions[manifest.key], label_findings = check_owner_label(
                manifest, self.snapshot.catalog
            )
            self.findings += label_findings
            if preset is None:
                self.kept_owners.add(manifest.key)
                self.statuses.append(build_invalid_status(manifest, select_errors(findings), _SELECTOR_CODES))
            elif preset.plugin.definition.create_key(manifest.key.namespace) not in self.snapshot.definitions:
                self._report_missing_definition(preset)
            else:
                self._select_clusters(preset)

    def _select_clusters(self, preset: Preset) -> None:
        selected = {cluster.name: cluster for cluster in select_clusters(preset, self.snapshot.clusters)}
        self.findings += check_preset_clusters(preset, selected, self.snapshot.clusters)
        self._valid_presets.append(preset)
        for request in create_preset_requests(preset, selected, self.targets):
            if isinstance(request, FailedPlugin):
                self._failed_requests.append(request)
            else:
                self._preset_requests.setdefault(request.key, []).append(request)

    def _report_missing_definition(self, preset: Preset) -> None:
        finding = self._create_definition_finding(preset)
        self.kept_owners.add(preset.key)
        self.findings.append(finding)
        label = self._owner_label_conditions[preset.key]
        self.statuses.append(build_missing_definition_status(preset, finding.code, finding.message, label))

    def _create_definition_finding(self, requester: Preset | StandalonePlugin) -> Finding:
        key = requester.plugin.definition.create_key(requester.manifest.key.namespace)
        code = (
            PluginCodes.DEFINITION_INVALID
            if key in self.snapshot.definition_keys
            else PluginCodes.PLUGIN_DEFINITION_NOT_FOUND
        )
        path = (*requester.plugin_path, "pluginDefinitionRef")
        reason = self.snapshot.explain_missing_definition(key)
        message = f"{requester.manifest.key} refers to {reason}"
        return code.finding(message, requester.manifest.location_of(path))

    def read_plugins(self) -> None:
        """Read every Plugin in the config, except the Plugins that a preset generates or may generate."""
        for manifest in self.snapshot.catalog.objects_of_kind(GROUP, PLUGIN):
            plugin, findings = self.targets.cache.read(read_plugin, manifest)
            if plugin is None:
                self._stall(manifest, findings)
                continue
            preset_key = ObjectKey(GROUP, PRESET, manifest.key.namespace, manifest.labels.get(PRESET_LABEL, ""))
            if is_requested_by_preset(plugin, self._preset_requests) or preset_key in self.kept_owners:
                continue
            self.findings += findings
            request = create_plugin_request(plugin, self.targets)
            if isinstance(request, Finding):
                self._stall(manifest, (request,))
            else:
                self._plugin_requests[manifest.key] = request

    def _stall(self, manifest: ConfigObject, findings: Sequence[Finding]) -> None:
        """Record that a Plugin in the config cannot be built, so that its published package is not deleted."""
        errors = select_errors(tuple(findings))
        ready = Condition("Ready", "False", errors[0].code, "; ".join(error.message for error in errors))
        self.kept_owners.add(manifest.key)
        self.stalled.append(StalledVariant(PackageOwner(manifest.key, manifest.api_version), (ready,), tuple(findings)))

    def build_plugins(self) -> None:
        """Build every requested Plugin, and record an outcome for each request."""
        builder = PluginBuilder(self.snapshot, self.override_matcher, self.targets.inputs, self.targets.cache)
        outcomes: list[PluginOutcome] = list(self._failed_requests)
        for accepted in resolve_name_conflicts(self._preset_requests, self._plugin_requests, self.targets):
            outcomes.append(self._build(accepted, builder) if isinstance(accepted, PluginRequest) else accepted)
        outcomes = check_literal_secrets(outcomes, self.snapshot, self.override_matcher, self.kept_owners)
        self.outcomes = check_plugin_conflicts(outcomes)
        self.findings += (outcome.finding for outcome in self.outcomes if isinstance(outcome, SkippedPlugin))

    def _build(self, request: PluginRequest, builder: PluginBuilder) -> PluginOutcome:
        definition = self.snapshot.definitions.get(request.plugin.definition.create_key(request.key.namespace))
        if cluster_change := _find_cluster_change(request, self.targets):
            return create_failure(request, (cluster_change,))
        if definition is None:
            return create_failure(request, (self._create_definition_finding(request.requester),))
        return builder.build(request, definition)

    def keep_uncertain_packages(self) -> None:
        """Keep all Plugins on a cluster if the object that defines the cluster may be invalid or defined twice."""
        requested_locations = {outcome.request.location for outcome in self.outcomes}
        self.stalled += keep_uncertain_packages(self.targets.owners, requested_locations, self.targets.inventory)

    def guard_deletions(self) -> list[tuple[Preset, GuardedPlugins]]:
        """Return each valid preset with its deletion guard."""
        requested_locations = self._list_requested_locations()
        return [(preset, guard_preset(preset, requested_locations, self.targets)) for preset in self._valid_presets]

    def guard_deleted_owners(self) -> Mapping[ObjectKey, DeletionGuard]:
        """Map each owner that was deleted from the config to its deletion guard.

        A guard prevents the deletion of the owner's suspended Plugins. Owners without suspended Plugins have no guard.
        """
        existing_owners = {*self.kept_owners, *(preset.key for preset in self._valid_presets), *self._plugin_requests}
        locations = [
            location
            for location, owner in self.targets.owners.items()
            if (owner.parent or owner.key) not in existing_owners
        ]
        return guard_suspended(locations, self.targets)

    def _list_requested_locations(self) -> set[PackageLocation]:
        stalled = {(variant.target.repository, variant.target.package) for variant in self.stalled if variant.target}
        return {outcome.request.location for outcome in self.outcomes} | stalled

    def build_preset_statuses(self, guards: Iterable[tuple[Preset, GuardedPlugins]]) -> Iterator[ConfigStatus]:
        """Yield the status of each valid preset. The status does not contain render results yet."""
        outcomes: dict[ObjectKey, list[PluginOutcome]] = {}
        for outcome in self.outcomes:
            outcomes.setdefault(outcome.request.manifest.key, []).append(outcome)
        requested_locations = self._list_requested_locations()
        for preset, guarded in guards:
            definition = self.snapshot.definitions[preset.plugin.definition.create_key(preset.key.namespace)]
            orphans = find_orphans(
                preset, {*requested_locations, *guarded.blocked}, self.targets, self.snapshot.catalog
            )
            removed = RemovedPlugins(guarded.blocked, guarded.guard.reason, orphans)
            version, label = definition.spec.version, self._owner_label_conditions[preset.key]
            yield build_preset_status(preset, outcomes.get(preset.key, ()), version, removed, label)

    def build_override_statuses(self) -> Iterator[ConfigStatus]:
        """Yield the status of each PluginOverride: validity, option layer, and number of matching Plugins."""
        for override in self._iterate_overrides():
            layer_id = override.layer.layer
            ready = Condition("Ready", "True", "Read", f"applies on layer {layer_id}")
            if not override.is_valid:
                ready = Condition(
                    "Ready",
                    "False",
                    "Invalid",
                    "the override is invalid; Plugins that may get values from this override stay unchanged",
                )
            fields = {"layer": layer_id, "plugins": self.override_matcher.plugin_counts.get(override.key, 0)}
            yield ConfigStatus(override.key, override.manifest.api_version, (ready,), fields)

    def _iterate_overrides(self) -> Iterator[OverrideLayer]:
        for overrides in self.snapshot.overrides.values():
            yield from (override for override in overrides if override.key in self.snapshot.catalog.objects)

    def find_blocked_and_unused(self, guards: Iterable[tuple[Preset, GuardedPlugins]]) -> Iterator[Finding]:
        """Yield findings about blocked deletions of Plugins, and about PluginOverrides that match no Plugin."""
        for preset, guarded in guards:
            if guarded.is_guarded:
                finding = ControllerCodes.DELETION_HELD.finding(guarded.guard.reason, preset.manifest.location)
                yield downgrade_to_warning(finding) if is_deletion_prevented(preset) else finding
        if self.snapshot.catalog.is_complete and not self.kept_owners:
            yield from self.override_matcher.find_unused(self._iterate_overrides())


def _find_cluster_change(request: PluginRequest, targets: PluginTargets) -> Finding | None:
    """Return an error if the field `spec.clusterName` of a published Plugin has changed to a different cluster."""
    if request.preset:
        return None
    published_clusters = [
        cluster
        for cluster, package in targets.locations_by_owner.get(request.key, ())
        if package in targets.list_published(cluster)
    ]
    if not published_clusters or request.target.repository in published_clusters:
        return None
    message = (
        f'spec.clusterName must be "{published_clusters[0]}", because the Plugin is already published on this cluster'
        f' and cannot move to cluster "{request.target.repository}"'
    )
    return PluginCodes.IMMUTABLE_FIELD_CHANGED.finding(message, request.manifest.location_of(("spec", "clusterName")))


def _remove_repeated_findings(stalled: Iterable[StalledVariant]) -> Iterator[StalledVariant]:
    """Yield the stalled variants, and keep each finding only in the first variant that has the finding.

    For example, one invalid entry of a preset causes the same finding for its Plugins on all clusters.
    """
    reported: set[Finding] = set()
    for variant in stalled:
        yield replace(variant, findings=tuple(finding for finding in variant.findings if finding not in reported))
        reported.update(variant.findings)


def _is_owner(key: ObjectKey) -> bool:
    return key.group == GROUP and key.kind in (PRESET, PLUGIN)
