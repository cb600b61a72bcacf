"""What the status branch says of types, components, bindings and the catalogue (openchoreo 11.9, 14.3, 10.27)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, errors
from reconciler.krm.messages import join_messages
from reconciler.rules.composition.compile_type import Compiled
from reconciler.rules.composition.environments import Environments
from reconciler.rules.composition.generated_files import FOLDER, type_fields
from reconciler.rules.composition.library import Library, named
from reconciler.rules.composition.make import Made
from reconciler.rules.composition.model import ADDON, DEFINITION, ENVIRONMENT, GLUE_GROUP, GROUP, Component
from reconciler.rules.composition.render import Composed
from reconciler.rules.composition.types import Type
from reconciler.rules.variant import ConfigStatus
from reconciler.snapshot.catalog import Catalog, ConfigObject

_LISTED = 20


def type_status(of: Type, components: Sequence[tuple[Component, Composed | None]]) -> ConfigStatus:
    """Return the status of a type, with its files; those of one that is not ready stay as they were."""
    one, plan = of.one, of.compiled.plan
    if plan is None:
        return ConfigStatus(one.key, one.api_version, (_failed(of.compiled.findings),), folder=FOLDER)
    conditions = (Condition("Ready", "True", "Compiled", ""), _instances(components), *_baked(of))
    return ConfigStatus(one.key, one.api_version, conditions, type_fields(plan), folder=FOLDER, files=of.compiled.files)


def _baked(of: Type) -> Iterator[Condition]:
    """Yield what became of the definition that a type's author asks for."""
    if of.read is None or not of.read.bake:
        return
    if of.compiled.unbaked:
        message = "; ".join(one.message for one in of.compiled.unbaked)
        yield Condition("Baked", "False", of.compiled.unbaked[0].code, message)
    else:
        yield Condition(
            "Baked", "True", "Baked", f"definition {of.read.bake} comes to the same without platform addons"
        )


def _failed(findings: Sequence[Finding]) -> Condition:
    wrong = errors(tuple(findings))
    return Condition("Ready", "False", wrong[0].code, "; ".join(one.message for one in wrong))


def _instances(components: Sequence[tuple[Component, Composed | None]]) -> Condition:
    """Return whether the components of a type are sound by it as it is now (openchoreo 11)."""
    wrong = [(component, composed.errors[0]) for component, composed in components if composed and composed.errors]
    if not wrong:
        return Condition("InstancesValid", "True", "Valid", f"all of {len(components)} components are valid")
    listed = join_messages(_of_component(component, finding) for component, finding in wrong)
    message = f"{len(wrong)} of {len(components)} components are not valid: {listed}"
    return Condition("InstancesValid", "False", wrong[0][1].code, message)


def _of_component(component: Component, finding: Finding) -> str:
    return f"{component.key}: {finding.message.removeprefix(f'{component.key}: ')}"


def component_status(component: Component, compiled: Compiled, composed: Composed | None) -> ConfigStatus:
    """Return the status of a component by itself; what it comes to in an environment its bindings tell."""
    ready = Condition("Ready", "True", "Valid", "its values are those of its type")
    if composed is None:
        wrong = errors(compiled.findings)
        reason = "ComponentTypeNotReady" if component.has_type else wrong[0].code
        ready = Condition("Ready", "False", reason, "; ".join(one.message for one in wrong))
    elif composed.errors:
        ready = _failed(composed.findings)
    return ConfigStatus(component.key, component.one.api_version, (ready,))


def refused_status(one: ConfigObject, why: Finding) -> ConfigStatus:
    """Return the status of a component that cannot even be looked at."""
    return ConfigStatus(one.key, one.api_version, (Condition("Ready", "False", why.code, why.message),))


def binding_status(made: Made) -> ConfigStatus:
    """Return what the room knows of a binding whose packages are made; the rest is told by them."""
    binding = made.bound.binding.one
    fields = {
        "component": {"kind": made.bound.component.key.kind, "name": made.bound.component.key.name},
        "environment": made.bound.binding.environment,
        "clusters": list(made.bound.clusters),
        "addons": [str(one) for one in made.composed.worked],
    }
    return ConfigStatus(binding.key, binding.api_version, (), fields)


def catalogue_statuses(library: Library, catalog: Catalog) -> Iterator[ConfigStatus]:
    """Yield the status of every definition and addon: whether it can be used."""
    for kind, shelf in ((DEFINITION, library.definitions), (ADDON, library.addons)):
        objects = (one for found in named(catalog, GROUP, kind).values() for one in found)
        for one in {each.key: each for each in objects}.values():
            ready = Condition("Ready", "True", "Valid", "")
            if one.key.name in shelf.unusable:
                ready = _unusable(one, library.findings, shelf.why_not(one.key.name))
            yield ConfigStatus(one.key, one.api_version, (ready,))


def _unusable(one: ConfigObject, findings: Sequence[Finding], why: str) -> Condition:
    """Return why an object cannot be used: by what is wrong with it, else by what else there is of its name."""
    told = [finding for finding in findings if finding.where.object == str(one.key)]
    return _failed(told) if errors(told) else Condition("Ready", "False", "Invalid", why)


def environment_statuses(environments: Environments, catalog: Catalog) -> Iterator[ConfigStatus]:
    """Yield the status of every environment: whether it can be used, and the clusters that serve it."""
    for one in catalog.of_kind(GLUE_GROUP, ENVIRONMENT):
        name = one.key.name
        if name not in environments.found:
            why = _unusable(one, environments.findings, environments.why_not(name))
            yield ConfigStatus(one.key, one.api_version, (why,))
            continue
        clusters = environments.clusters[name]
        served = Condition("Ready", "True", "Served", f"{len(clusters)} cluster(s) serve it")
        ready = served if clusters else Condition("Ready", "False", "NoClusters", "no cluster serves it")
        fields = {"clusters": list(clusters[:_LISTED]), "clusterCount": len(clusters)}
        yield ConfigStatus(one.key, one.api_version, (ready,), fields)
