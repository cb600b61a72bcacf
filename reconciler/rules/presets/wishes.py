"""Who wants which Plugin, and who gets it where two want one (greenhouse 3, 12, design 10.14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.names import label_value_fault, segment_fault
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import NO_DESTINATION
from reconciler.rules.guards import Unit
from reconciler.rules.presets.codes import (
    NAME_COLLISION,
    PLUGIN_NAME_INVALID,
    PLUGIN_NOT_MANAGED,
    PLUGIN_SUSPENDED,
)
from reconciler.rules.presets.memory import Memory
from reconciler.rules.presets.model import (
    PRESET_LABEL,
    Preset,
    StandalonePlugin,
    plugin_key,
    plugin_name,
)
from reconciler.rules.presets.outcome import Failed, Resting, Skipped, Wish, failed_for
from reconciler.rules.presets.published import SUSPEND, Published
from reconciler.rules.presets.selection import Fleet
from reconciler.rules.presets.surroundings import Surroundings
from reconciler.rules.variant import Owner, Place

_NOTHING = Published()


@dataclass(frozen=True, eq=False)
class Ground:
    """Where Plugins can go, and what stands there; each branch is looked at once."""

    fleet: Fleet
    inventory: Inventory
    around: Surroundings
    memory: Memory
    _published: dict[str, Mapping[str, Published]] = field(default_factory=dict, init=False)

    @cached_property
    def owned(self) -> Mapping[Unit, Owner]:
        """The owners of the Plugins that are there."""
        return dict(sorted(self.around.before.owned().items()))

    @cached_property
    def had(self) -> Mapping[ObjectKey, Sequence[Unit]]:
        """What each owner has, and each preset."""
        found: dict[ObjectKey, list[Unit]] = {}
        for unit, owner in self.owned.items():
            for key in filter(None, (owner.key, owner.set)):
                found.setdefault(key, []).append(unit)
        return found

    @cached_property
    def labelled(self) -> Mapping[ObjectKey, Sequence[Unit]]:
        """The Plugins on branches that say which preset of their organization they are of, by that."""
        found: dict[ObjectKey, list[Unit]] = {}
        for namespace, clusters in self.fleet.by_organization.items():
            for cluster in clusters:
                for package, one in self.published(cluster).items():
                    if one.label and one.preset.namespace == namespace:
                        found.setdefault(one.preset, []).append((cluster, package))
        return found

    def published(self, cluster: str) -> Mapping[str, Published]:
        """Return the Plugins on the branch of a cluster, by package."""
        if cluster not in self._published:
            there = self.around.before.published(cluster).items()
            self._published[cluster] = {package: self.memory.published(data) for package, data in there}
        return self._published[cluster]

    def wish(self, by: Preset | StandalonePlugin, name: str, cluster: str, *, of_cluster: bool = True) -> Wish:
        """Return a wish for a Plugin on a cluster that there is."""
        key, package = plugin_key(by.one.key.namespace, name), f"plugins/{name}"
        owner, published = self.owned.get((cluster, package)), self.published(cluster)
        return Wish(
            key,
            Place(self.inventory.homes[cluster].namespace, cluster, package),
            self.fleet.of(by.one.key.namespace)[cluster] if of_cluster else None,
            by,
            published.get(package, _NOTHING),
            package in published,
            owner is not None and owner.key == key,
        )


def preset_wishes(preset: Preset, clusters: Iterable[str], ground: Ground) -> Iterator[Wish | Failed]:
    """Yield the Plugins that a preset wants, one on each of its clusters."""
    for cluster in clusters:
        name = plugin_name(preset.key.name, cluster)
        wish = ground.wish(preset, name, cluster)
        labels = filter(None, map(label_value_fault, (cluster, preset.spec.definition.name)))
        if fault := segment_fault(name) or next(labels, None):
            message = f"the Plugin of {preset.key} on {cluster} must have names for its folder and its labels: {fault}"
            yield failed_for(wish, (PLUGIN_NAME_INVALID.finding(message, preset.one.where_at(("metadata", "name"))),))
        else:
            yield wish


def plugin_wish(plugin: StandalonePlugin, ground: Ground) -> Wish | Finding:
    """Return the wish of a Plugin that stands for itself, or why there is no place for it (design 10.3)."""
    name, namespace = plugin.one.key.name, plugin.one.key.namespace
    if plugin.cluster in ground.fleet.of(namespace):
        return ground.wish(plugin, name, plugin.cluster)
    central = ground.around.central_cluster
    if not plugin.cluster and central in ground.inventory.clusters:
        return ground.wish(plugin, name, central, of_cluster=False)
    if plugin.cluster:
        message = f'spec.clusterName must name a Cluster of {namespace}, and "{plugin.cluster}" is none'
    elif central:
        message = f'spec.clusterName is not written, and rules.central_cluster names "{central}", which is no cluster'
    else:
        message = "spec.clusterName must be written, as long as rules.central_cluster is not set"
    return NO_DESTINATION.finding(message, plugin.one.where_at(("spec", "clusterName")))


def is_of_preset(plugin: StandalonePlugin, wishes: Mapping[ObjectKey, Sequence[Wish]]) -> bool:
    """Tell whether a Plugin in the config says that a preset is to have it, which makes one of its name."""
    label = plugin.one.labels.get(PRESET_LABEL)
    return any(one.written.key.name == label for one in wishes.get(plugin.one.key, ()))


def settle_claims(
    presets: Mapping[ObjectKey, Sequence[Wish]], standing: Mapping[ObjectKey, Wish], ground: Ground
) -> Iterator[Wish | Skipped | Resting]:
    """Yield each wish by the name of its Plugin: those that get it, those that are skipped, those that rest."""
    for key in sorted({*presets, *standing}):
        rivals = _ranked(presets.get(key, ()), ground)
        if key in standing:
            yield _rested(standing[key])
            yield from (_not_managed(one, f"{key}, which is in the config itself,") for one in rivals)
            continue
        yield _taken(rivals[0])
        yield from (_collides(one, rivals[0]) for one in rivals[1:])


def _ranked(rivals: Sequence[Wish], ground: Ground) -> Sequence[Wish]:
    return sorted(rivals, key=lambda one: _rank(one, ground)) if len(rivals) > 1 else rivals


def _rank(wish: Wish, ground: Ground) -> tuple[bool, bool, str]:
    """Return who comes first: whoever has the name in state, whose label is there, then the least (greenhouse 3.7)."""
    owner = ground.owned.get(wish.unit)
    name = wish.written.key.name
    return not (wish.owned and owner is not None and owner.set == wish.written.key), _label(wish) != name, name


def _label(wish: Wish) -> str:
    return wish.published.label


def _taken(wish: Wish) -> Wish | Skipped | Resting:
    if wish.is_there and not wish.owned and _label(wish) != wish.written.key.name:
        return _not_managed(wish, "what stands on the branch")
    return _rested(wish)


def _rested(wish: Wish) -> Wish | Resting:
    if not wish.published.is_suspended and SUSPEND not in _own_annotations(wish):
        return wish
    message = f"{wish.key} on {wish.place.repository} is suspended by the annotation {SUSPEND}, and is left as it is"
    return Resting(wish, PLUGIN_SUSPENDED.finding(message, wish.written.where))


def _own_annotations(wish: Wish) -> Mapping[str, str]:
    return {} if wish.preset else wish.written.annotations


def _not_managed(wish: Wish, what: str) -> Skipped:
    message = (
        f"{wish.key} on {wish.place.repository} is left alone: {what} has this name, and not the label"
        f" {PRESET_LABEL}: {wish.written.key.name}"
    )
    return Skipped(wish, PLUGIN_NOT_MANAGED.finding(message, wish.written.where))


def _collides(wish: Wish, winner: Wish) -> Skipped:
    message = f"{wish.key} on {wish.place.repository} is left out: {winner.written.key} has a Plugin of this name"
    return Skipped(wish, NAME_COLLISION.finding(message, wish.written.where))
