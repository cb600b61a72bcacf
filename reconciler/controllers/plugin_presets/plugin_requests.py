"""Requests for Plugins, and the resolution of conflicts between requests for the same Plugin name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from reconciler.api.greenhouse import PRESET_LABEL, SUSPEND_ANNOTATION, create_plugin_key, format_plugin_name
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import Preset, StandalonePlugin
from reconciler.controllers.plugin_presets.inputs import PluginPresetCache, PluginPresetInputs
from reconciler.controllers.plugin_presets.plugin import PublishedPlugin
from reconciler.controllers.plugin_presets.plugin_outcomes import (
    FailedPlugin,
    PluginRequest,
    SkippedPlugin,
    SuspendedPlugin,
    create_failure,
)
from reconciler.controllers.plugin_presets.snapshot import OrganizationClusters
from reconciler.controllers.results import PackageOwner, PackageTarget
from reconciler.krm.findings import Finding
from reconciler.krm.names import validate_label_value, validate_name_segment
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field

_NOT_PUBLISHED = PublishedPlugin()


@dataclass(frozen=True, eq=False)
class PluginTargets:
    """The clusters that can receive Plugins, and the Plugins on their target branches. A branch is read only once."""

    clusters: OrganizationClusters
    inventory: ClusterInventory
    inputs: PluginPresetInputs
    cache: PluginPresetCache
    _published_by_cluster: dict[str, Mapping[str, PublishedPlugin]] = field(default_factory=dict, init=False)

    @cached_property
    def owners(self) -> Mapping[PackageLocation, PackageOwner]:
        """The owner of each drafted or published Plugin, by package location."""
        return dict(sorted(self.inputs.previous.get_owned_packages().items()))

    @cached_property
    def locations_by_owner(self) -> Mapping[ObjectKey, Sequence[PackageLocation]]:
        """The package locations by owner.

        An owner is a Plugin, which has one location, or a preset, which has the locations of all its Plugins.
        """
        locations: dict[ObjectKey, list[PackageLocation]] = {}
        for location, owner in self.owners.items():
            for key in filter(None, (owner.key, owner.parent)):
                locations.setdefault(key, []).append(location)
        return locations

    @cached_property
    def labelled_locations(self) -> Mapping[ObjectKey, Sequence[PackageLocation]]:
        """Maps the key of each preset to the locations of the published Plugins with the label of this preset.

        Plugins on clusters of other organizations are not included.
        """
        locations: dict[ObjectKey, list[PackageLocation]] = {}
        for namespace, clusters in self.clusters.by_organization.items():
            for cluster in clusters:
                for package, plugin in self.list_published(cluster).items():
                    if plugin.preset_label and plugin.preset_key.namespace == namespace:
                        locations.setdefault(plugin.preset_key, []).append((cluster, package))
        return locations

    def list_published(self, cluster: str) -> Mapping[str, PublishedPlugin]:
        """Return the Plugins on the target branch of a cluster, by package path."""
        if cluster not in self._published_by_cluster:
            items = self.inputs.previous.read_published(cluster).items()
            self._published_by_cluster[cluster] = {
                package: self.cache.intern_published(data) for package, data in items
            }
        return self._published_by_cluster[cluster]

    def create_request(
        self, requester: Preset | StandalonePlugin, name: str, cluster: str, *, is_for_cluster: bool = True
    ) -> PluginRequest:
        """Return a request for a Plugin on an existing cluster.

        `is_for_cluster` is False for a Plugin without `clusterName`. Such a Plugin is written to the central cluster.
        """
        key, package = create_plugin_key(requester.manifest.key.namespace, name), f"plugins/{name}"
        owner, published = self.owners.get((cluster, package)), self.list_published(cluster)
        return PluginRequest(
            key,
            PackageTarget(self.inventory.target_keys[cluster].namespace, cluster, package),
            self.clusters.get_clusters(requester.manifest.key.namespace)[cluster] if is_for_cluster else None,
            requester,
            published.get(package, _NOT_PUBLISHED),
            package in published,
            owner is not None and owner.key == key,
        )


def create_preset_requests(
    preset: Preset, clusters: Iterable[str], targets: PluginTargets
) -> Iterator[PluginRequest | FailedPlugin]:
    """Yield one request for each selected cluster of a preset, or a failure if the name of the Plugin is invalid."""
    for cluster in clusters:
        name = format_plugin_name(preset.key.name, cluster)
        request = targets.create_request(preset, name, cluster)
        if reason := _find_invalid_name(name, cluster, preset.plugin.definition.name):
            message = f'{preset.key} cannot create a Plugin on cluster "{cluster}", because {reason}'
            yield create_failure(
                request,
                (PluginCodes.PLUGIN_NAME_INVALID.finding(message, preset.manifest.location_of(("metadata", "name"))),),
            )
        else:
            yield request


def _find_invalid_name(plugin: str, cluster: str, definition: str) -> str:
    """Return the reason why the folder or a label of a preset's Plugin would be invalid. Return "" if all are valid."""
    if error := validate_name_segment(plugin):
        return f"the name of the Plugin is not a valid folder name: {error}"
    for noun, name in (("cluster", cluster), ("plugin definition", definition)):
        if error := validate_label_value(name):
            return f"the name of the {noun} is not a valid label value: {error.removeprefix('the value ')}"
    return ""


def create_plugin_request(plugin: StandalonePlugin, targets: PluginTargets) -> PluginRequest | Finding:
    """Return the request for a Plugin object in the config. Return an error if no cluster can receive the Plugin."""
    name, namespace = plugin.manifest.key.name, plugin.manifest.key.namespace
    if plugin.spec.cluster_name in targets.clusters.get_clusters(namespace):
        return targets.create_request(plugin, name, plugin.spec.cluster_name)
    central_cluster = targets.inputs.central_cluster
    if not plugin.spec.cluster_name and central_cluster in targets.inventory.clusters:
        return targets.create_request(plugin, name, central_cluster, is_for_cluster=False)
    if plugin.spec.cluster_name:
        message = (
            f'spec.clusterName must be the name of a Cluster in namespace "{namespace}", but no'
            f' Cluster has the name "{plugin.spec.cluster_name}"'
        )
    elif central_cluster:
        message = (
            f'spec.clusterName is missing, and the setting `rules.central_cluster` is "{central_cluster}", but there is'
            " no cluster with this name"
        )
    else:
        message = "spec.clusterName is required, because the setting `rules.central_cluster` is missing"
    return ControllerCodes.NO_DESTINATION.finding(message, plugin.manifest.location_of(("spec", "clusterName")))


def is_requested_by_preset(
    plugin: StandalonePlugin, preset_requests: Mapping[ObjectKey, Sequence[PluginRequest]]
) -> bool:
    """Return whether the label of `plugin` refers to a preset that requests a Plugin with the same name.

    `plugin` is a Plugin in the config.
    """
    label = plugin.manifest.labels.get(PRESET_LABEL)
    return any(request.manifest.key.name == label for request in preset_requests.get(plugin.manifest.key, ()))


def resolve_name_conflicts(
    preset_requests: Mapping[ObjectKey, Sequence[PluginRequest]],
    plugin_requests: Mapping[ObjectKey, PluginRequest],
    targets: PluginTargets,
) -> Iterator[PluginRequest | SkippedPlugin | SuspendedPlugin]:
    """Yield the accepted requests, and a skipped or suspended Plugin for each other request, sorted by Plugin name.

    If several requests have the same Plugin name, at most one is accepted, and the others are skipped. A Plugin in the
    config has precedence over the presets.
    """
    for key in sorted({*preset_requests, *plugin_requests}):
        candidates = _sort_by_precedence(preset_requests.get(key, ()), targets)
        if key in plugin_requests:
            yield _check_suspended(plugin_requests[key])
            yield from (_skip_unmanaged(request, "this Plugin already exists in the config") for request in candidates)
            continue
        winner, *others = candidates
        yield _accept_winner(winner)
        yield from (_skip_collision(request, winner) for request in others)


def _sort_by_precedence(requests: Sequence[PluginRequest], targets: PluginTargets) -> Sequence[PluginRequest]:
    return sorted(requests, key=lambda request: _get_precedence(request, targets)) if len(requests) > 1 else requests


def _get_precedence(request: PluginRequest, targets: PluginTargets) -> tuple[bool, bool, str]:
    """Return the sort key of a preset's request for a Plugin.

    If several presets request a Plugin with the same name, the request with the lowest key gets the name. The order is:
    the recorded owner of the Plugin, then the preset in the label of the Plugin, then all other presets by name.
    """
    owner = targets.owners.get(request.location)
    name = request.manifest.key.name
    return (
        not (request.is_owned and owner is not None and owner.parent == request.manifest.key),
        _get_preset_label(request) != name,
        name,
    )


def _get_preset_label(request: PluginRequest) -> str:
    return request.published.preset_label


def _accept_winner(request: PluginRequest) -> PluginRequest | SkippedPlugin | SuspendedPlugin:
    if request.is_occupied and not request.is_owned and _get_preset_label(request) != request.manifest.key.name:
        return _skip_unmanaged(request, "a package with its name already exists on the branch")
    return _check_suspended(request)


def _check_suspended(request: PluginRequest) -> PluginRequest | SuspendedPlugin:
    if not request.published.is_suspended and SUSPEND_ANNOTATION not in _get_own_annotations(request):
        return request
    message = (
        f'{request.key} on cluster "{request.target.repository}" is suspended by the annotation {SUSPEND_ANNOTATION},'
        " and stays unchanged"
    )
    return SuspendedPlugin(request, PluginCodes.PLUGIN_SUSPENDED.finding(message, request.manifest.location))


def _get_own_annotations(request: PluginRequest) -> Mapping[str, str]:
    return {} if request.preset else request.manifest.annotations


def _skip_unmanaged(request: PluginRequest, reason: str) -> SkippedPlugin:
    message = (
        f'{request.manifest.key} does not manage {request.key} on cluster "{request.target.repository}", because'
        f' {reason} without the label {PRESET_LABEL}: "{request.manifest.key.name}"; add the label to let the preset'
        " manage the Plugin"
    )
    return SkippedPlugin(request, PluginCodes.PLUGIN_NOT_MANAGED.finding(message, request.manifest.location))


def _skip_collision(request: PluginRequest, winner: PluginRequest) -> SkippedPlugin:
    message = (
        f'{request.key} on cluster "{request.target.repository}" is skipped, because {winner.manifest.key}'
        " requests a Plugin"
        " with the same name"
    )
    return SkippedPlugin(request, PluginCodes.NAME_COLLISION.finding(message, request.manifest.location))
