"""Compilation of component types, and of components without a type, to a ComponentPlan.

The compilation consists of several steps, and ends after the first step that finds errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from reconciler.api.openchoreo import AllowedAddon
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.addon_order import (
    AddonOrderConstraints,
    find_unsatisfiable_order,
    order_instances,
)
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.definition_index import DefinitionIndex
from reconciler.controllers.components.definitions import Addon, ComponentDefinition, compile_rules
from reconciler.controllers.components.effective_values import ValueLayer, check_static_values
from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.model import (
    ALLOWED_ADDONS,
    LISTED_ADDONS,
    PLATFORM_ADDONS,
    AddonDeclaration,
    AddonInstance,
    AddonRole,
    Component,
    ComponentType,
)
from reconciler.controllers.components.names import derive_addon_key, explain_invalid_addon_key, to_camel_case
from reconciler.controllers.components.patching.targets import can_match_target
from reconciler.controllers.components.schema.crd import DeveloperAddon, build_developer_schema, override_defaults
from reconciler.controllers.components.templates.directives import CompiledRule, compile_condition
from reconciler.controllers.components.templates.template import COMPONENT_VARIABLES, TemplateScope, build_scope
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding, downgrade_to_warning, select_errors
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field, replace

_PLATFORM_ROLE: AddonRole = "platform"
_DEVELOPER_ROLE: AddonRole = "developer"


@dataclass(frozen=True)
class CompilationResult:
    """Result of compiling a component type or a component without a type.

    Attributes:
        plan: Compiled plan. None if the compilation found errors.
        files: Contents of the generated files for the status branch, by file name.
        flatten_findings: Reasons why the requested flattened definition could not be generated.
    """

    plan: ComponentPlan | None
    findings: tuple[Finding, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    flatten_findings: tuple[Finding, ...] = ()


def compile_component_type(
    component_type: ComponentType, kind: str, index: DefinitionIndex, limits: ExpressionLimits
) -> CompilationResult:
    """Compile a component type. `kind` is the kind that the component type generates."""
    return _TypeCompiler(component_type, kind, index, limits).run()


@dataclass
class _TypeCompiler:
    """Compiles one component type, and collects findings."""

    component_type: ComponentType
    kind: str
    index: DefinitionIndex
    limits: ExpressionLimits
    findings: list[Finding] = field(default_factory=list)

    def run(self) -> CompilationResult:
        definition = self._resolve_definition()
        self._check_addons_exist()
        if definition is None or select_errors(self.findings):
            return CompilationResult(None, tuple(self.findings))
        for check in (self._check_permissions, self._check_instances):
            check()
            if select_errors(self.findings):
                return CompilationResult(None, tuple(self.findings))
        return self._build_plan(definition)

    def _build_plan(self, definition: ComponentDefinition) -> CompilationResult:
        scope = build_scope(
            COMPONENT_VARIABLES,
            definition.schema.full,
            definition.schema.parameters,
            definition.schema.env_overrides,
            self.limits,
        )
        platform_uses = [self._build_platform_use(addon, scope) for addon in self.component_type.platform_addons]
        allowed_uses = [self._build_allowed_use(path, addon) for path, addon in self.component_type.allowed_addons]
        plan = ComponentPlan(
            self.manifest, definition, tuple(platform_uses), {use.key: use for use in allowed_uses}, (), (), self.kind
        )
        plan = replace(plan, rules=self._compile_rules(scope))
        steps: tuple[Callable[[ComponentPlan], Iterator[Finding]], ...] = (
            self._check_values, self._check_compatibility, self._check_relations, self._check_order,
        )  # fmt: skip
        for step in steps:
            self.findings += step(plan)
            if select_errors(self.findings):
                return CompilationResult(None, tuple(self.findings))
        return self._finish(plan, allowed_uses)

    @property
    def manifest(self) -> ConfigObject:
        return self.component_type.manifest

    def _resolve_definition(self) -> ComponentDefinition | None:
        name, definitions = self.component_type.definition, self.index.definitions
        version = self.component_type.spec.component_definition_ref.version
        definition = definitions.by_name.get(name)
        path = ("spec", "componentDefinitionRef")
        if definition is None:
            self._add(
                ComponentCodes.DEFINITION_NOT_FOUND.finding(
                    definitions.explain_absence(name), self.manifest.location_of((*path, "name"))
                )
            )
        elif version and version != definition.version:
            expected, actual = quote_value(definition.version), quote_value(version)
            message = (
                f"spec.componentDefinitionRef.version must be {expected}, the version of {definition.manifest.key},"
                f" but is {actual}"
                if definition.version
                else f"spec.componentDefinitionRef.version is {actual}, but {definition.manifest.key} has no version;"
                " remove the field"
            )
            self._add(
                ComponentCodes.DEFINITION_VERSION_MISMATCH.finding(
                    message, self.manifest.location_of((*path, "version"))
                )
            )
        return definition

    def _check_addons_exist(self) -> None:
        for name, path in self._list_addon_names():
            if name not in self.index.addons.by_name:
                reason = self.index.addons.explain_absence(name)
                self._add(ComponentCodes.ADDON_NOT_FOUND.finding(reason, self.manifest.location_of((*path, "name"))))

    def _list_addon_names(self) -> Iterator[tuple[str, DataPath]]:
        yield from ((addon.instance.addon, addon.path) for addon in self.component_type.platform_addons)
        yield from ((addon.name, path) for path, addon in self.component_type.allowed_addons)

    def _check_permissions(self) -> None:
        platform = ((addon.instance.addon, addon.path, _PLATFORM_ROLE) for addon in self.component_type.platform_addons)
        allowed = ((addon.name, path, _DEVELOPER_ROLE) for path, addon in self.component_type.allowed_addons)
        for name, path, role in (*platform, *allowed):
            if finding := check_permission(self._get_addon(name), role, self.manifest, path):
                self._add(finding)

    def _check_instances(self) -> None:
        self.findings += check_instance_ids(self.manifest, self.component_type.platform_addons)
        for path, addon in self.component_type.allowed_addons:
            if derive_addon_key(addon.name) is None:
                message = explain_invalid_addon_key(addon.name)
                self._add(ComponentCodes.ADDON_KEY_INVALID.finding(message, self.manifest.location_of((*path, "name"))))

    def _build_platform_use(self, declaration: AddonDeclaration, scope: TemplateScope) -> AddonUse:
        addon, name = self._get_addon(declaration.instance.addon), declaration.instance.addon
        condition = (
            compile_condition(declaration.condition, (*declaration.path, "condition"), scope)
            if declaration.condition is not None
            else None
        )
        self.findings += (
            finding.to_finding(self.manifest) for finding in (condition.field_findings if condition else ())
        )
        return AddonUse(
            declaration.instance, addon, to_camel_case(name), addon.schema.full, self.manifest, declaration.path,
            declaration.config, condition, declaration.has_instance_id,
        )  # fmt: skip

    def _build_allowed_use(self, path: DataPath, declaration: AllowedAddon) -> AddonUse:
        addon = self._get_addon(declaration.name)
        schema = override_defaults(addon.schema.full, declaration.defaults)
        return AddonUse(
            AddonInstance(declaration.name, role="developer"),
            addon,
            to_camel_case(declaration.name),
            schema,
            self.manifest,
            path,
        )

    def _compile_rules(self, scope: TemplateScope) -> tuple[CompiledRule, ...]:
        compiled = compile_rules(self.component_type.spec.validation, scope)
        self.findings += (finding.to_finding(self.manifest) for rule in compiled for finding in rule.field_findings)
        return compiled

    def _check_values(self, plan: ComponentPlan) -> Iterator[Finding]:
        """Yield the errors in the addon values that the component type sets."""
        for use in plan.platform_uses:
            yield from tuple(check_static_values(use.config_layer, use.schema)) or use.values.findings
        for path, addon in self.component_type.allowed_addons:
            layer = ValueLayer("defaults", self.manifest, (*path, "defaults"), addon.defaults)
            yield from check_static_values(layer, self._get_addon(addon.name).schema.full)

    def _check_compatibility(self, plan: ComponentPlan) -> Iterator[Finding]:
        """Yield an error for each addon whose targets match no resource template."""
        yield from check_compatibility(
            (*plan.platform_uses, *plan.allowed_uses.values()), plan.definition, plan.platform_uses, self.manifest
        )

    def _check_relations(self, plan: ComponentPlan) -> Iterator[Finding]:
        """Yield an error for each addon constraint (`requires` or `conflictsWith`) that the component type violates."""
        platform_addons = {use.instance.addon for use in plan.platform_uses}
        allowed_addons = {use.instance.addon for use in plan.allowed_uses.values()}
        yield from find_missing_requirements(plan.platform_uses, platform_addons)
        yield from find_missing_requirements(tuple(plan.allowed_uses.values()), platform_addons | allowed_addons)
        developer_uses = tuple(plan.allowed_uses.values())
        yield from find_addon_conflicts(plan.platform_uses, (*plan.platform_uses, *developer_uses))
        # Report a conflict of two allowed addons as a warning, because a component can use only one of the two addons.
        yield from map(downgrade_to_warning, find_addon_conflicts(developer_uses, developer_uses))

    def _check_order(self, plan: ComponentPlan) -> Iterator[Finding]:
        """Yield an error for each cycle in the order of addons, and for each constraint that cannot be satisfied."""
        developers = [use.instance for use in plan.allowed_uses.values()]
        platform = [use.instance for use in plan.platform_uses]
        for instances, path in ((platform, PLATFORM_ADDONS), (developers, ALLOWED_ADDONS)):
            order = order_instances(instances, plan.order_constraints, path)
            if isinstance(order, FieldFinding):
                yield order.to_finding(self.manifest)
        early, late = (
            {instance.addon for instance in platform},
            {instance.addon for instance in developers} - {instance.addon for instance in platform},
        )
        yield from (
            finding.to_finding(self.manifest)
            for finding in find_unsatisfiable_order(early, late, plan.order_constraints, ("spec",))
        )

    def _finish(self, plan: ComponentPlan, uses: Sequence[AddonUse]) -> CompilationResult:
        """Complete the plan: build the schema for developers, and sort the platform addons."""
        declarations = {addon.name: addon for _, addon in self.component_type.allowed_addons}
        addons = [_build_developer_addon(use, declarations[use.instance.addon]) for use in uses]
        schema, field_findings = build_developer_schema(plan.definition.schema, addons)
        self.findings += (finding.to_finding(self.manifest) for finding in field_findings)
        if select_errors(self.findings):
            return CompilationResult(None, tuple(self.findings))
        return CompilationResult(
            replace(plan, platform_uses=sort_uses(plan.platform_uses, plan.order_constraints), schema=schema),
            tuple(self.findings),
        )

    def _get_addon(self, name: str) -> Addon:
        return self.index.addons.by_name[name]

    def _add(self, finding: Finding) -> None:
        self.findings.append(finding)


def _build_developer_addon(use: AddonUse, declaration: AllowedAddon) -> DeveloperAddon:
    description = declaration.description or use.addon.spec.description
    return DeveloperAddon(use.key, description, use.addon.schema, declaration.defaults, (*use.path, "name"))


def sort_uses(uses: Sequence[AddonUse], constraints: Mapping[str, AddonOrderConstraints]) -> tuple[AddonUse, ...]:
    """Return the uses of addons in execution order. The constraints must not contain a cycle."""
    order = order_instances([use.instance for use in uses], constraints, ())
    assert not isinstance(order, FieldFinding), "compilation already checked that there is no cycle"
    by_instance = {use.instance: use for use in uses}
    return tuple(by_instance[instance] for instance in order)


def check_permission(addon: Addon, role: AddonRole, manifest: ConfigObject, path: DataPath) -> Finding | None:
    """Return an error if the label `allowedFor` of an addon does not allow `role`. Otherwise, return None."""
    if role in addon.allowed_roles:
        return None
    group = {"platform": "platform engineers", "developer": "developers"}[role]
    message = f"the label allowedFor of {addon.manifest.key} does not allow {group} to use this addon"
    return ComponentCodes.ADDON_NOT_ALLOWED.finding(message, manifest.location_of((*path, "name")))


def check_instance_ids(manifest: ConfigObject, declarations: Sequence[AddonDeclaration]) -> Iterator[Finding]:
    """Yield the findings about instance ids. If an addon has several instances, each of them must set `instanceId`."""
    counts = Counter(declaration.instance.addon for declaration in declarations)
    checked_instances: set[AddonInstance] = set()
    for declaration in declarations:
        instance, has_id, path = declaration.instance, declaration.has_instance_id, declaration.path
        if counts[instance.addon] > 1 and not has_id:
            message = (
                f'the addon "{instance.addon}" has {counts[instance.addon]} instances, and each of'
                " them must set instanceId"
            )
            yield ComponentCodes.INSTANCE_ID_MISSING.finding(message, manifest.location_of(path))
        elif instance in checked_instances:
            yield ComponentCodes.INSTANCE_ID_DUPLICATE.finding(
                f'the addon instance "{instance}" is declared twice; each instance of an addon must have a'
                " different instanceId",
                manifest.location_of((*path, "instanceId")),
            )
        elif not has_id:
            message = (
                f'the addon "{instance.addon}" has no instanceId, so the ID of the instance is'
                f' "{instance.id}"; set '
                "instanceId, so that resource names stay the same when a second instance is added"
            )
            yield ComponentCodes.INSTANCE_ID_IMPLICIT.finding(message, manifest.location_of(path))
        checked_instances.add(instance)


def check_compatibility(
    uses: Sequence[AddonUse], definition: ComponentDefinition, creators: Sequence[AddonUse], manifest: ConfigObject
) -> Iterator[Finding]:
    """Yield an error for each addon whose `spec.targets` match no resource template.

    The function compares `spec.targets` with the resource templates of `definition` and of the addons in `creators`. An
    addon without `spec.targets` is always compatible.
    """
    templates = [(entry.data, entry.id) for entry in definition.resources]
    templates += ((entry.data, entry.id) for use in creators for entry in use.addon.creates)
    for use in uses:
        targets = use.addon.targets
        if targets and not any(can_match_target(target, data, name) for target in targets for data, name in templates):
            creations = " or in the platform addons" if creators else ""
            message = (
                f"{use.addon.manifest.key} is not compatible, because its spec.targets match no resource in"
                f" {definition.manifest.key}{creations}"
            )
            yield ComponentCodes.ADDON_INCOMPATIBLE.finding(message, manifest.location_of(use.path))


def find_missing_requirements(uses: Sequence[AddonUse], present: set[str]) -> Iterator[Finding]:
    """Yield an error if an addon in `uses` requires an addon whose name is not in `present`."""
    first: dict[str, AddonUse] = {}
    for use in uses:
        first.setdefault(use.instance.addon, use)
    for use in first.values():
        for reference in use.addon.spec.dependencies.requires:
            if reference.addon not in present:
                reason = f" (reason: {quote_value(reference.reason)})" if reference.reason else ""
                message = (
                    f'the addon "{use.instance.addon}" requires the addon "{reference.addon}"{reason},'
                    f' but "{reference.addon}" is not in use'
                )
                yield ComponentCodes.ADDON_REQUIREMENT_MISSING.finding(message, use.declared_by.location_of(use.path))


def find_addon_conflicts(uses: Sequence[AddonUse], others: Sequence[AddonUse]) -> Iterator[Finding]:
    """Yield an error for each addon in `uses` that must not be used together with an addon in `others`."""
    reported: set[frozenset[str]] = set()
    for first_uses, second_uses in ((uses, others), (others, uses)):
        present = {use.instance.addon for use in second_uses}
        for use in first_uses:
            for reference in use.addon.spec.dependencies.conflicts_with:
                names = frozenset((use.instance.addon, reference.addon))
                if reference.addon in present and len(names) == 2 and names not in reported:
                    reported.add(names)
                    reason = f" (reason: {quote_value(reference.reason)})" if reference.reason else ""
                    message = (
                        f'the addon "{use.instance.addon}" excludes the addon "{reference.addon}"{reason},'
                        " but both addons are in use; remove one of the two addons"
                    )
                    yield ComponentCodes.ADDON_CONFLICT.finding(message, use.declared_by.location_of(use.path))


def compile_untyped_component(component: Component, index: DefinitionIndex) -> CompilationResult:
    """Compile a component without a type. Its spec names the component definition and the addons."""
    findings = list(_check_references(component, index))
    declarations = component.addons or ()
    if not select_errors(findings):
        findings += check_instance_ids(component.manifest, declarations)
    if select_errors(findings):
        return CompilationResult(None, tuple(findings))
    uses = tuple(_build_use(declaration, component, index) for declaration in declarations)
    definition = index.definitions.by_name[component.definition]
    findings += check_compatibility(uses, definition, (), component.manifest)
    findings += find_missing_requirements(uses, {use.instance.addon for use in uses})
    if select_errors(findings):
        return CompilationResult(None, tuple(findings))
    plan = ComponentPlan(component.manifest, definition, listed_uses=uses)
    order = order_instances([use.instance for use in uses], plan.order_constraints, LISTED_ADDONS)
    if isinstance(order, FieldFinding):
        return CompilationResult(None, (*findings, order.to_finding(component.manifest)))
    return CompilationResult(plan, tuple(findings))


def _check_references(component: Component, index: DefinitionIndex) -> Iterator[Finding]:
    manifest = component.manifest
    if component.definition not in index.definitions.by_name:
        reason = index.definitions.explain_absence(component.definition)
        yield ComponentCodes.DEFINITION_NOT_FOUND.finding(reason, manifest.location_of(("spec", "componentDefinition")))
    for declaration in component.addons or ():
        name, location = declaration.instance.addon, manifest.location_of((*declaration.path, "name"))
        addon = index.addons.by_name.get(name)
        if addon is None:
            yield ComponentCodes.ADDON_NOT_FOUND.finding(index.addons.explain_absence(name), location)
        elif finding := check_permission(addon, "developer", manifest, declaration.path):
            yield finding
        elif derive_addon_key(name) is None:
            yield ComponentCodes.ADDON_KEY_INVALID.finding(explain_invalid_addon_key(name), location)


def _build_use(declaration: AddonDeclaration, component: Component, index: DefinitionIndex) -> AddonUse:
    addon, instance = index.addons.by_name[declaration.instance.addon], declaration.instance
    return AddonUse(
        instance, addon, to_camel_case(addon.name), addon.schema.full, component.manifest, declaration.path,
        declaration.config, has_instance_id=declaration.has_instance_id,
    )  # fmt: skip
