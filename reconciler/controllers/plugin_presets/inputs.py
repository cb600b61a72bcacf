"""Inputs of the controller: settings and existing Plugins, and cached results of the previous pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from reconciler.cel import ExpressionLimits
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import ControllerCache, IdentityKey, KeyedCache
from reconciler.controllers.plugin_presets.plugin import PublishedPlugin
from reconciler.controllers.plugin_presets.plugin_outcomes import BuiltPlugin, FailedPlugin
from reconciler.controllers.results import PackageOwner
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, fields

# A change of these fields of `PluginPresetInputs` does not clear the cache, because no cached Plugin depends on them.
_PER_PASS_FIELDS = ("previous", "blocked_counts", "max_delete_percent")


class PreviousPlugins(Protocol):
    """The Plugins that exist before the pass, read from the target branches and the recorded states."""

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        """Return the owner of each drafted or published Plugin. Plugins that are being deleted are not included."""
        ...

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        """For the location of each Plugin, return the names of all dependencies of the last render."""
        ...

    def read_published(self, cluster: str) -> Mapping[str, Mapping[str, Any]]:
        """Return a mapping from package paths to the Plugins on the target branch of a cluster.

        Unreadable Plugins are omitted.
        """
        ...


@dataclass(frozen=True)
class PluginPresetInputs:
    """Inputs of the controller, in addition to the catalog and the cluster inventory.

    Attributes:
        max_delete_percent: The percentage of a preset's Plugins that a pass may delete without a confirmation.
        engine: Version of the rendering code. It changes if a new release may render packages differently.
        blocked_counts: For each preset, the packages whose deletion an earlier pass blocked. Each package is mapped to
            the number of packages that the preset had in that pass.
        base_domain: The setting `rules.base_domain`. It is "" if the setting is missing.
        central_cluster: The setting `rules.central_cluster`. It is "" if the setting is missing.
        can_use_expressions: Whether options may have expressions. If False, an expression is an error.
        output_names: The names of the optional files to generate for each Plugin, e.g. "values".
    """

    previous: PreviousPlugins
    max_delete_percent: int = 30
    engine: str = ""
    blocked_counts: Mapping[ObjectKey, Mapping[PackageLocation, int]] = field(default_factory=dict)
    base_domain: str = ""
    central_cluster: str = ""
    can_use_expressions: bool = True
    cel_limits: ExpressionLimits = field(default_factory=ExpressionLimits)
    output_names: frozenset[str] = frozenset()


class PluginPresetCache(ControllerCache):
    """Results of the plugin controller that the next pass can use again."""

    def __init__(self) -> None:
        super().__init__()
        self._clusters = self.create(KeyedCache[Cluster])
        self._published_plugins = self.create(KeyedCache[PublishedPlugin])
        self.plugins = self.create(KeyedCache[BuiltPlugin | FailedPlugin])

    def begin_pass(self, inputs: PluginPresetInputs) -> None:
        """Begin a pass. Remove all entries if the settings have changed since the previous pass."""
        names = (input_field.name for input_field in fields(inputs) if input_field.name not in _PER_PASS_FIELDS)
        self.clear_if_changed(tuple(getattr(inputs, name) for name in names))

    def intern_cluster(self, cluster: Cluster) -> Cluster:
        """Return one shared object for all clusters with the same name and labels."""
        return self._clusters.get_or_create((cluster.name, *cluster.labels.items()), lambda: cluster)

    def intern_published(self, data: Mapping[str, Any]) -> PublishedPlugin:
        """Return the published Plugin with this data. For the same `data` object, return the same Plugin object."""
        return self._published_plugins.get_or_create(IdentityKey(data), lambda: PublishedPlugin(data))
