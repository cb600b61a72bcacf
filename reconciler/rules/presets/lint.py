"""Lint: what is odd about presets and options though no Plugin stumbles over it today."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.expressions import Limits
from reconciler.krm.findings import Finding
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import DEPRECATED, SELECTOR_MATCHES_NOTHING
from reconciler.rules.near import requirements_of, why_none
from reconciler.rules.presets.codes import EXPRESSION_UNUSABLE
from reconciler.rules.presets.expressions import expression_faults
from reconciler.rules.presets.layers import Contributor, Statement
from reconciler.rules.presets.memory import Memory
from reconciler.rules.presets.model import DEFINITION_KINDS, GROUP, PLUGIN, PRESET, Entries, Expression, PluginOverride
from reconciler.rules.presets.read_plugin import read_plugin
from reconciler.rules.presets.read_preset import read_preset
from reconciler.rules.presets.selection import select_clusters
from reconciler.rules.presets.world import World, read_world
from reconciler.snapshot.catalog import Catalog, ConfigObject

_OLD_DOCS, _DOCS = "docMarkDownUrl", "docsURL"


def lint_presets(catalog: Catalog, inventory: Inventory, limits: Limits | None) -> Iterator[Finding]:
    """Yield what is odd: selectors that match no cluster, expressions that no cluster could evaluate, old spellings.

    Without `limits`, expressions are switched off. To be asked of a catalog that is whole only.
    """
    world = read_world(catalog, inventory, Memory())
    yield from _idle_presets(world)
    yield from _idle_choices(world)
    if limits:
        yield from _expressions(world, limits)
    for kind in DEFINITION_KINDS:
        yield from (finding for one in catalog.of_kind(GROUP, kind) for finding in _old_spellings(one))


def _idle_presets(world: World) -> Iterator[Finding]:
    for one in world.catalog.of_kind(GROUP, PRESET):
        preset, _ = read_preset(one)
        if preset is None or select_clusters(preset, world.fleet):
            continue
        namespace = one.key.namespace
        labelled = [cluster.labels for cluster in world.fleet.of(namespace).values()]
        why = why_none(requirements_of(preset.selector), labelled, f"Cluster of {namespace}")
        message = f"spec.clusterSelector matches nothing, and no Plugin is made: {why}"
        yield SELECTOR_MATCHES_NOTHING.finding(message, one.where_at(("spec", "clusterSelector")))


def _idle_choices(world: World) -> Iterator[Finding]:
    """Yield a warning for each label selector of a PluginOverride that matches no cluster."""
    for override in (each.read for some in world.overrides.values() for each in some if each.read.sound):
        yield from _idle_selectors(override, world)


def _idle_selectors(override: PluginOverride, world: World) -> Iterator[Finding]:
    namespace = override.one.key.namespace
    labelled = [cluster.labels for cluster in world.fleet.of(namespace).values()]
    for choice in override.clusters.choices:
        selector = choice.selector
        if selector is not None and not any(selector.matches(labels) for labels in labelled):
            why = why_none(requirements_of(selector), labelled, f"Cluster of {namespace}")
            message = f"spec.clusterSelector has a labelSelector that matches nothing: {why}"
            yield SELECTOR_MATCHES_NOTHING.finding(message, override.one.where_at(("spec", "clusterSelector")))


def _expressions(world: World, limits: Limits) -> Iterator[Finding]:
    # the value of a secret is not shown, and its expression may hold it
    hidden = {
        name for usable in world.definitions.values() for name, one in usable.definition.options.items()
        if one.type == "secret"
    }  # fmt: skip
    for one, entries in _entries(world):
        for entry in entries.entries:
            faults = expression_faults(entry.source.text, limits) if isinstance(entry.source, Expression) else ()
            if faults:
                why = "what is wrong is not shown, for it is a secret" if entry.name in hidden else "; ".join(faults)
                statement = Statement("", one, entry.source, entry.path)
                message = f"{statement.field} can give no value to any Plugin: {why}"
                yield EXPRESSION_UNUSABLE.finding(message, statement.where)


def _entries(world: World) -> Iterator[tuple[ConfigObject, Entries]]:
    """Yield every list of options that may have expressions, with the object that it stands in."""
    for one in world.catalog.of_kind(GROUP, PRESET):
        preset, _ = read_preset(one)
        lists = (preset.spec.options, *preset.cluster_options.values()) if preset else ()
        yield from ((one, entries) for entries in lists)
    for one in world.catalog.of_kind(GROUP, PLUGIN):
        plugin, _ = read_plugin(one)
        if plugin:
            yield one, plugin.spec.options
    contributors: list[Contributor] = [*world.own.values()]
    contributors += [each.contributor for some in world.overrides.values() for each in some if each.read.sound]
    yield from ((each.one, each.options) for each in contributors)


def _old_spellings(one: ConfigObject) -> Iterator[Finding]:
    spec = one.data.get("spec")
    if isinstance(spec, dict) and spec.get(_OLD_DOCS) is not None:
        message = f"spec.{_OLD_DOCS} is deprecated; write spec.{_DOCS}"
        yield DEPRECATED.finding(message, one.where_at(("spec", _OLD_DOCS)))
