"""Component definitions and addons: their models with compiled templates, and the functions that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar

from reconciler.api import openchoreo
from reconciler.api.base import read_field
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.addon_order import AddonOrderConstraints
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import MAX_FINDINGS_PER_OBJECT, FieldFinding
from reconciler.controllers.components.model import AddonRole, read_object
from reconciler.controllers.components.patching.operations import OperationTemplate, build_operation_template
from reconciler.controllers.components.patching.targets import PatchTarget, build_target_template
from reconciler.controllers.components.schema.sections import ComponentSchema, build_component_schema
from reconciler.controllers.components.templates.directives import (
    CompiledRule,
    TemplateCondition,
    TemplateLoop,
    compile_condition,
    compile_loop,
    compile_rule,
)
from reconciler.controllers.components.templates.template import (
    ADDON_VARIABLES,
    COMPONENT_VARIABLES,
    PATCH_VARIABLES,
    CompiledTemplate,
    TemplateScope,
    build_scope,
    compile_template,
)
from reconciler.krm.findings import Finding, Severity, select_errors
from reconciler.krm.json_text import compute_digest
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

ROLES_BY_LABEL: Final[Mapping[str, frozenset[AddonRole]]] = {
    "platform-engineer": frozenset({"platform"}),
    "developer": frozenset({"developer"}),
    "both": frozenset({"platform", "developer"}),
}
"""Roles that can use an addon, by the value of the label `allowedFor` of the addon."""
_ENABLED = "enabled"


@dataclass(frozen=True, eq=False)
class ObjectTemplate:
    """Compiled entry of `resources` in a component definition, or of `creates` in an addon.

    All resources that the entry renders get the id in `id`. `id` is "" if the entry sets no id.
    """

    id: str
    include_when: TemplateCondition
    loop: TemplateLoop
    template: CompiledTemplate
    data: Mapping[str, Any]
    path: DataPath

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the templates of the entry use."""
        return self.include_when.variables | self.loop.variables | self.template.variables


@dataclass(frozen=True, eq=False)
class CompiledOperation:
    """Patch operation with compiled templates for its path and its value."""

    operation: OperationTemplate
    path: CompiledTemplate | None
    value: CompiledTemplate | None

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the path and the value of the operation use."""
        return frozenset().union(*(template.variables for template in (self.path, self.value) if template))


@dataclass(frozen=True, eq=False)
class AddonPatch:
    """Compiled entry of `patches` in an addon. `should_skip_missing` is true for `onMissing: skip`."""

    condition: TemplateCondition
    loop: TemplateLoop
    target: CompiledTemplate
    operations: tuple[CompiledOperation, ...]
    should_skip_missing: bool
    path: DataPath

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the templates of the patch use."""
        variables = (operation.variables for operation in self.operations)
        return frozenset().union(self.condition.variables, self.loop.variables, self.target.variables, *variables)


@dataclass(frozen=True, eq=False)
class ComponentDefinition:
    """Component definition without errors, with compiled templates."""

    manifest: ConfigObject
    schema: ComponentSchema
    resources: tuple[ObjectTemplate, ...]

    @property
    def version(self) -> str:
        """Value of the label `version`."""
        return _get_version(self.manifest)


@dataclass(frozen=True, eq=False)
class Addon:
    """Addon without errors, with compiled templates."""

    manifest: ConfigObject
    spec: openchoreo.AddonSpec
    schema: ComponentSchema
    condition: TemplateCondition
    targets: tuple[PatchTarget, ...]
    creates: tuple[ObjectTemplate, ...]
    patches: tuple[AddonPatch, ...]
    rules: tuple[CompiledRule, ...]

    @property
    def name(self) -> str:
        """Name of the addon. Addon names are unique across namespaces."""
        return self.manifest.key.name

    @property
    def version(self) -> str:
        """Value of the label `version`."""
        return _get_version(self.manifest)

    @property
    def allowed_roles(self) -> frozenset[AddonRole]:
        """Roles that can use the addon."""
        return ROLES_BY_LABEL[self.manifest.labels.get("allowedFor", openchoreo.ADDON_USERS[0])]

    @cached_property
    def order_constraints(self) -> AddonOrderConstraints:
        """Names of the addons that must run before or after the addon."""
        relations = self.spec.dependencies
        required = tuple(relation.addon for relation in relations.requires)
        return AddonOrderConstraints(required, relations.load_order.after, relations.load_order.before)

    @property
    def digest(self) -> str:
        """Digest of the spec and the version of the addon."""
        return compute_digest({"spec": self.manifest.data["spec"], "version": self.version})

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the templates of the addon use."""
        parts: tuple[ObjectTemplate | AddonPatch | CompiledRule, ...] = (*self.creates, *self.patches, *self.rules)
        return self.condition.variables.union(*(part.variables for part in parts))


def _get_version(manifest: ConfigObject) -> str:
    """Return the label `version` as text, even if YAML parsed the value as a number."""
    labels: Any = manifest.data["metadata"].get("labels")
    value = labels.get("version") if isinstance(labels, Mapping) else None
    return "" if value is None or isinstance(value, Mapping | list) else str(value)


def read_component_definition(
    manifest: ConfigObject, limits: ExpressionLimits
) -> tuple[ComponentDefinition | None, tuple[Finding, ...]]:
    """Read and compile a component definition. Return None and the findings if the definition has errors."""
    model, errors = read_object(openchoreo.ComponentDefinition, manifest, ComponentCodes.COMPONENT_DEFINITION_INVALID)
    compiler = _Compiler(manifest, openchoreo.ComponentDefinitionSpec, model.spec if model else None, limits)
    schema = compiler.compile_schema()
    if schema is None:
        return None, errors
    scope = compiler.build_scope(COMPONENT_VARIABLES, schema)
    resources = tuple(
        compiler.compile_object(entry, path, scope) for path, entry in compiler.iterate_entries("resources")
    )
    definition = ComponentDefinition(manifest, schema, resources) if model else None
    return compiler.finish(definition, errors)


def read_addon(manifest: ConfigObject, limits: ExpressionLimits) -> tuple[Addon | None, tuple[Finding, ...]]:
    """Read and compile an addon. Return None and the findings if the addon has errors."""
    model, errors = read_object(openchoreo.Addon, manifest, ComponentCodes.ADDON_INVALID)
    spec = model.spec if model else None
    compiler = _Compiler(manifest, openchoreo.AddonSpec, spec, limits)
    schema = compiler.compile_schema()
    if schema is None:
        return None, errors
    scope = compiler.build_scope(ADDON_VARIABLES, schema)
    condition = compiler.add(compile_condition(_get_condition(manifest, schema), ("spec", "condition"), scope))
    creates = tuple(compiler.compile_object(entry, path, scope) for path, entry in compiler.iterate_entries("creates"))
    operation_scope = compiler.build_scope(PATCH_VARIABLES, schema)
    patches = tuple(
        compiler.compile_patch(entry, path, scope, operation_scope)
        for path, entry in compiler.iterate_entries("patches")
    )
    validation = compiler.read_value("validation")
    rules = tuple(map(compiler.add, compile_rules(validation, scope))) if validation else ()
    if spec is None:
        return compiler.finish(None, errors)
    targets = tuple(map(build_target_template, spec.targets))
    addon, findings = compiler.finish(
        Addon(manifest, spec, schema, condition, targets, creates, patches, rules), errors
    )
    if addon and not creates and not patches:
        message = f"{manifest.key} neither creates nor patches resources"
        findings = (*findings, ComponentCodes.ADDON_EMPTY.finding(message, manifest.location))
    return addon, findings


def compile_rules(validation: openchoreo.ValidationRules, scope: TemplateScope) -> tuple[CompiledRule, ...]:
    """Compile the validation rules of an addon or a component type."""
    return tuple(
        compile_rule(rule.name, rule.expression, rule.message, ("spec", "validation", "rules", index), scope)
        for index, rule in enumerate(validation.rules)
    )


class _HasFieldFindings(Protocol):
    @property
    def field_findings(self) -> Iterable[FieldFinding]: ...


_Part = TypeVar("_Part", bound=_HasFieldFindings)
_Result = TypeVar("_Result")


@dataclass
class _Compiler:
    """Compiles the templates of one object and collects the errors.

    If the object is invalid, `spec` is None. The valid list entries of the object are compiled nevertheless, so that
    one pass also reports the errors in their templates.
    """

    manifest: ConfigObject
    spec_model: type[openchoreo.ComponentDefinitionSpec | openchoreo.AddonSpec]
    spec: openchoreo.ComponentDefinitionSpec | openchoreo.AddonSpec | None
    limits: ExpressionLimits
    field_findings: list[FieldFinding] = field(default_factory=list)

    def read_value(self, name: str) -> Any:
        """Return the value of a field of the spec. Return None if the value is invalid."""
        if self.spec:
            return getattr(self.spec, name)
        data = self.manifest.data.get("spec")
        return read_field(self.spec_model, name, data) if isinstance(data, Mapping) else None

    def iterate_entries(self, name: str) -> Iterator[tuple[DataPath, Any]]:
        """Yield the path and the entry for each valid item of a list in the spec."""
        if self.spec:
            entries: Iterable[Any] = getattr(self.spec, name)
        else:
            data: Any = self.manifest.data.get("spec")
            items = data.get(name) if isinstance(data, Mapping) else None
            lists = (
                read_field(self.spec_model, name, {name: [item]}) for item in (items if isinstance(items, list) else ())
            )
            entries = (entry_list[0] if entry_list else None for entry_list in lists)
        for index, entry in enumerate(entries):
            if entry is not None:
                yield ("spec", name, index), entry

    def compile_schema(self) -> ComponentSchema | None:
        """Return the schema of the parameters. Return None if its sections are invalid."""
        sections = self.read_value("schema_")
        return self.add(build_component_schema(sections, ("spec", "schema"))) if sections else None

    def build_scope(self, variables: tuple[str, ...], schema: ComponentSchema) -> TemplateScope:
        """Return the variables of templates, with the types that the schema declares."""
        return build_scope(variables, schema.full, schema.parameters, schema.env_overrides, self.limits)

    def add(self, part: _Part) -> _Part:
        """Collect the errors of `part`, e.g. of a compiled template or loop. Return `part` unchanged."""
        self.field_findings += part.field_findings
        return part

    def compile_object(self, entry: Any, path: DataPath, scope: TemplateScope) -> ObjectTemplate:
        """Compile an entry of `resources` or `creates`. The entry contains a template, or is itself the template."""
        if isinstance(entry, openchoreo.ObjectEntry):
            name, condition, for_each, variable = entry.id, entry.include_when, entry.for_each, entry.var
            data, template_path = entry.object_data, (*path, entry.object_field)
        else:
            name, condition, for_each, variable, data, template_path = "", None, None, None, entry, path
        include = self.add(compile_condition(condition, (*path, "includeWhen"), scope))
        loop = self.add(compile_loop(for_each, variable, path, scope))
        template = self.add(compile_template(data, template_path, loop.scope))
        return ObjectTemplate(name, include, loop, template, data, path)

    def compile_patch(
        self, entry: openchoreo.PatchEntry, path: DataPath, scope: TemplateScope, operation_scope: TemplateScope
    ) -> AddonPatch:
        """Compile an entry of `patches`. `operation_scope` contains the variables that patch operations can use."""
        name = "condition" if entry.include_when is None else "includeWhen"
        data = entry.condition if entry.include_when is None else entry.include_when
        condition = self.add(compile_condition(data, (*path, name), scope))
        loop = self.add(compile_loop(entry.for_each, entry.var, path, scope))
        target = self.add(compile_template(entry.target, (*path, "target"), loop.scope))
        if loop.template:
            operation_scope = operation_scope.with_variable(loop.variable)
        operations = [
            self._compile_operation(fields, (*path, *operation_path), operation_scope)
            for operation_path, fields in entry.iterate_operations()
        ]
        valid_operations = tuple(operation for operation in operations if operation)
        return AddonPatch(condition, loop, target, valid_operations, entry.on_missing == "skip", path)

    def _compile_operation(
        self, fields: openchoreo.PatchOperationFields, field_path: DataPath, scope: TemplateScope
    ) -> CompiledOperation | None:
        operation = build_operation_template(fields, field_path)
        if isinstance(operation, FieldFinding):
            self.field_findings.append(operation)
            return None
        path, value = operation.path, None
        path_template = (
            self.add(compile_template(path, (*field_path, "path"), scope)) if isinstance(path, str) else None
        )
        if operation.op != "remove":
            value = self.add(compile_template(operation.value, (*field_path, "value"), scope))
        return CompiledOperation(operation, path_template, value)

    def finish(
        self, result: _Result | None, findings: tuple[Finding, ...]
    ) -> tuple[_Result | None, tuple[Finding, ...]]:
        """Return the result and all findings. If there are errors, the result is None."""
        findings = (*findings, *(finding.to_finding(self.manifest) for finding in self.field_findings))
        errors = select_errors(findings)
        others = [finding for finding in findings if finding.severity is not Severity.ERROR]
        limited = (*errors[:MAX_FINDINGS_PER_OBJECT], *others[:MAX_FINDINGS_PER_OBJECT])
        return (None if errors else result), limited


def _get_condition(manifest: ConfigObject, schema: ComponentSchema) -> Any:
    """Return the condition of an addon.

    If `spec.condition` is not set, and the schema of the addon has a boolean field `enabled`, this field is the
    condition.
    """
    condition = manifest.data["spec"].get("condition")
    enabled = schema.full.get("properties", {}).get(_ENABLED, {})
    return f"${{spec.{_ENABLED}}}" if condition is None and enabled.get("type") == "boolean" else condition
