"""Statuses of component types, components, EnvBindings, environments, component definitions and addons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.components.bindings import Environments
from reconciler.controllers.components.compilation import CompilationResult
from reconciler.controllers.components.component_renderer import RenderedComponent
from reconciler.controllers.components.component_types import (
    TYPES_FOLDER,
    ComponentTypeResult,
    build_type_status_fields,
)
from reconciler.controllers.components.definition_index import DefinitionIndex, group_by_name
from reconciler.controllers.components.model import Component
from reconciler.controllers.components.names import ADDON, DEFINITION, ENVIRONMENT, GROUP, RECONCILER_GROUP
from reconciler.controllers.components.package_builder import ComponentPackages
from reconciler.controllers.results import ConfigStatus
from reconciler.krm.findings import Finding, join_messages, select_errors
from reconciler.krm.objects import Condition

_MAX_LISTED_CLUSTERS = 20


def build_type_status(
    result: ComponentTypeResult, components: Sequence[tuple[Component, RenderedComponent | None]]
) -> ConfigStatus:
    """Return the status of a component type, with its generated files.

    If the component type is not ready, the status contains no files. Its earlier files stay on the status branch.
    """
    manifest, plan = result.manifest, result.compilation.plan
    if plan is None:
        return ConfigStatus(
            manifest.key,
            manifest.api_version,
            (_build_error_condition(result.compilation.findings),),
            folder=TYPES_FOLDER,
        )
    conditions = (
        Condition("Ready", "True", "Compiled", ""),
        _build_instances_condition(components),
        *_build_flatten_condition(result),
    )
    return ConfigStatus(
        manifest.key,
        manifest.api_version,
        conditions,
        build_type_status_fields(plan),
        folder=TYPES_FOLDER,
        files=result.compilation.files,
    )


def _build_flatten_condition(result: ComponentTypeResult) -> Iterator[Condition]:
    """Yield the condition of the flattened definition if the component type requests such a definition."""
    if result.model is None or not result.model.flattened_name:
        return
    if result.compilation.flatten_findings:
        message = "; ".join(finding.message for finding in result.compilation.flatten_findings)
        yield Condition("Flattened", "False", result.compilation.flatten_findings[0].code, message)
    else:
        yield Condition(
            "Flattened",
            "True",
            "Flattened",
            f"the definition {result.model.flattened_name} renders the same resources without platform addons",
        )


def _build_error_condition(findings: Sequence[Finding]) -> Condition:
    found_errors = select_errors(tuple(findings))
    return Condition("Ready", "False", found_errors[0].code, "; ".join(error.message for error in found_errors))


def _build_instances_condition(components: Sequence[tuple[Component, RenderedComponent | None]]) -> Condition:
    """Return the condition `InstancesValid` of a component type. It is true if all components of the type are valid."""
    invalid = [(component, rendered.errors[0]) for component, rendered in components if rendered and rendered.errors]
    if not invalid:
        return Condition("InstancesValid", "True", "Valid", f"all of {len(components)} components are valid")
    listed = join_messages(_format_component_error(component, finding) for component, finding in invalid)
    verb = "is" if len(invalid) == 1 else "are"
    message = f"{len(invalid)} of {len(components)} components {verb} not valid: {listed}"
    return Condition("InstancesValid", "False", invalid[0][1].code, message)


def _format_component_error(component: Component, finding: Finding) -> str:
    return f"{component.key}: {finding.message.removeprefix(f'{component.key}: ')}"


def build_component_status(
    component: Component, compilation: CompilationResult, validation: RenderedComponent | None
) -> ConfigStatus:
    """Return the status of a component.

    It shows only errors that do not depend on an environment. The statuses of EnvBindings show all other errors.
    """
    ready = Condition("Ready", "True", "Valid", "the values match the schema")
    if validation is None:
        compile_errors = select_errors(compilation.findings)
        reason = "ComponentTypeNotReady" if component.has_type else compile_errors[0].code
        ready = Condition("Ready", "False", reason, "; ".join(error.message for error in compile_errors))
    elif validation.errors:
        ready = _build_error_condition(validation.findings)
    return ConfigStatus(component.key, component.manifest.api_version, (ready,))


def build_rejected_status(manifest: ConfigObject, error: Finding) -> ConfigStatus:
    """Return the status of an object that cannot be processed because of `error`."""
    return ConfigStatus(manifest.key, manifest.api_version, (Condition("Ready", "False", error.code, error.message),))


def build_binding_status(packages: ComponentPackages) -> ConfigStatus:
    """Return the status of an EnvBinding.

    It contains no conditions yet, because they depend on the results of the packages.
    """
    binding = packages.resolved_binding.binding.manifest
    fields = {
        "component": {
            "kind": packages.resolved_binding.component.key.kind,
            "name": packages.resolved_binding.component.key.name,
        },
        "environment": packages.resolved_binding.binding.environment,
        "clusters": list(packages.resolved_binding.clusters),
        "addons": [str(instance) for instance in packages.rendered.active_instances],
    }
    return ConfigStatus(binding.key, binding.api_version, (), fields)


def build_definition_statuses(index: DefinitionIndex, catalog: Catalog) -> Iterator[ConfigStatus]:
    """Yield the status of each component definition and addon."""
    for kind, definitions in ((DEFINITION, index.definitions), (ADDON, index.addons)):
        objects = (manifest for copies in group_by_name(catalog, GROUP, kind).values() for manifest in copies)
        for manifest in {manifest.key: manifest for manifest in objects}.values():
            ready = Condition("Ready", "True", "Valid", "")
            if manifest.key.name in definitions.unusable_reasons:
                ready = _build_unusable_condition(
                    manifest, index.findings, definitions.explain_absence(manifest.key.name)
                )
            yield ConfigStatus(manifest.key, manifest.api_version, (ready,))


def _build_unusable_condition(manifest: ConfigObject, findings: Sequence[Finding], reason: str) -> Condition:
    """Return the condition of an unusable object. The message contains the errors, or `reason` if there is no error."""
    own_findings = [finding for finding in findings if finding.location.object == manifest.key.reference]
    return (
        _build_error_condition(own_findings)
        if select_errors(own_findings)
        else Condition("Ready", "False", "Invalid", reason)
    )


def build_environment_statuses(environments: Environments, catalog: Catalog) -> Iterator[ConfigStatus]:
    """Yield the status of each environment, with the clusters of the environment."""
    for manifest in catalog.objects_of_kind(RECONCILER_GROUP, ENVIRONMENT):
        name = manifest.key.name
        if name not in environments.index.by_name:
            condition = _build_unusable_condition(
                manifest, environments.findings, environments.index.explain_absence(name)
            )
            yield ConfigStatus(manifest.key, manifest.api_version, (condition,))
            continue
        clusters = environments.clusters_by_name[name]
        served = Condition("Ready", "True", "Served", f"{len(clusters)} cluster(s) serve this environment")
        ready = served if clusters else Condition("Ready", "False", "NoClusters", "no cluster serves this environment")
        fields = {"clusters": list(clusters[:_MAX_LISTED_CLUSTERS]), "clusterCount": len(clusters)}
        yield ConfigStatus(manifest.key, manifest.api_version, (ready,), fields)
