"""The room: from a catalog to the packages of components, one for each environment and cluster (openchoreo)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import DELETION_HELD
from reconciler.rules.composition.bindings import Bindings, Bound, Unbound, read_bindings, requested_packages
from reconciler.rules.composition.codes import COMPONENT_TYPE_NOT_READY, RUNTIME_COMPOSITION_DISABLED
from reconciler.rules.composition.compile_listed import compile_listed
from reconciler.rules.composition.compile_type import Compiled
from reconciler.rules.composition.components import Components, read_components
from reconciler.rules.composition.context import Facts, facts_of, find_build
from reconciler.rules.composition.environments import Environments, read_environments
from reconciler.rules.composition.guard import guard_binding
from reconciler.rules.composition.library import Library, read_library
from reconciler.rules.composition.make import Made, Maker
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.model import BUILD, GLUE_GROUP, KINDS, Build, Component
from reconciler.rules.composition.package import what_is_said
from reconciler.rules.composition.read_catalogue import read_addon, read_definition
from reconciler.rules.composition.read_glue import read_build
from reconciler.rules.composition.render import Composed, render_component
from reconciler.rules.composition.status import (
    binding_status,
    catalogue_statuses,
    component_status,
    environment_statuses,
    refused_status,
    type_status,
)
from reconciler.rules.composition.surroundings import Before, Surroundings
from reconciler.rules.composition.types import Type, by_kind, read_types
from reconciler.rules.guards import Unit
from reconciler.rules.variant import ConfigStatus, Guard, Owner, Place, RoomResult, Stalled
from reconciler.snapshot.catalog import Catalog, ConfigObject

__all__ = ["Before", "Memory", "Surroundings", "components_of"]


def components_of(
    catalog: Catalog, inventory: Inventory, around: Surroundings, memory: Memory | None = None
) -> RoomResult:
    """Return a package for every component, environment and cluster that goes together, and what is wrong elsewhere.

    What cannot be worked out stays as it is. By `memory`, what is made of the same as in the pass before is not made
    again.
    """
    memory = memory or Memory()
    memory.begin(around)
    run = _Run(read_world(catalog, inventory, around, memory), inventory, around, memory)
    run.make()
    run.keep_what_is_in_doubt()
    guards = run.guards()
    result = RoomResult(
        tuple(variant for one in run.made for variant in one.variants),
        tuple(run.stalled),
        tuple(run.statuses()),
        tuple(dict.fromkeys((*run.world.findings, *run.findings, *run.late_findings(guards)))),
        frozenset(run.kept),
        guards=guards,
    )
    memory.end()
    return result


@dataclass(frozen=True, eq=False)
class World:
    """All that the room reads in one pass."""

    catalog: Catalog
    library: Library
    types: tuple[Type, ...]
    components: Components
    environments: Environments
    builds: Mapping[tuple[str, str], Build]
    doubtful_builds: frozenset[tuple[str, str]]
    bindings: Bindings
    findings: tuple[Finding, ...]


def read_world(catalog: Catalog, inventory: Inventory, around: Surroundings, memory: Memory) -> World:
    """Return all that is written of components and the catalogue, compiled, with what is wrong with it."""
    limits = around.limits
    library = read_library(
        catalog,
        partial(memory.read, read_definition, limits=limits),
        partial(memory.read, read_addon, limits=limits),
    )
    types = read_types(catalog, library, around, memory)
    components = read_components(catalog, {one.kind for one in types if one.kind} - {*KINDS}, memory)
    environments = read_environments(catalog, inventory, memory)
    builds, doubtful, told = _builds(catalog, memory)
    bindings = read_bindings(catalog, components, environments, memory)
    # of what stands there twice the catalog has told
    of_types = (one.compiled.findings for one in types if one.one.key not in catalog.duplicates)
    findings = (
        *library.findings, *(finding for found in of_types for finding in found), *components.findings,
        *environments.findings, *told, *bindings.findings,
    )  # fmt: skip
    return World(catalog, library, types, components, environments, builds, doubtful, bindings, findings)


def _builds(
    catalog: Catalog, memory: Memory
) -> tuple[dict[tuple[str, str], Build], frozenset[tuple[str, str]], list[Finding]]:
    found: dict[tuple[str, str], Build] = {}
    twice = (key for key in catalog.duplicates if (key.group, key.kind) == (GLUE_GROUP, BUILD))
    doubtful = {(key.namespace, key.name) for key in twice}
    findings: list[Finding] = []
    for one in catalog.of_kind(GLUE_GROUP, BUILD):
        build, told = memory.read(read_build, one)
        findings += told
        if build:
            found[one.key.namespace, one.key.name] = build
        else:
            doubtful.add((one.key.namespace, one.key.name))
    return found, frozenset(doubtful), findings


@dataclass
class _Run:
    """One pass of the room, step by step."""

    world: World
    inventory: Inventory
    around: Surroundings
    memory: Memory
    made: list[Made] = field(default_factory=list)
    stalled: list[Stalled] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    kept: set[ObjectKey] = field(default_factory=set)
    _statuses: list[ConfigStatus] = field(default_factory=list)
    _alone: dict[ObjectKey, Composed | None] = field(default_factory=dict)
    _composed: dict[ObjectKey, list[Composed]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owned = self.around.before.owned()
        self._types = by_kind(self.world.types)
        self._maker = Maker(self.inventory, partial(self.memory.read, what_is_said), self.around.engine)

    def make(self) -> None:
        """Make the package of every binding that leads somewhere."""
        for bound in self.world.bindings.bound:
            self._make(bound)
        for one in self.world.bindings.unbound:
            self._unbound(one)
        for component in self.world.components.found.values():
            self._validate(component)

    def _make(self, bound: Bound) -> None:
        compiled = self._plan(bound.component)
        if compiled.plan is None:
            self._stall(bound.binding.one, self._not_ready(bound, compiled))
            return
        build = find_build(self.world.builds, bound.component, bound.binding.environment)
        if doubt := self._doubt(bound, build):
            self._stall(bound.binding.one, (), doubt)
            return
        key = (*compiled.plan.seen_by(bound.component), bound.component, bound.binding, bound.environment, build)
        plan, facts = compiled.plan, facts_of(bound.binding, bound.environment, build)
        composed = self.memory.composed(
            key, lambda: render_component(plan, bound.component, bound.binding, facts, self.around.limits)
        )
        self._composed.setdefault(bound.component.key, []).append(composed)
        if composed.errors:
            self._stall(bound.binding.one, composed.findings)
            return
        places = self._maker.places(bound)
        made = self.memory.made(composed, places, lambda: self._maker.make(bound, plan, build, composed))
        self.made.append(made)
        self._statuses.append(binding_status(made))

    def _plan(self, component: Component) -> Compiled:
        """Return the plan of a component: its type's, or one of its own."""
        if component.has_type:
            return self._types[component.key.kind].compiled
        if not self.around.runtime:
            message = f"{component.key} has no type, and the setting rules.runtime_composition does not let it be"
            return Compiled(None, (RUNTIME_COMPOSITION_DISABLED.finding(message, component.one.where),))
        return self.memory.listed(component, self.world.library, lambda: compile_listed(component, self.world.library))

    def _not_ready(self, bound: Bound, compiled: Compiled) -> tuple[Finding, ...]:
        if not bound.component.has_type:
            return errors(compiled.findings)
        of = self._types[bound.component.key.kind]
        message = f"{bound.component.key} is of {of.one.key}, which is not ready: {of.why_not}"
        return (COMPONENT_TYPE_NOT_READY.finding(message, bound.component.one.where),)

    def _doubt(self, bound: Bound, build: Build | None) -> str:
        """Return why nobody can say what a component is to be made of: a build of it may be there, and is not known."""
        namespace, name = bound.component.key.namespace, bound.component.key.name
        names = [(namespace, f"{name}.{bound.binding.environment}"), (namespace, name)]
        before_it = names[: names.index((build.one.key.namespace, build.one.key.name))] if build else names
        # one that does not say where it belongs may belong here
        for one in (found for named in before_it for found in (named, ("", named[1]))):
            if one in self.world.doubtful_builds:
                return f"it stays as it is: Build/{'/'.join(one)} cannot be used"
        if self._is_whole:
            return ""
        units = [(cluster, bound.package) for cluster in bound.clusters]
        lost = sorted(name for unit in units for name in self._made_of(unit) if name not in self._present)
        return f"it stays as it is: {lost[0]} may be in a file that cannot be read" if lost else ""

    def _made_of(self, unit: Unit) -> Iterator[str]:
        yield from (name for name in self._inputs.get(unit, ()) if name.partition("/")[0] == BUILD)

    @cached_property
    def _is_whole(self) -> bool:
        return self.world.catalog.is_whole

    @cached_property
    def _present(self) -> Collection[str]:
        return frozenset(str(key) for key in self.world.catalog.objects)

    @cached_property
    def _inputs(self) -> Mapping[Unit, Collection[str]]:
        return self.around.before.inputs()

    def _unbound(self, one: Unbound) -> None:
        if one.is_gone:
            self.findings += one.findings
            first = errors(one.findings)[0]
            ready = Condition("Ready", "False", first.code, first.message)
            self._statuses.append(ConfigStatus(one.one.key, one.one.api_version, (ready,)))
        else:
            self._stall(one.one, one.findings)

    def _stall(self, one: ConfigObject, findings: Sequence[Finding], why: str = "") -> None:
        """Note a binding whose packages stay as they are."""
        # one that does not say where it belongs may be any of its name
        if not one.key.namespace:
            self.kept |= {owner.key for owner in self._owned.values() if owner.key.name == one.key.name}
        wrong = errors(tuple(findings))
        reason = wrong[0].code if wrong else "InDoubt"
        message = "; ".join(each.message for each in wrong) or why
        ready = Condition("Ready", "False", reason, message)
        owner = Owner(one.key, one.api_version)
        self.stalled.append(Stalled(owner, (ready,), tuple(findings), packages=requested_packages(one)))

    def _validate(self, component: Component) -> None:
        """Look at a component by itself (openchoreo 11, 12.7).

        Values that it lacks may be those of its environments, so that nothing is wrong with it where all have them;
        what is wrong where it runs is told there.
        """
        compiled = self._plan(component)
        if compiled.plan is None:
            self._alone[component.key] = None
            # of a type it is told there
            self.findings += () if component.has_type else compiled.findings
            return
        plan = compiled.plan
        composed = self.memory.composed(
            (*plan.seen_by(component), component),
            lambda: render_component(plan, component, None, Facts(), self.around.limits),
        )
        bound = self._composed.get(component.key, [])
        is_sound = bool(bound) and not any(one.errors for one in bound)
        self._alone[component.key] = bound[0] if is_sound else composed
        self.findings += () if component.has_type else compiled.findings
        self.findings += () if bound else composed.findings

    def keep_what_is_in_doubt(self) -> None:
        """Keep what clusters have of which not all is known (design 10.5)."""
        wanted = self._wanted()
        for (cluster, package), owner in sorted(self._owned.items()):
            home = self.inventory.homes.get(cluster)
            if cluster in self.inventory.doubtful and home and (cluster, package) not in wanted:
                ready = Condition("Ready", "False", "ClusterInDoubt", f"not all is known of cluster {cluster}")
                self.stalled.append(Stalled(owner, (ready,), (), Place(home.namespace, cluster, package)))

    def _wanted(self) -> set[Unit]:
        """Return what is wanted, whether or not it can be made now."""
        places = [one.place for made in self.made for one in made.variants]
        places += (one.place for one in self.stalled if one.place)
        return {(one.repository, one.package) for one in places}

    def guards(self) -> dict[ObjectKey, Guard]:
        """Return what each binding that is there lets go (design 10.15)."""
        wanted, existing = self._wanted(), dict[ObjectKey, list[Unit]]()
        for unit, owner in sorted(self._owned.items()):
            existing.setdefault(owner.key, []).append(unit)
        alive = [one.bound.binding.one for one in self.made]
        alive += (one.one for one in self.world.bindings.unbound if one.is_gone)
        return {
            one.key: guard_binding(one, existing.get(one.key, ()), wanted, self.inventory, self.around) for one in alive
        }

    def late_findings(self, guards: Mapping[ObjectKey, Guard]) -> Iterator[Finding]:
        """Yield what is held."""
        for key, guard in guards.items():
            if guard.why:
                yield DELETION_HELD.finding(guard.why, self.world.catalog.objects[key].where)

    def statuses(self) -> Iterator[ConfigStatus]:
        """Yield what is said of types, components, the catalogue, and of bindings (openchoreo 11.9, 14.3)."""
        yield from catalogue_statuses(self.world.library, self.world.catalog)
        yield from environment_statuses(self.world.environments, self.world.catalog)
        of_kind: dict[str, list[tuple[Component, Composed | None]]] = {}
        for component in self.world.components.found.values():
            alone = self._alone[component.key]
            of_kind.setdefault(component.key.kind, []).append((component, alone))
            yield component_status(component, self._plan(component), alone)
        for refused, why in self.world.components.refused:
            yield refused_status(refused, why)
        for one in self.world.types:
            yield type_status(one, of_kind.get(one.kind, ()))
        yield from self._statuses
