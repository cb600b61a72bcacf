"""Lint findings about components: unused objects, and environments whose selector matches no cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.bindings import Components
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.controller import ComponentSnapshot, read_component_snapshot
from reconciler.controllers.components.definition_index import NameIndex
from reconciler.controllers.components.inputs import ComponentCache, ComponentControllerInputs
from reconciler.controllers.validation import explain_no_match, list_requirements
from reconciler.krm.field_text import quote_list, quote_value, suggest_name
from reconciler.krm.findings import Finding


def lint_components(
    catalog: Catalog, inventory: ClusterInventory, inputs: ComponentControllerInputs
) -> Iterator[Finding]:
    """Yield the lint findings of all components. Call this function only if all files of the catalog can be read."""
    snapshot = read_component_snapshot(catalog, inventory, inputs, ComponentCache())
    yield from _lint_environments(snapshot, inventory)
    yield from _lint_definitions(snapshot)
    yield from _lint_types(snapshot)
    yield from _lint_components(snapshot)
    yield from _lint_builds(snapshot)


def _lint_environments(snapshot: ComponentSnapshot, inventory: ClusterInventory) -> Iterator[Finding]:
    # Report an unused environment only if all EnvBindings are resolved. An unresolved EnvBinding can refer to any
    # environment.
    used_names = {binding.binding.environment for binding in snapshot.bindings.resolved}
    label_sets = [cluster.labels for cluster in inventory.clusters.values()]
    for name, environment in snapshot.environments.index.by_name.items():
        selector = environment.selector
        if selector is not None and not any(selector.matches(labels) for labels in label_sets):
            reason = explain_no_match(list_requirements(selector), label_sets, "cluster")
            message = f"spec.clusterSelector matches no cluster, because {reason}"
            location = environment.manifest.location_of(("spec", "clusterSelector"))
            yield ControllerCodes.SELECTOR_MATCHES_NOTHING.finding(message, location)
        elif (
            name not in used_names and snapshot.environments.clusters_by_name[name] and not snapshot.bindings.unresolved
        ):
            yield _build_unused_finding(environment.manifest, "no EnvBinding refers to this environment")


def _lint_definitions(snapshot: ComponentSnapshot) -> Iterator[Finding]:
    types = [result.model for result in snapshot.types if result.model]
    untyped_components = [component for component in snapshot.components.by_name.values() if not component.has_type]
    definitions = {*(model.definition for model in types), *(component.definition for component in untyped_components)}
    yield from _find_unused(
        snapshot.definition_index.definitions,
        definitions,
        "no ComponentType or Component uses this definition",
        snapshot,
    )
    addons = {name for model in types for name in model.addon_names}
    addons |= {name for component in untyped_components for name in component.addon_names}
    yield from _find_unused(
        snapshot.definition_index.addons, addons, "no ComponentType or Component uses this addon", snapshot
    )


def _find_unused(
    definitions: NameIndex[Any], used_names: set[str], reason: str, snapshot: ComponentSnapshot
) -> Iterator[Finding]:
    # Report nothing if a component type or component is not usable, because the unusable object can use any definition
    # or addon.
    if any(result.model is None for result in snapshot.types) or snapshot.components.unusable_reasons:
        return
    for manifest in (item for item in snapshot.catalog.objects.values() if item.key.kind == definitions.kind):
        if manifest.key.name in definitions.by_name and manifest.key.name not in used_names:
            yield _build_unused_finding(manifest, reason)


def _lint_types(snapshot: ComponentSnapshot) -> Iterator[Finding]:
    kinds = {component.key.kind for component in snapshot.components.by_name.values()}
    if snapshot.components.unusable_reasons:
        return
    for result in snapshot.types:
        if result.compilation.plan and result.kind not in kinds:
            yield _build_unused_finding(result.manifest, f'no component has the kind "{result.kind}"')


def _lint_components(snapshot: ComponentSnapshot) -> Iterator[Finding]:
    """Yield an info for each component that no EnvBinding refers to."""
    if snapshot.bindings.unresolved:
        # Report nothing if an EnvBinding is unresolved, because this EnvBinding can refer to any component.
        return
    bound_keys = {binding.component.key for binding in snapshot.bindings.resolved}
    for component in snapshot.components.by_name.values():
        if component.key not in bound_keys:
            yield _build_unused_finding(
                component.manifest,
                "no EnvBinding refers to this component, so that the component runs in no environment",
            )


def _lint_builds(snapshot: ComponentSnapshot) -> Iterator[Finding]:
    environments: dict[tuple[str, str], set[str]] = {}
    for binding in snapshot.bindings.resolved:
        environments.setdefault((binding.component.key.namespace, binding.component.key.name), set()).add(
            binding.binding.environment
        )
    for (namespace, name), build in snapshot.builds.items():
        if reason := _explain_unused_build(namespace, name, snapshot.components, environments):
            yield ComponentCodes.BUILD_UNUSED.finding(
                f"{build.manifest.key} is not used, because {reason}", build.manifest.location_of(("metadata", "name"))
            )


def _explain_unused_build(
    namespace: str, name: str, components: Components, environments: Mapping[tuple[str, str], set[str]]
) -> str:
    """Return the reason why no component uses a Build. Return "" if a component uses the Build.

    The name of a Build is `<component>` or `<component>.<environment>`.
    """
    names = components.names_by_namespace.get(namespace, ())
    if name in names:
        return ""
    component, _, environment = name.rpartition(".")
    if component not in names:
        existing = quote_list(sorted(names)) or "none"
        component_name = component or name
        guess = suggest_name(component_name, sorted(names))
        named = f"in namespace {quote_value(namespace)} has the name {quote_value(component_name)}"
        return f"no component {named}; existing names: {existing}{guess}"
    used_environments = environments.get((namespace, component), set())
    if not used_environments or environment in used_environments:
        return ""
    guess = suggest_name(environment, sorted(used_environments))
    noun = "environment" if len(used_environments) == 1 else "environments"
    used = f"runs only in the {noun} {quote_list(sorted(used_environments))}"
    return (
        f"its name refers to the environment {quote_value(environment)}, but the component {quote_value(component)}"
        f" {used}{guess}"
    )


def _build_unused_finding(manifest: ConfigObject, reason: str) -> Finding:
    return ControllerCodes.UNUSED.finding(f"{manifest.key} is not used, because {reason}", manifest.location)
