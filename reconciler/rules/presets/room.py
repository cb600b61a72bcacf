"""The room: from a catalog to the Plugins of presets, and those that people wrote themselves (greenhouse)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, errors, softened
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import DELETION_HELD, SELECTOR_INVALID
from reconciler.rules.guards import Unit
from reconciler.rules.presets.codes import (
    DEFINITION_INVALID,
    IMMUTABLE_FIELD_CHANGED,
    PLUGIN_DEFINITION_NOT_FOUND,
    SELECTOR_EMPTY,
)
from reconciler.rules.presets.given_secrets import withhold_secrets
from reconciler.rules.presets.guard import Guarded, guard_preset, guard_suspended, is_prevented
from reconciler.rules.presets.ignored import ignored_catalogs
from reconciler.rules.presets.layers import layer_of
from reconciler.rules.presets.make import Maker
from reconciler.rules.presets.memory import Memory
from reconciler.rules.presets.model import GROUP, PLUGIN, PRESET, PRESET_LABEL, Preset, StandalonePlugin
from reconciler.rules.presets.orphans import orphans_of
from reconciler.rules.presets.outcome import Failed, Made, Outcome, Resting, Skipped, Wish, failed_for
from reconciler.rules.presets.owner_label import check_owner_label
from reconciler.rules.presets.read_plugin import read_plugin
from reconciler.rules.presets.read_preset import read_preset
from reconciler.rules.presets.selection import preset_cluster_findings, select_clusters
from reconciler.rules.presets.status import Leaving, invalid_status, preset_status, without_definition
from reconciler.rules.presets.surroundings import Before, Surroundings
from reconciler.rules.presets.together import check_together
from reconciler.rules.presets.wishes import Ground, is_of_preset, plugin_wish, preset_wishes, settle_claims
from reconciler.rules.presets.world import Override, Reach, World, read_world
from reconciler.rules.variant import ConfigStatus, Guard, Owner, Place, RoomResult, Stalled
from reconciler.snapshot.catalog import Catalog, ConfigObject

__all__ = ["Before", "Memory", "Surroundings", "presets_of"]

_OF_SELECTORS = (SELECTOR_EMPTY.name, SELECTOR_INVALID.name)


def presets_of(
    catalog: Catalog, inventory: Inventory, around: Surroundings, memory: Memory | None = None
) -> RoomResult:
    """Return a package for every Plugin that a preset or a person wants, and what is wrong with the rest.

    What cannot be worked out stays as it is: a Plugin, or all of a preset where not even its clusters can be told. By
    `memory`, a Plugin that is made of the same as in the pass before is not made again.
    """
    memory = memory or Memory()
    memory.begin(around)
    world = read_world(catalog, inventory, memory)
    ground = Ground(world.fleet, inventory, around, memory)
    run = _Run(world, ground)
    run.read_presets()
    run.read_plugins()
    run.make()
    run.keep_what_is_in_doubt()
    guards = run.guard()
    memory.end()
    return RoomResult(
        tuple(one.variant for one in run.outcomes if isinstance(one, Made)),
        tuple(_told_once((*(one.stalled for one in run.outcomes if isinstance(one, Failed | Resting)), *run.stalled))),
        (*run.statuses, *run.preset_statuses(guards), *run.override_statuses()),
        (*world.findings, *ignored_catalogs(catalog), *run.findings, *run.late_findings(guards)),
        frozenset(run.kept),
        guards={**run.guards_of_the_gone(), **{preset.key: one.guard for preset, one in guards}},
    )


class _Run:
    """One pass over the presets and Plugins of a config, step by step."""

    def __init__(self, world: World, ground: Ground) -> None:
        self.world = world
        self.ground = ground
        self.reach = Reach(world)
        self.findings: list[Finding] = []
        self.statuses: list[ConfigStatus] = []
        self.stalled: list[Stalled] = []
        self.outcomes: list[Outcome] = []
        self.kept: set[ObjectKey] = {key for key in world.catalog.duplicates if _is_owner(key)}
        self._presets: list[Preset] = []
        self._failed: list[Failed] = []
        self._wishes: dict[ObjectKey, list[Wish]] = {}
        self._plugins: dict[ObjectKey, Wish] = {}
        self._labels: dict[ObjectKey, Condition | None] = {}

    def read_presets(self) -> None:
        """Read every preset, and what it wants."""
        for one in self.world.catalog.of_kind(GROUP, PRESET):
            preset, found = self.ground.memory.read(read_preset, one)
            self.findings += found
            self._labels[one.key], told = check_owner_label(one, self.world.catalog)
            self.findings += told
            if preset is None:
                self.kept.add(one.key)
                self.statuses.append(invalid_status(one, errors(found), _OF_SELECTORS))
            elif preset.spec.definition.key(one.key.namespace) not in self.world.definitions:
                self._without_definition(preset)
            else:
                self._select(preset)

    def _select(self, preset: Preset) -> None:
        selected = {cluster.name: cluster for cluster in select_clusters(preset, self.world.fleet)}
        self.findings += preset_cluster_findings(preset, selected, self.world.fleet)
        self._presets.append(preset)
        for wish in preset_wishes(preset, selected, self.ground):
            if isinstance(wish, Failed):
                self._failed.append(wish)
            else:
                self._wishes.setdefault(wish.key, []).append(wish)

    def _without_definition(self, preset: Preset) -> None:
        finding = self._definition_finding(preset)
        self.kept.add(preset.key)
        self.findings.append(finding)
        label = self._labels[preset.key]
        self.statuses.append(without_definition(preset, finding.code, finding.message, label))

    def _definition_finding(self, by: Preset | StandalonePlugin) -> Finding:
        key = by.spec.definition.key(by.one.key.namespace)
        code = DEFINITION_INVALID if key in self.world.present else PLUGIN_DEFINITION_NOT_FOUND
        path = ("spec", "plugin", "pluginDefinitionRef") if isinstance(by, Preset) else ("spec", "pluginDefinitionRef")
        message = f"{by.one.key} is of a plugin definition that cannot be used: {self.world.why_not(key)}"
        return code.finding(message, by.one.where_at(path))

    def read_plugins(self) -> None:
        """Read every Plugin that people wrote themselves, unless a preset is to have it."""
        for one in self.world.catalog.of_kind(GROUP, PLUGIN):
            plugin, found = self.ground.memory.read(read_plugin, one)
            if plugin is None:
                self._stall(one, found)
                continue
            preset = ObjectKey(GROUP, PRESET, one.key.namespace, one.labels.get(PRESET_LABEL, ""))
            if is_of_preset(plugin, self._wishes) or preset in self.kept:
                continue
            self.findings += found
            wish = plugin_wish(plugin, self.ground)
            if isinstance(wish, Finding):
                self._stall(one, (wish,))
            else:
                self._plugins[one.key] = wish

    def _stall(self, one: ConfigObject, found: Sequence[Finding]) -> None:
        """Note a Plugin that cannot be placed: what it has anywhere stays."""
        first = errors(tuple(found))[0]
        ready = Condition("Ready", "False", first.code, "; ".join(each.message for each in errors(tuple(found))))
        self.kept.add(one.key)
        self.stalled.append(Stalled(Owner(one.key, one.api_version), (ready,), tuple(found)))

    def make(self) -> None:
        """Make every Plugin that somebody gets."""
        maker = Maker(self.world, self.reach, self.ground.around, self.ground.memory)
        outcomes: list[Outcome] = list(self._failed)
        for one in settle_claims(self._wishes, self._plugins, self.ground):
            outcomes.append(self._made(one, maker) if isinstance(one, Wish) else one)
        self.outcomes = check_together(withhold_secrets(outcomes, self.world, self.reach, self.kept))
        self.findings += (one.finding for one in self.outcomes if isinstance(one, Skipped))

    def _made(self, wish: Wish, maker: Maker) -> Outcome:
        usable = self.world.definitions.get(wish.spec.definition.key(wish.key.namespace))
        moved = _moved(wish, self.ground)
        if moved:
            return failed_for(wish, (moved,))
        return maker.make(wish, usable) if usable else failed_for(wish, (self._definition_finding(wish.by),))

    def keep_what_is_in_doubt(self) -> None:
        """Keep what clusters have of which not all is known (design 10.5)."""
        wanted = {one.wish.unit for one in self.outcomes}
        for unit, owner in sorted(self.ground.owned.items()):
            cluster, package = unit
            home = self.ground.inventory.homes.get(cluster)
            if cluster in self.ground.inventory.doubtful and home and unit not in wanted:
                message = f"not all is known of cluster {cluster}, and what it has stays"
                ready = Condition("Ready", "False", "ClusterInDoubt", message)
                self.stalled.append(Stalled(owner, (ready,), (), Place(home.namespace, cluster, package)))

    def guard(self) -> list[tuple[Preset, Guarded]]:
        """Return what each preset lets go, and what it holds."""
        wanted = self._wanted()
        return [(preset, guard_preset(preset, wanted, self.ground)) for preset in self._presets]

    def guards_of_the_gone(self) -> Mapping[ObjectKey, Guard]:
        """Return guards for owners that are not there any more, where they have something that must stay."""
        alive = {*self.kept, *(preset.key for preset in self._presets), *self._plugins}
        gone = [unit for unit, owner in self.ground.owned.items() if (owner.set or owner.key) not in alive]
        return guard_suspended(gone, self.ground)

    def _wanted(self) -> set[Unit]:
        stalled = {(one.place.repository, one.place.package) for one in self.stalled if one.place}
        return {one.wish.unit for one in self.outcomes} | stalled

    def preset_statuses(self, guards: Iterable[tuple[Preset, Guarded]]) -> Iterator[ConfigStatus]:
        """Yield the status of each sound preset, as far as it is known here."""
        outcomes: dict[ObjectKey, list[Outcome]] = {}
        for one in self.outcomes:
            outcomes.setdefault(one.wish.written.key, []).append(one)
        wanted = self._wanted()
        for preset, guarded in guards:
            usable = self.world.definitions[preset.spec.definition.key(preset.key.namespace)]
            orphans = orphans_of(preset, {*wanted, *guarded.held}, self.ground, self.world.catalog)
            leaving = Leaving(guarded.held, guarded.guard.why, orphans)
            version, label = usable.definition.version, self._labels[preset.key]
            yield preset_status(preset, outcomes.get(preset.key, ()), version, leaving, label)

    def override_statuses(self) -> Iterator[ConfigStatus]:
        """Yield the status of each PluginOverride: its layer, and to how many Plugins it applies."""
        for one in self._overrides():
            override = one.read
            ready = Condition("Ready", "True", "Read", f"applies on layer {layer_of(override)}")
            if not override.sound:
                ready = Condition(
                    "Ready", "False", "Invalid", "cannot be used; Plugins that it may be for stay as they are"
                )
            fields = {"layer": layer_of(override), "plugins": self.reach.plugins.get(override.one.key, 0)}
            yield ConfigStatus(override.one.key, override.one.api_version, (ready,), fields)

    def _overrides(self) -> Iterator[Override]:
        for overrides in self.world.overrides.values():
            yield from (one for one in overrides if one.read.one.key in self.world.catalog.objects)

    def late_findings(self, guards: Iterable[tuple[Preset, Guarded]]) -> Iterator[Finding]:
        """Yield what is held, and which overrides nobody has any use for."""
        for preset, guarded in guards:
            if guarded.is_guarded:
                finding = DELETION_HELD.finding(guarded.guard.why, preset.one.where)
                yield softened(finding) if is_prevented(preset) else finding
        if self.world.catalog.is_whole and not self.kept:
            yield from self.reach.unused(self._overrides())


def _moved(wish: Wish, ground: Ground) -> Finding | None:
    """Return why a Plugin that is published on one cluster cannot go to another (greenhouse 10)."""
    if wish.preset:
        return None
    there = [cluster for cluster, package in ground.had.get(wish.key, ()) if package in ground.published(cluster)]
    if not there or wish.place.repository in there:
        return None
    message = (
        f'spec.clusterName must stay "{there[0]}", where it is published, and cannot become "{wish.place.repository}"'
    )
    return IMMUTABLE_FIELD_CHANGED.finding(message, wish.written.where_at(("spec", "clusterName")))


def _told_once(stalled: Iterable[Stalled]) -> Iterator[Stalled]:
    """Yield what is stalled, with each finding where it is met first: one entry may spoil the Plugins of a fleet."""
    told: set[Finding] = set()
    for one in stalled:
        yield replace(one, findings=tuple(each for each in one.findings if each not in told))
        told.update(one.findings)


def _is_owner(key: ObjectKey) -> bool:
    return key.group == GROUP and key.kind in (PRESET, PLUGIN)
