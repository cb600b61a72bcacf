"""Components, environments, and the EnvBindings that bind components to environments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.definition_index import NameIndex, build_name_index
from reconciler.controllers.components.inputs import ComponentCache
from reconciler.controllers.components.model import (
    Component,
    EnvBinding,
    Environment,
    read_binding,
    read_component,
    read_environment,
)
from reconciler.controllers.components.names import BINDING, COMPONENT, ENVIRONMENT, GROUP, KINDS, RECONCILER_GROUP
from reconciler.krm.field_text import format_list, quote_list, quote_value, suggest_name
from reconciler.krm.findings import Finding, select_errors
from reconciler.lazy_dataclasses import dataclass, field

ComponentName = tuple[str, str]
"""Namespace and name of a component, which are unique across all kinds of components."""


@dataclass(frozen=True)
class Components:
    """Components of a config. The keys of all mappings are the namespace and the name of a component.

    Attributes:
        by_name: Components that are valid and have a unique name.
        unusable_reasons: For each component that is invalid or has no unique name, the reason.
        objects_of_unknown_kind: Objects in the `platform` API group whose kind no component type generates.
        rejected: Pairs of an object that is not usable as a component and its error. The objects of unknown kind are
            included.
    """

    by_name: Mapping[ComponentName, Component] = field(default_factory=dict)
    unusable_reasons: Mapping[ComponentName, str] = field(default_factory=dict)
    objects_of_unknown_kind: Mapping[ComponentName, ConfigObject] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    rejected: Sequence[tuple[ConfigObject, Finding]] = ()

    @cached_property
    def names_by_namespace(self) -> Mapping[str, Collection[str]]:
        """Names of all components by namespace. Components that are not usable are included."""
        names: dict[str, set[str]] = {}
        for namespace, name in (*self.by_name, *self.unusable_reasons):
            names.setdefault(namespace, set()).add(name)
        return names


def read_components(catalog: Catalog, kinds: Collection[str], cache: ComponentCache) -> Components:
    """Read the components of a config.

    `kinds` contains the kinds of all component types, including component types with errors.
    """
    objects_by_name: dict[ComponentName, list[ConfigObject]] = {}
    for kind in sorted({*kinds, COMPONENT}):
        for manifest in catalog.objects_of_kind(GROUP, kind):
            objects_by_name.setdefault((manifest.key.namespace, manifest.key.name), []).append(manifest)
    duplicates = [key for key in catalog.duplicates if key.group == GROUP and key.kind in {*kinds, COMPONENT}]
    unusable = {(key.namespace, key.name): f"{key} is declared more than once" for key in sorted(duplicates)}
    by_name: dict[ComponentName, Component] = {}
    findings: list[Finding] = []
    rejected: list[tuple[ConfigObject, Finding]] = []
    for name, objects in sorted(objects_by_name.items()):
        if len(objects) > 1:
            keys = format_list([str(manifest.key) for manifest in objects], " and ")
            unusable[name] = f"{keys} have the same name"
            message = f"{unusable[name]}; each component in a namespace must have a different name"
            rejected += (
                (manifest, ComponentCodes.COMPONENT_NAME_CONFLICT.finding(message, manifest.location))
                for manifest in objects
            )
            continue
        component, component_findings = cache.read(read_component, objects[0])
        if component is None:
            unusable[name] = f"{objects[0].key} cannot be read"
            rejected.append((objects[0], select_errors(component_findings)[0]))
            findings += (finding for finding in component_findings if finding is not rejected[-1][1])
        elif name not in unusable:
            by_name[name] = component
    unknown = _find_objects_of_unknown_kind(catalog, kinds)
    hints = {kind: _describe_kinds(kind, kinds) for kind in {manifest.key.kind for manifest in unknown.values()}}
    rejected += (
        (manifest, _build_unknown_kind_finding(manifest, hints[manifest.key.kind])) for manifest in unknown.values()
    )
    return Components(by_name, unusable, unknown, (*findings, *(finding for _, finding in rejected)), rejected)


def _find_objects_of_unknown_kind(catalog: Catalog, kinds: Collection[str]) -> Mapping[ComponentName, ConfigObject]:
    candidates = (manifest for manifest in catalog.objects.values() if manifest.key.group == GROUP)
    unknown = (manifest for manifest in candidates if manifest.key.kind not in {*KINDS, *kinds})
    return {(manifest.key.namespace, manifest.key.name): manifest for manifest in unknown}


def _describe_kinds(kind: str, kinds: Collection[str]) -> str:
    known = sorted(kinds)
    return f"generated kinds: {quote_list(known) or 'none'}{suggest_name(kind, known)}"


def _build_unknown_kind_finding(manifest: ConfigObject, hint: str) -> Finding:
    message = f"no ComponentType generates the kind {quote_value(manifest.key.kind)} of {manifest.key}; {hint}"
    return ComponentCodes.COMPONENT_TYPE_NOT_FOUND.finding(message, manifest.location_of(("kind",)))


@dataclass(frozen=True)
class Environments:
    """Environments of a config, the sorted cluster names of each environment, and findings about all environments."""

    index: NameIndex[Environment]
    clusters_by_name: Mapping[str, tuple[str, ...]]
    findings: tuple[Finding, ...]


def read_environments(catalog: Catalog, inventory: ClusterInventory, cache: ComponentCache) -> Environments:
    """Read the environments of a config, and select their clusters from the inventory."""
    index = build_name_index(catalog, RECONCILER_GROUP, ENVIRONMENT, partial(cache.read, read_environment))
    environments = index.by_name.values()
    findings = (finding for environment in environments for finding in _check_cluster_names(environment, inventory))
    clusters = {name: _select_clusters(environment, inventory) for name, environment in index.by_name.items()}
    return Environments(index, clusters, (*index.findings, *findings))


def _select_clusters(environment: Environment, inventory: ClusterInventory) -> tuple[str, ...]:
    """Return the sorted names of the clusters that an environment lists or selects by labels."""
    names = {name for name in environment.spec.clusters if name in inventory.clusters}
    selector = environment.selector
    if selector is not None:
        names |= {cluster.name for cluster in inventory.clusters.values() if selector.matches(cluster.labels)}
    return tuple(sorted(names))


def _check_cluster_names(environment: Environment, inventory: ClusterInventory) -> Iterator[Finding]:
    for index, name in enumerate(environment.spec.clusters):
        if name not in inventory.clusters and name not in inventory.uncertain_names:
            guess = suggest_name(name, sorted(inventory.clusters))
            message = f"spec.clusters[{index}] is {quote_value(name)}, but there is no cluster with this name{guess}"
            yield ControllerCodes.UNKNOWN_CLUSTER.finding(
                message, environment.manifest.location_of(("spec", "clusters", index))
            )


_OWNER = ("spec", "owner", "componentName")


@dataclass(frozen=True, eq=False)
class ResolvedBinding:
    """EnvBinding whose component and environment exist. `clusters` contains the clusters of the environment."""

    binding: EnvBinding
    component: Component
    environment: Environment
    clusters: tuple[str, ...]

    @property
    def package(self) -> str:
        """Path of the package that contains the rendered component, e.g. `components/live/shop/orders`."""
        key = self.component.key
        return _build_package_path(self.binding.environment, key.namespace, key.name)


def get_requested_packages(manifest: ConfigObject) -> frozenset[str]:
    """Return the path of the package that an EnvBinding requests, as a set. The EnvBinding can be invalid.

    Return an empty set if the name of the component or environment is missing.
    """
    spec = manifest.data.get("spec")
    owner = spec.get("owner") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(owner, dict):
        return frozenset()
    environment, component = spec.get("environment"), owner.get("componentName")
    if not isinstance(environment, str) or not isinstance(component, str):
        return frozenset()
    return frozenset({_build_package_path(environment, manifest.key.namespace, component)})


def _build_package_path(environment: str, namespace: str, component: str) -> str:
    return f"components/{environment}/{namespace}/{component}"


@dataclass(frozen=True, eq=False)
class UnresolvedBinding:
    """EnvBinding that is not valid, or whose component or environment is not usable.

    If `is_component_missing` is true, the component does not exist. The packages of the EnvBinding are then no longer
    requested.
    """

    manifest: ConfigObject
    findings: tuple[Finding, ...]
    is_component_missing: bool = False


@dataclass
class ComponentBindings:
    """All EnvBindings of a config, resolved and unresolved, with the findings about EnvBindings."""

    resolved: list[ResolvedBinding] = field(default_factory=list)
    unresolved: list[UnresolvedBinding] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def resolve_bindings(
    catalog: Catalog, components: Components, environments: Environments, cache: ComponentCache
) -> ComponentBindings:
    """Find the component, the environment and the clusters of every EnvBinding."""
    result = ComponentBindings()
    bindings_by_target: dict[tuple[ComponentName, str], list[EnvBinding]] = {}
    for manifest in catalog.objects_of_kind(GROUP, BINDING):
        binding, binding_findings = cache.read(read_binding, manifest)
        if binding is None:
            result.unresolved.append(UnresolvedBinding(manifest, binding_findings))
            continue
        name, guess_findings = _find_component_name(binding, components)
        result.findings += (*binding_findings, *guess_findings)
        if name is None:
            result.unresolved.append(
                UnresolvedBinding(
                    manifest,
                    (_build_unresolved_finding(binding, components),),
                    is_component_missing=_is_component_missing(binding, components),
                )
            )
        else:
            bindings_by_target.setdefault((name, binding.environment), []).append(binding)
    for (name, _), bindings in sorted(bindings_by_target.items()):
        if len(bindings) > 1:
            result.unresolved += _reject_duplicates(bindings)
            continue
        resolved = _resolve_binding(bindings[0], name, components, environments)
        if isinstance(resolved, ResolvedBinding):
            result.resolved.append(resolved)
        else:
            result.unresolved.append(resolved)
    return result


def _find_component_name(binding: EnvBinding, components: Components) -> tuple[ComponentName | None, Sequence[Finding]]:
    """Return the namespace and name of an EnvBinding's component. Return None if there is no such component.

    If the EnvBinding does not name a component, its own name must have the form `<component>-<suffix>`.
    """
    if binding.component:
        name = (binding.namespace, binding.component)
        return (name if name in components.by_name or name in components.unusable_reasons else None), ()
    parts = binding.key.name.split("-")
    prefixes = ("-".join(parts[:end]) for end in range(1, len(parts)))
    matches = [name for name in prefixes if name in components.names_by_namespace.get(binding.namespace, ())]
    if len(matches) != 1:
        return None, ()
    message = (
        f'spec.owner.componentName is missing; the component "{matches[0]}" is used, because the name'
        f' of {binding.key} begins with "{matches[0]}"; set the field'
    )
    return (binding.namespace, matches[0]), (
        ComponentCodes.ENV_BINDING_OWNER_GUESSED.finding(message, binding.manifest.location_of(_OWNER)),
    )


def _build_unresolved_finding(binding: EnvBinding, components: Components) -> Finding:
    location = binding.manifest.location_of(_OWNER)
    if not binding.component:
        message = (
            f'spec.owner.componentName is missing, and the name "{binding.key.name}" does not begin with the name of'
            f' exactly one component in namespace "{binding.namespace}"; set the field'
        )
        return ComponentCodes.ENV_BINDING_OWNER_UNRESOLVED.finding(message, location)
    if other := components.objects_of_unknown_kind.get((binding.namespace, binding.component)):
        message = f'{binding.key} refers to {other.key}, but no ComponentType generates the kind "{other.key.kind}"'
        return ComponentCodes.COMPONENT_TYPE_NOT_FOUND.finding(message, location)
    names = quote_list(sorted(components.names_by_namespace.get(binding.namespace, ()))) or "none"
    message = (
        f'spec.owner.componentName must be the name of a component in namespace "{binding.namespace}",'
        f' but is "{binding.component}"; existing names: {names}'
    )
    return ComponentCodes.ENV_BINDING_OWNER_UNRESOLVED.finding(message, location)


def _is_component_missing(binding: EnvBinding, components: Components) -> bool:
    return bool(binding.component) and (binding.namespace, binding.component) not in components.objects_of_unknown_kind


def _reject_duplicates(bindings: Iterable[EnvBinding]) -> list[UnresolvedBinding]:
    duplicates = list(bindings)
    names = " and ".join(str(binding.key) for binding in duplicates)
    message = f"{names} bind the same component to the same environment; keep only one of these EnvBindings"
    return [
        UnresolvedBinding(
            binding.manifest, (ComponentCodes.ENV_BINDING_DUPLICATE.finding(message, binding.manifest.location),)
        )
        for binding in duplicates
    ]


def _resolve_binding(
    binding: EnvBinding, name: ComponentName, components: Components, environments: Environments
) -> ResolvedBinding | UnresolvedBinding:
    if name in components.unusable_reasons:
        message = f"the component of {binding.key} is not usable, because {components.unusable_reasons[name]}"
        return UnresolvedBinding(
            binding.manifest,
            (ComponentCodes.ENV_BINDING_OWNER_UNRESOLVED.finding(message, binding.manifest.location_of(_OWNER)),),
        )
    environment = environments.index.by_name.get(binding.environment)
    clusters = environments.clusters_by_name.get(binding.environment, ())
    if environment is None or not clusters:
        reason = (
            f"{environment.manifest.key} has no cluster"
            if environment
            else environments.index.explain_absence(binding.environment)
        )
        message = f"spec.environment must refer to an environment with clusters, but {reason}"
        location = binding.manifest.location_of(("spec", "environment"))
        return UnresolvedBinding(binding.manifest, (ComponentCodes.ENVIRONMENT_NOT_FOUND.finding(message, location),))
    return ResolvedBinding(binding, components.by_name[name], environment, clusters)
