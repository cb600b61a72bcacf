"""Inputs of the controller: from the current pass, and the cached results of the previous pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeVar, cast

from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import IdentityKey, KeyedCache
from reconciler.controllers.plugin_presets.option_layers import LayerOptions
from reconciler.controllers.plugin_presets.outcome import BuiltPlugin, FailedPlugin
from reconciler.controllers.plugin_presets.plugin import PublishedPlugin
from reconciler.controllers.results import PackageOwner
from reconciler.krm.objects import ObjectKey

_Result = TypeVar("_Result")
# These fields change with every pass, and no cached Plugin depends on them.
_PER_PASS_FIELDS = ("previous", "blocked_counts", "max_delete_percent")


class PreviousPlugins(Protocol):
    """The Plugins on the branches of clusters, from recorded state and from the branches."""

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        """Return the owners of drafted or published Plugins, except of those that are being deleted."""
        ...

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        """Return the objects that each Plugin was last built from, as text. There may be other objects, too."""
        ...

    def read_published(self, cluster: str) -> Mapping[str, Mapping[str, Any]]:
        """Return all Plugins on a cluster's branch by package path; {} for an unreadable one."""
        ...


@dataclass(frozen=True)
class PluginPresetInputs:
    """Inputs of the controller besides the catalog and the inventory.

    Attributes:
        previous: The Plugins on the branches of clusters.
        max_delete_percent: The deletion guard's limit.
        engine: Changes when rendering may change.
        blocked_counts: For each preset, the packages whose deletion was blocked before, each with the number of
            existing packages at that time.
        base_domain: The setting `rules.base_domain`; "" if it is not set.
        central_cluster: The setting `rules.central_cluster`; "" if it is not set.
        can_use_expressions: If False, an option with an expression is an error.
        cel_limits: The limits of one expression.
        output_names: The optional files of each Plugin.
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


class PluginPresetCache:
    """Results that the controller reuses in the next pass. An empty cache gives equal results.

    Every entry is keyed by its inputs only: objects of the config, labels of clusters, published Plugins. Between
    passes the cache contains the entries that the last pass requested.
    """

    def __init__(self) -> None:
        self._settings: tuple[object, ...] = ()
        self._results: KeyedCache[Any] = KeyedCache()
        self._clusters: KeyedCache[Cluster] = KeyedCache()
        self._published_plugins: KeyedCache[PublishedPlugin] = KeyedCache()
        self.layer_options: KeyedCache[LayerOptions] = KeyedCache()
        self.plugins: KeyedCache[BuiltPlugin | FailedPlugin] = KeyedCache()

    def begin_pass(self, inputs: PluginPresetInputs) -> None:
        """Start a pass. If the settings have changed, no Plugin is reused."""
        settings = tuple(
            getattr(inputs, input_field.name)
            for input_field in fields(inputs)
            if input_field.name not in _PER_PASS_FIELDS
        )
        if settings != self._settings:
            self._settings, self.plugins = settings, KeyedCache()

    def end_pass(self) -> None:
        """End a pass and remove the entries that it did not request."""
        for cache in (self._results, self._clusters, self._published_plugins, self.layer_options, self.plugins):
            cache.end_pass()

    def read(self, reader: Callable[[ConfigObject], _Result], manifest: ConfigObject) -> _Result:
        """Return the result of a reader, which must depend only on the object."""
        return cast("_Result", self._results.get_or_create((reader, manifest), lambda: reader(manifest)))

    def intern_cluster(self, cluster: Cluster) -> Cluster:
        """Return the identical object for equal clusters."""
        return self._clusters.get_or_create((cluster.name, *cluster.labels.items()), lambda: cluster)

    def intern_published(self, data: Mapping[str, Any]) -> PublishedPlugin:
        """Return the published Plugin; the identical object for identical data."""
        return self._published_plugins.get_or_create(IdentityKey(data), lambda: PublishedPlugin(data))
