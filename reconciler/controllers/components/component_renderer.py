"""Rendering of one component for one environment: values, addons, resources and findings.

`resource_renderer` contains the rendering and patching of the single resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.api.field_types import EXTENSION_PREFIX
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionBudget, ExpressionLimits
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.addon_order import is_order_declared
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.compilation import find_addon_conflicts, find_missing_requirements, sort_uses
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.effective_values import (
    EffectiveValues,
    ValueLayer,
    check_overrides,
    compute_effective_values,
)
from reconciler.controllers.components.model import AddonInstance, Build, Component, EnvBinding, Environment, Values
from reconciler.controllers.components.overrides import ENVIRONMENT_LAYER, resolve_addon_overrides
from reconciler.controllers.components.patching.pod_templates import check_duplicate_list_keys
from reconciler.controllers.components.resource_renderer import (
    ComponentRenderError,
    RenderedResource,
    ResourceRenderer,
    VariableBindings,
    describe_creators,
    sort_resources,
)
from reconciler.controllers.components.schema.openapi import is_declared
from reconciler.controllers.components.templates.directives import CompiledRule
from reconciler.krm.field_text import describe_value, format_path, quote_list, quote_value
from reconciler.krm.findings import Finding, select_errors
from reconciler.lazy_dataclasses import dataclass, field, replace

InjectedValues = Mapping[str, Values]
"""Values of the template variables `env`, `build` and `workload`. The reconciler does not validate these values."""
NO_INJECTED_VALUES: InjectedValues = {"env": {}, "build": {}, "workload": {}}


def build_injected_values(binding: EnvBinding, environment: Environment, build: Build | None) -> InjectedValues:
    """Return the values of the template variables `env`, `build` and `workload` for a component."""
    endpoints = {"endpoints": list(binding.spec.endpoints)} if binding.spec.endpoints else {}
    env = {**environment.spec.context, "name": binding.environment, **endpoints}
    return {"env": env, "build": build.context if build else {}, "workload": build.workload if build else {}}


def build_metadata_variable(component: Component) -> dict[str, Any]:
    """Return the template variable `metadata`: name, namespace, labels and annotations of the component."""
    manifest = component.manifest
    return {
        "name": manifest.key.name, "namespace": manifest.key.namespace,
        "labels": dict(manifest.labels), "annotations": dict(manifest.annotations),
    }  # fmt: skip


def find_build(builds: Mapping[tuple[str, str], Build], component: Component, environment: str) -> Build | None:
    """Return the Build for a component in an environment.

    Return the Build with the name `<component>.<environment>`. If it does not exist, return the Build with the name
    `<component>`. If neither Build exists, return None.
    """
    namespace, name = component.key.namespace, component.key.name
    return builds.get((namespace, f"{name}.{environment}")) or builds.get((namespace, name))


MAX_NAME_LENGTH = 253
_NAME_PATTERN = re.compile(r"[^/%\s\x00-\x1f]+")
_API_VERSION_PATTERN = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_KIND_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)

_ENVIRONMENT_INDEPENDENT_VARIABLES = frozenset(
    {"metadata", "spec", "parameters", "envOverrides", "instanceId", "addon"}
)
"""Names of the template variables that do not depend on the environment of a component."""


@dataclass(frozen=True, eq=False)
class RenderedComponent:
    """Result of rendering a component: its resources, findings, active addon instances, and effective values.

    `values` maps each addon instance to its effective values. The key None contains the values of the component itself.
    If `errors` is not empty, do not publish the resources.
    """

    resources: tuple[RenderedResource, ...] = ()
    findings: tuple[Finding, ...] = ()
    active_instances: tuple[AddonInstance, ...] = ()
    values: Mapping[AddonInstance | None, EffectiveValues] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that are errors. An error prevents the publication of the component."""
        return select_errors(self.findings)


def render_component(
    plan: ComponentPlan,
    component: Component,
    binding: EnvBinding | None,
    injected_values: InjectedValues,
    limits: ExpressionLimits,
) -> RenderedComponent:
    """Render a component for the environment of `binding`.

    If `binding` is None, only compute the values of the component and validate them.
    """
    component_render = _ComponentRender(plan, component, binding, injected_values, limits)
    component_render.compute_values()
    if select_errors(component_render.findings):
        return component_render.build_result(())
    if binding is None:
        component_render.check_without_environment()
        return component_render.build_result(())
    try:
        resources = component_render.render()
    except ComponentRenderError as error:
        component_render.add_findings([error.field_finding.to_finding(error.manifest)], error.instance)
        return component_render.build_result(())
    component_render.add_findings(_check_resources(resources, component))
    # Sort the resources only if there is no error, because the sort key requires a valid identity of each resource.
    return component_render.build_result(
        () if select_errors(component_render.findings) else tuple(sort_resources(resources))
    )


@dataclass
class _ComponentRender:
    """Renders one component, and collects the results."""

    plan: ComponentPlan
    component: Component
    binding: EnvBinding | None
    injected_values: InjectedValues
    limits: ExpressionLimits
    findings: list[Finding] = field(default_factory=list)
    values: dict[AddonInstance | None, EffectiveValues] = field(default_factory=dict)
    active_instances: list[AddonInstance] = field(default_factory=list)
    uses: list[AddonUse] = field(default_factory=list)
    overrides: Mapping[AddonInstance, ValueLayer] = field(default_factory=dict)

    def add_findings(self, findings: Iterable[Finding], instance: AddonInstance | None = None) -> None:
        """Add findings. Put the names of the component and the addon instance at the start of each message."""
        prefix = str(self.component.key) + (f" in {self.binding.environment}" if self.binding else "")
        prefix = f"{prefix}, addon {instance}" if instance else prefix
        self.findings += (replace(finding, message=f"{prefix}: {finding.message}") for finding in findings)

    def build_result(self, resources: tuple[RenderedResource, ...]) -> RenderedComponent:
        return RenderedComponent(resources, tuple(self.findings), tuple(self.active_instances), self.values)

    def compute_values(self) -> None:
        """Compute the effective values of the component and of its addons."""
        manifest, path = self.component.manifest, ("spec",) if self.component.has_type else ("spec", "parameters")
        own_values = {key: value for key, value in self.component.values.items() if not self._is_not_own_value(key)}
        layers = [ValueLayer("component", manifest, path, own_values)]
        definition = self.plan.definition.schema
        if self.binding and self.binding.spec.overrides:
            layer = ValueLayer(
                ENVIRONMENT_LAYER, self.binding.manifest, ("spec", "overrides"), self.binding.spec.overrides
            )
            self.findings += check_overrides(layer, definition)
            layers.append(layer)
        self._set_values(None, compute_effective_values(layers, self.plan.schema or definition.full, definition))
        self.uses += (*self.plan.platform_uses, *self._list_developer_uses(), *self.plan.listed_uses)
        if self.binding:
            overrides = resolve_addon_overrides(self.binding, self.plan, {use.instance for use in self.uses})
            self.findings += overrides.findings
            self.overrides = overrides.layers
        for use in self.uses:
            self._set_values(use.instance, self._compute_addon_values(use, self.overrides.get(use.instance)))

    def _is_not_own_value(self, key: str) -> bool:
        """Return whether a field contains the values of a developer addon, or is an undeclared `x-` extension."""
        is_extension = key.startswith(EXTENSION_PREFIX) and not is_declared(self.plan.definition.schema.full, (key,))
        return key in self.plan.allowed_uses or (self.component.has_type and is_extension)

    def _list_developer_uses(self) -> Iterator[AddonUse]:
        """Yield the developer addons that the component selects. Report values that are not mappings."""
        for key, use in self.plan.allowed_uses.items():
            value = self.component.values.get(key)
            if isinstance(value, Mapping):
                yield use
            elif value is not None:
                message = (
                    f"spec.{key} must be a mapping of addon values ({{}} selects the defaults),"
                    f" but is {describe_value(value)}"
                )
                self.findings.append(
                    ComponentCodes.SCHEMA_VALIDATION.finding(
                        message, self.component.manifest.location_of(("spec", key))
                    )
                )

    def _compute_addon_values(self, use: AddonUse, override: ValueLayer | None) -> EffectiveValues:
        if use.role == "platform" or use in self.plan.listed_uses:
            if override is None:
                return use.values
            layers = [use.config_layer]
        else:
            layers = [
                ValueLayer("component", self.component.manifest, ("spec", use.key), self.component.values[use.key])
            ]
        if override:
            self.findings += check_overrides(override, use.addon.schema)
            layers.append(override)
        return compute_effective_values(layers, use.schema, use.addon.schema)

    def _set_values(self, instance: AddonInstance | None, values: EffectiveValues) -> None:
        # Skip errors that `check_overrides` already reported, because the merged values contain the invalid override
        # as well.
        reported = {(finding.code, finding.location) for finding in self.findings}
        self.findings += (finding for finding in values.findings if (finding.code, finding.location) not in reported)
        self.values[instance] = values

    def check_without_environment(self) -> None:
        """Check the validation rules that use no variables of the environment or Build."""
        renderer = self._build_renderer()
        type_rules = [rule for rule in self.plan.rules if rule.variables <= _ENVIRONMENT_INDEPENDENT_VARIABLES]
        self._check_rules(type_rules, self.plan.manifest, renderer.bindings, renderer)
        for use in self.uses:
            rules = [rule for rule in use.addon.rules if rule.variables <= _ENVIRONMENT_INDEPENDENT_VARIABLES]
            bindings = renderer.build_bindings(use, self.values[use.instance])
            self._check_rules(rules, use.addon.manifest, bindings, renderer, use.instance)

    def _build_renderer(self) -> ResourceRenderer:
        bindings = {
            "metadata": build_metadata_variable(self.component),
            **self.injected_values,
            **self.values[None].bindings,
        }
        constraints = self.plan.order_constraints
        return ResourceRenderer(
            bindings, ExpressionBudget(self.limits), lambda first, second: is_order_declared(first, second, constraints)
        )

    def render(self) -> list[RenderedResource]:
        """Render all resources of the component.

        Raises:
            ComponentRenderError: A template or patch failed.
        """
        renderer = self._build_renderer()
        self._check_rules(self.plan.rules, self.plan.manifest, renderer.bindings, renderer)
        renderer.render_definition(self.plan)
        platform_uses = [use for use in self.plan.platform_uses if self._apply_if_active(use, renderer)]
        active = [
            use for use in self.uses if use.role == "developer" and self._check_activation(use, renderer) is not None
        ]
        developer_uses = sort_uses(active, self.plan.order_constraints)
        self._check_overrides(active)
        self._check_relations(platform_uses, developer_uses)
        for use in developer_uses if not select_errors(self.findings) else ():
            renderer.apply_addon(use, renderer.build_bindings(use, self.values[use.instance]))
        self.active_instances += (use.instance for use in (*platform_uses, *developer_uses))
        self.findings += (
            replace(finding, message=f"{self.component.key}: {finding.message}") for finding in renderer.findings
        )
        return renderer.resources

    def _apply_if_active(self, use: AddonUse, renderer: ResourceRenderer) -> bool:
        """Apply an addon if its conditions are true. Return whether the addon was applied."""
        bindings = self._check_activation(use, renderer)
        if bindings is not None:
            renderer.apply_addon(use, bindings)
        return bindings is not None

    def _check_activation(self, use: AddonUse, renderer: ResourceRenderer) -> VariableBindings | None:
        """Check the rules of an addon. Return the template variables of the addon, or None if the addon is inactive."""
        bindings = renderer.build_bindings(use, self.values[use.instance])
        self._check_rules(use.addon.rules, use.addon.manifest, bindings, renderer, use.instance)
        return bindings if renderer.is_active(use, bindings) else None

    def _check_rules(
        self,
        rules: Sequence[CompiledRule],
        manifest: ConfigObject,
        bindings: VariableBindings,
        renderer: ResourceRenderer,
        instance: AddonInstance | None = None,
    ) -> None:
        failures = (rule.check(bindings, renderer.budget) for rule in rules)
        self.add_findings((failure.to_finding(manifest) for failure in failures if failure), instance)

    def _check_overrides(self, active: Sequence[AddonUse]) -> None:
        """Report the overrides of each inactive developer addon, because these overrides have no effect."""
        active_instances = {use.instance for use in active}
        for use in self.uses:
            layer = self.overrides.get(use.instance)
            if layer and use.role == "developer" and use.instance not in active_instances:
                message = (
                    f"{format_path(layer.path)} has no effect, because the condition of the addon {use.instance} is"
                    " false"
                )
                self.add_findings(
                    [ControllerCodes.OVERRIDE_UNUSED.finding(message, layer.manifest.location_of(layer.path))]
                )

    def _check_relations(self, platform_uses: Sequence[AddonUse], developer_uses: Sequence[AddonUse]) -> None:
        """Report each active addon that requires an inactive addon, or that conflicts with another active addon."""
        platform_addons = {use.instance.addon for use in platform_uses}
        self.add_findings(find_missing_requirements(platform_uses, platform_addons))
        self.add_findings(
            find_missing_requirements(developer_uses, platform_addons | {use.instance.addon for use in developer_uses})
        )
        active = (*platform_uses, *developer_uses)
        self.add_findings(find_addon_conflicts(active, active))


def _check_resources(resources: Sequence[RenderedResource], component: Component) -> Iterator[Finding]:
    """Yield the errors in the resources. All addons must already be applied."""
    valid = []
    for resource in resources:
        creation = resource.changes[0]
        if error := _find_identity_error(resource.data):
            location = creation.manifest.location_of(creation.path)
            message = (
                f"{format_path(creation.path)} renders an invalid Kubernetes resource: "
                f"{error}{_describe_changes(resource)}"
            )
            yield ComponentCodes.RENDERED_OBJECT_INVALID.finding(message, location)
            continue
        valid.append(resource)
        namespace = resource.data["metadata"].get("namespace")
        if namespace not in (None, component.key.namespace):
            message = (
                f"{format_path(creation.path)} renders {resource.key} with the namespace {quote_value(namespace)}, but"
                f" must use the namespace of the component, {quote_value(component.key.namespace)}"
                f"{_describe_changes(resource)}"
            )
            yield ComponentCodes.NAMESPACE_NOT_ALLOWED.finding(
                message, creation.manifest.location_of((*creation.path, "metadata", "namespace"))
            )
        for note in check_duplicate_list_keys(resource.data, resource.write_tracker):
            yield note.code.finding(f"in {resource.key}, {note.message}", creation.manifest.location_of(creation.path))
    yield from _find_duplicates(valid)


def _describe_changes(resource: RenderedResource) -> str:
    """Return a text that lists the addons that patched the resource. Return "" if no addon patched the resource."""
    patched = list(dict.fromkeys(str(change.instance) for change in resource.changes if change.write))
    return f"; addons that patched the resource: {quote_list(patched)}" if patched else ""


def _find_duplicates(resources: Sequence[RenderedResource]) -> Iterator[Finding]:
    """Yield an error for each resource whose group, kind and name are the same as those of an earlier resource."""
    first_resources: dict[tuple[str, str, str], RenderedResource] = {}
    for resource in resources:
        creation, other = (
            resource.changes[0],
            first_resources.setdefault((resource.key.group, resource.key.kind.lower(), resource.key.name), resource),
        )
        if other is not resource:
            message = (
                f"{format_path(creation.path)} must not render {resource.key} again; the object is rendered by"
                f" {describe_creators(other, resource)}"
            )
            yield ComponentCodes.OBJECT_DUPLICATE.finding(message, creation.manifest.location_of(creation.path))


def _find_identity_error(data: Any) -> str:
    """Return the reason why `data` is not a Kubernetes resource. Return "" if `data` is valid."""
    if not isinstance(data, dict):
        return f"the result must be a mapping, but is {describe_value(data)}"
    for field_name in ("apiVersion", "kind"):
        if not isinstance(data.get(field_name), str) or not data[field_name]:
            return f"{field_name} must be a string that is not empty, but is {quote_value(data.get(field_name))}"
    if not _API_VERSION_PATTERN.fullmatch(data["apiVersion"]):
        return (
            "apiVersion must be a valid Kubernetes API version such as apps/v1, but is"
            f" {quote_value(data['apiVersion'])}"
        )
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name or len(name) > MAX_NAME_LENGTH:
        return f"metadata.name must be a string of 1 to {MAX_NAME_LENGTH} characters, but is {quote_value(name)}"
    if name in (".", "..") or not _NAME_PATTERN.fullmatch(name):
        return f"metadata.name must be a valid Kubernetes name without / and %, but is {quote_value(name)}"
    if not _KIND_PATTERN.fullmatch(data["kind"]):
        return f"kind must consist of letters and digits, but is {quote_value(data['kind'])}"
    return ""
