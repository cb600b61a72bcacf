"""Which component runs in which environment, and on which clusters that is (openchoreo 1.5, 12.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding
from reconciler.rules.composition.codes import (
    COMPONENT_TYPE_NOT_FOUND,
    ENV_BINDING_DUPLICATE,
    ENV_BINDING_OWNER_GUESSED,
    ENV_BINDING_OWNER_UNRESOLVED,
    ENVIRONMENT_NOT_FOUND,
)
from reconciler.rules.composition.components import Components, Name
from reconciler.rules.composition.environments import Environments
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.model import BINDING, GROUP, Component, EnvBinding, Environment
from reconciler.rules.composition.read_component import read_binding
from reconciler.rules.fields import listed
from reconciler.snapshot.catalog import Catalog, ConfigObject

_OWNER = ("spec", "owner", "componentName")


@dataclass(frozen=True, eq=False)
class Bound:
    """A component that is to run in an environment: what is wanted on each of these clusters."""

    binding: EnvBinding
    component: Component
    environment: Environment
    clusters: tuple[str, ...]

    @property
    def package(self) -> str:
        """The path of its package (design 3)."""
        key = self.component.key
        return _package_path(self.binding.environment, key.namespace, key.name)


def requested_packages(one: ConfigObject) -> frozenset[str]:
    """Return the path of the package that a binding requests by its text alone; empty where it does not name both."""
    spec = one.data.get("spec")
    owner = spec.get("owner") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(owner, dict):
        return frozenset()
    environment, component = spec.get("environment"), owner.get("componentName")
    if not isinstance(environment, str) or not isinstance(component, str):
        return frozenset()
    return frozenset({_package_path(environment, one.key.namespace, component)})


def _package_path(environment: str, namespace: str, component: str) -> str:
    return f"components/{environment}/{namespace}/{component}"


@dataclass(frozen=True, eq=False)
class Unbound:
    """A binding that leads to nothing; `is_gone`: its component is not there, so that nobody wants its packages."""

    one: ConfigObject
    findings: tuple[Finding, ...]
    is_gone: bool = False


@dataclass
class Bindings:
    """The bindings of a config: those that lead somewhere, and the others."""

    bound: list[Bound] = field(default_factory=list)
    unbound: list[Unbound] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def read_bindings(catalog: Catalog, components: Components, environments: Environments, memory: Memory) -> Bindings:
    """Return what is bound to what; each that leads nowhere is told with its reason."""
    found = Bindings()
    named: dict[tuple[Name, str], list[EnvBinding]] = {}
    for one in catalog.of_kind(GROUP, BINDING):
        binding, told = memory.read(read_binding, one)
        if binding is None:
            found.unbound.append(Unbound(one, told))
            continue
        name, guess = _component(binding, components)
        found.findings += (*told, *guess)
        if name is None:
            found.unbound.append(
                Unbound(one, (_unresolved(binding, components),), is_gone=_is_gone(binding, components))
            )
        else:
            named.setdefault((name, binding.environment), []).append(binding)
    for (name, _), bindings in sorted(named.items()):
        if len(bindings) > 1:
            found.unbound += _duplicates(bindings)
            continue
        bound = _bound(bindings[0], name, components, environments)
        if isinstance(bound, Bound):
            found.bound.append(bound)
        else:
            found.unbound.append(bound)
    return found


def _component(binding: EnvBinding, components: Components) -> tuple[Name | None, Sequence[Finding]]:
    """Return the name of the component of a binding, guessed from its own where it says nothing (openchoreo 1.5)."""
    if binding.component:
        name = (binding.namespace, binding.component)
        return (name if name in components.found or name in components.unusable else None), ()
    parts = binding.key.name.split("-")
    prefixes = ("-".join(parts[:end]) for end in range(1, len(parts)))
    near = [name for name in prefixes if name in components.by_namespace.get(binding.namespace, ())]
    if len(near) != 1:
        return None, ()
    message = f'spec.owner.componentName is missing; by the name of {binding.key} it is taken for "{near[0]}"'
    return (binding.namespace, near[0]), (ENV_BINDING_OWNER_GUESSED.finding(message, binding.one.where_at(_OWNER)),)


def _unresolved(binding: EnvBinding, components: Components) -> Finding:
    where = binding.one.where_at(_OWNER)
    if not binding.component:
        message = (
            "spec.owner.componentName must name a component: without it, of the components in namespace"
            f" {binding.namespace} not one alone begins the name {binding.key.name}"
        )
        return ENV_BINDING_OWNER_UNRESOLVED.finding(message, where)
    if other := components.typeless.get((binding.namespace, binding.component)):
        message = f"{other.key} is of a kind that no component type makes, and cannot be bound by {binding.key}"
        return COMPONENT_TYPE_NOT_FOUND.finding(message, where)
    there = listed(sorted(components.by_namespace.get(binding.namespace, ()))) or "none at all"
    message = (
        f'spec.owner.componentName must name a component of namespace {binding.namespace}, not "{binding.component}";'
        f" there are {there}"
    )
    return ENV_BINDING_OWNER_UNRESOLVED.finding(message, where)


def _is_gone(binding: EnvBinding, components: Components) -> bool:
    return bool(binding.component) and (binding.namespace, binding.component) not in components.typeless


def _duplicates(bindings: Iterable[EnvBinding]) -> list[Unbound]:
    listed = list(bindings)
    names = " and ".join(str(one.key) for one in listed)
    message = f"a component is bound to an environment once, and {names} bind one to {listed[0].environment}"
    return [Unbound(one.one, (ENV_BINDING_DUPLICATE.finding(message, one.one.where),)) for one in listed]


def _bound(binding: EnvBinding, name: Name, components: Components, environments: Environments) -> Bound | Unbound:
    if name in components.unusable:
        message = f"{binding.key} waits for its component: {components.unusable[name]}"
        return Unbound(binding.one, (ENV_BINDING_OWNER_UNRESOLVED.finding(message, binding.one.where_at(_OWNER)),))
    environment = environments.found.get(binding.environment)
    clusters = environments.clusters.get(binding.environment, ())
    if environment is None or not clusters:
        why = f"{environment.one.key} has none" if environment else environments.why_not(binding.environment)
        message = f"spec.environment must be one with clusters: {why}"
        where = binding.one.where_at(("spec", "environment"))
        return Unbound(binding.one, (ENVIRONMENT_NOT_FOUND.finding(message, where),))
    return Bound(binding, components.found[name], environment, clusters)
