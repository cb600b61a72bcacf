"""The plan of a component without a type, which lists its own addons (openchoreo 13.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.krm.findings import Finding, errors
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import ADDON_KEY_INVALID, ADDON_NOT_FOUND, DEFINITION_NOT_FOUND
from reconciler.rules.composition.compile_type import (
    Compiled,
    incompatible,
    instance_findings,
    missing,
    not_allowed,
)
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.library import Library
from reconciler.rules.composition.model import Component, ListedAddon
from reconciler.rules.composition.names import addon_key, camel_case
from reconciler.rules.composition.order import ordered
from reconciler.rules.composition.plan import Plan, Use

_ADDONS: Path = ("spec", "addons")


def compile_listed(component: Component, library: Library) -> Compiled:
    """Return the plan of a component that names its definition and its addons itself, and what is wrong with it."""
    findings = list(_reference_findings(component, library))
    listed = component.addons or ()
    if not errors(findings):
        findings += instance_findings(component.one, [(one.instance, one.is_named, one.path) for one in listed])
    if errors(findings):
        return Compiled(None, tuple(findings))
    uses = tuple(_use(one, component, library) for one in listed)
    definition = library.definitions.found[component.definition]
    findings += incompatible(uses, definition, (), component.one)
    findings += missing(uses, {use.instance.addon for use in uses})
    if errors(findings):
        return Compiled(None, tuple(findings))
    plan = Plan(component.one, definition, listed=uses)
    order = ordered([use.instance for use in uses], plan.wishes, _ADDONS)
    if isinstance(order, Fault):
        return Compiled(None, (*findings, order.finding(component.one)))
    return Compiled(plan, tuple(findings))


def _reference_findings(component: Component, library: Library) -> Iterator[Finding]:
    one = component.one
    if component.definition not in library.definitions.found:
        why = library.definitions.why_not(component.definition)
        yield DEFINITION_NOT_FOUND.finding(why, one.where_at(("spec", "componentDefinition")))
    for listed in component.addons or ():
        name, where = listed.instance.addon, one.where_at((*listed.path, "name"))
        addon = library.addons.found.get(name)
        if addon is None:
            yield ADDON_NOT_FOUND.finding(library.addons.why_not(name), where)
        elif finding := not_allowed(addon, "developer", one, listed.path):
            yield finding
        elif addon_key(name) is None:
            yield ADDON_KEY_INVALID.finding(f"{name} makes no key that a field can have: {camel_case(name)}", where)


def _use(listed: ListedAddon, component: Component, library: Library) -> Use:
    addon, instance = library.addons.found[listed.instance.addon], replace(listed.instance, side="developer")
    return Use(
        instance, addon, camel_case(addon.name), addon.schema.full, component.one, listed.path,
        listed.config, is_named=listed.is_named,
    )  # fmt: skip
