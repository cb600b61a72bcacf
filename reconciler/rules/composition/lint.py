"""Lint: what of the catalogue, of components and around them nothing uses, and environments without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import SELECTOR_MATCHES_NOTHING, UNUSED
from reconciler.rules.composition.codes import BUILD_UNUSED
from reconciler.rules.composition.components import Components
from reconciler.rules.composition.library import Shelf
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.room import World, read_world
from reconciler.rules.composition.surroundings import Surroundings
from reconciler.rules.fields import listed, meant
from reconciler.rules.near import requirements_of, why_none
from reconciler.snapshot.catalog import Catalog, ConfigObject


def lint_components(catalog: Catalog, inventory: Inventory, around: Surroundings) -> Iterator[Finding]:
    """Yield what nothing uses, and what selects no cluster. To be asked of a catalog that is whole only."""
    world = read_world(catalog, inventory, around, Memory())
    yield from _environments(world, inventory)
    yield from _catalogue(world)
    yield from _types(world)
    yield from _components(world)
    yield from _builds(world)


def _environments(world: World, inventory: Inventory) -> Iterator[Finding]:
    # a binding that leads nowhere may be meant for any of them
    bound = {one.binding.environment for one in world.bindings.bound}
    labelled = [cluster.labels for cluster in inventory.clusters.values()]
    for name, environment in world.environments.found.items():
        selector = environment.selector
        if selector is not None and not any(selector.matches(labels) for labels in labelled):
            message = (
                f"spec.clusterSelector matches nothing: {why_none(requirements_of(selector), labelled, 'cluster')}"
            )
            where = environment.one.where_at(("spec", "clusterSelector"))
            yield SELECTOR_MATCHES_NOTHING.finding(message, where)
        elif name not in bound and world.environments.clusters[name] and not world.bindings.unbound:
            yield _unused(environment.one, "no EnvBinding is for it")


def _catalogue(world: World) -> Iterator[Finding]:
    types = [one.read for one in world.types if one.read]
    untyped = [one for one in world.components.found.values() if not one.has_type]
    definitions = {*(one.definition for one in types), *(one.definition for one in untyped)}
    yield from _idle(
        world.library.definitions, definitions, "no component type, and no Component, is made of it", world
    )
    listed_by = {addon.instance.addon for one in untyped for addon in one.addons or ()}
    addons = {instance.instance.addon for one in types for instance in one.platform} | listed_by
    addons |= {allowed.name for one in types for allowed in one.allowed}
    yield from _idle(world.library.addons, addons, "no component type, and no Component, names it", world)


def _idle(shelf: Shelf[Any], used: set[str], why: str, world: World) -> Iterator[Finding]:
    # a type that cannot be read may use anything
    if any(one.read is None for one in world.types) or world.components.unusable:
        return
    for one in (one for one in world.catalog.objects.values() if one.key.kind == shelf.kind):
        if one.key.name in shelf.found and one.key.name not in used:
            yield _unused(one, why)


def _types(world: World) -> Iterator[Finding]:
    kinds = {one.key.kind for one in world.components.found.values()}
    unusable = world.components.unusable
    for one in (one for one in world.types if one.compiled.plan and one.kind not in kinds and not unusable):
        yield _unused(one.one, f"there is no {one.kind}")


def _components(world: World) -> Iterator[Finding]:
    """Yield an info for each component that runs nowhere."""
    if world.bindings.unbound:
        # which of these a binding that leads nowhere is meant for, nobody knows
        return
    bound = {one.component.key for one in world.bindings.bound}
    for component in world.components.found.values():
        if component.key not in bound:
            yield _unused(component.one, "no EnvBinding is for it, and it runs nowhere")


def _builds(world: World) -> Iterator[Finding]:
    runs: dict[tuple[str, str], set[str]] = {}
    for one in world.bindings.bound:
        runs.setdefault((one.component.key.namespace, one.component.key.name), set()).add(one.binding.environment)
    for (namespace, name), build in world.builds.items():
        if why := _no_use(namespace, name, world.components, runs):
            yield BUILD_UNUSED.finding(
                f"{build.one.key} is for nothing: {why}", build.one.where_at(("metadata", "name"))
            )


def _no_use(namespace: str, name: str, components: Components, runs: Mapping[tuple[str, str], set[str]]) -> str:
    """Return why a build is for nothing; its name is `<component>` or `<component>.<environment>`."""
    names = components.by_namespace.get(namespace, ())
    if name in names:
        return ""
    component, _, environment = name.rpartition(".")
    if component not in names:
        there = listed(sorted(names)) or "none"
        wanted = component or name
        return (
            f"no component of namespace {namespace} is called {wanted}; there are {there}{meant(wanted, sorted(names))}"
        )
    in_use = runs.get((namespace, component), set())
    if not in_use or environment in in_use:
        return ""
    guess = meant(environment, sorted(in_use))
    return f"{component} does not run in {environment}, but in {listed(sorted(in_use))}{guess}"


def _unused(one: ConfigObject, why: str) -> Finding:
    return UNUSED.finding(f"{one.key} is not used: {why}", one.where)
