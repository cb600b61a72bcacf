"""Readers for component definitions and addons, which also compile their templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.definitions import (
    ROLES_BY_LABEL,
    Addon,
    AddonPatch,
    AddonReference,
    CompiledOperation,
    ComponentDefinition,
    ObjectTemplate,
)
from reconciler.controllers.components.model import API_VERSION
from reconciler.controllers.components.patching.operations import OperationTemplate, read_operation
from reconciler.controllers.components.patching.targets import PatchTarget, read_patch_target_template
from reconciler.controllers.components.readers import (
    ManifestFindings,
    Spec,
    open_spec,
    read_label_text,
    read_label_value,
    read_rules,
)
from reconciler.controllers.components.schema import ComponentSchema, read_component_schema
from reconciler.controllers.components.template_syntax import EXPRESSION_START
from reconciler.controllers.components.templates import (
    ADDON_VARIABLES,
    COMPONENT_VARIABLES,
    PATCH_VARIABLES,
    CompiledRule,
    TemplateScope,
    build_scope,
    compile_condition,
    compile_loop,
    compile_rule,
    compile_template,
)
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding, FindingCode

VERSION, ALLOWED_FOR = "version", "allowedFor"
ENABLED = "enabled"
_DEFINITION_FIELDS = ("schema", "resources")
_ADDON_FIELDS = (
    "displayName", "description", "icon", "schema", "condition", "targets", "creates", "patches", "dependencies",
    "validation", "outputs",
)  # fmt: skip
_DEPENDENCY_FIELDS = ("requires", "conflictsWith", "loadOrder")
_RESOURCE_FIELDS = ("id", "includeWhen", "forEach", "var", "template")
_WRAPPER_FIELDS = ("id", "includeWhen", "forEach", "var", "resource", "template")
_PATCH_FIELDS = ("condition", "includeWhen", "forEach", "var", "target", "patch", "operations", "onMissing")
_ON_MISSING_VALUES = ("error", "skip")


def read_component_definition(
    manifest: ConfigObject, limits: ExpressionLimits
) -> tuple[ComponentDefinition | None, tuple[Finding, ...]]:
    """Read and compile a component definition. Return None and the findings if the definition has errors."""
    spec, findings = open_spec(manifest, ComponentCodes.COMPONENT_DEFINITION_INVALID, API_VERSION, _DEFINITION_FIELDS)
    schema = _read_schema(spec, findings, manifest)
    scope = _build_scope(COMPONENT_VARIABLES, schema, limits)
    resources = tuple(
        _read_wrapped_object(entry, "template", scope, ComponentCodes.COMPONENT_DEFINITION_INVALID)
        for entry in spec.iterate_mappings("resources", _RESOURCE_FIELDS)
    )
    if spec.data.get("resources") in (None, []):
        spec.add_finding("resources", "must be a list with at least one resource")
    for entry in resources:
        findings.add_field_findings(entry.field_findings, manifest)
    _check_unique_ids(resources, findings, is_required=True)
    return (
        None
        if findings.findings
        else ComponentDefinition(manifest, read_label_text(manifest, VERSION), schema, resources)
    ), findings.all_findings


def read_addon(manifest: ConfigObject, limits: ExpressionLimits) -> tuple[Addon | None, tuple[Finding, ...]]:
    """Read and compile an addon. Return None and the findings if the addon has errors."""
    spec, findings = open_spec(manifest, ComponentCodes.ADDON_INVALID, API_VERSION, _ADDON_FIELDS)
    spec.reject_unsupported("outputs")
    for name in ("displayName", "icon"):
        spec.read_text(name)
    schema = _read_schema(spec, findings, manifest)
    scope = _build_scope(ADDON_VARIABLES, schema, limits)
    creates, patches = (
        tuple(_read_creations(spec, scope)),
        tuple(_read_patches(spec, schema, scope, findings, manifest)),
    )
    condition = compile_condition(_get_condition(spec, schema), ("spec", "condition"), scope)
    rules = tuple(compile_rule(rule.name, rule.expression, rule.message, rule.path, scope) for rule in read_rules(spec))
    findings.add_field_findings(condition.field_findings, manifest)
    parts: tuple[ObjectTemplate | AddonPatch | CompiledRule, ...] = (*creates, *patches, *rules)
    for part in parts:
        findings.add_field_findings(part.field_findings, manifest)
    _check_unique_ids(creates, findings, is_required=False)
    dependencies = spec.read_mapping("dependencies", _DEPENDENCY_FIELDS)
    order = dependencies.read_mapping("loadOrder", ("after", "before"))
    if not creates and not patches and not findings.findings:
        message = f"{manifest.key} neither creates nor patches a resource"
        findings.non_errors.append(ComponentCodes.ADDON_EMPTY.finding(message, manifest.location))
    addon = Addon(
        manifest,
        read_label_text(manifest, VERSION),
        spec.read_text("description"),
        _read_roles(manifest, findings),
        schema,
        condition,
        tuple(_read_targets(spec, findings, manifest)),
        creates,
        patches,
        tuple(_read_references(dependencies, "requires")),
        tuple(_read_references(dependencies, "conflictsWith")),
        tuple(_read_names(order, "after")),
        tuple(_read_names(order, "before")),
        rules,
    )
    return (None if findings.findings else addon), findings.all_findings


def _read_schema(spec: Spec, findings: ManifestFindings, manifest: ConfigObject) -> ComponentSchema:
    schema = read_component_schema(spec.data.get("schema"), ("spec", "schema"))
    findings.add_field_findings(schema.field_findings, manifest)
    return schema


def _build_scope(variables: tuple[str, ...], schema: ComponentSchema, limits: ExpressionLimits) -> TemplateScope:
    return build_scope(variables, schema.full, schema.parameters, schema.env_overrides, limits)


def _get_condition(spec: Spec, schema: ComponentSchema) -> Any:
    """Return the condition of an addon.

    If `spec.condition` is not set, a boolean field `enabled` in the schema of the addon is its condition.
    """
    enabled = schema.full.get("properties", {}).get(ENABLED, {})
    if spec.has_value("condition") or enabled.get("type") != "boolean":
        return spec.data.get("condition")
    return f"${{spec.{ENABLED}}}"


def _read_roles(manifest: ConfigObject, findings: ManifestFindings) -> frozenset[Any]:
    label = read_label_value(manifest, ALLOWED_FOR)
    if isinstance(label, str) and label in ROLES_BY_LABEL:
        return ROLES_BY_LABEL[label]
    if label is not None:
        path = ("metadata", "labels", ALLOWED_FOR)
        findings.add(path, f"must be one of {', '.join(ROLES_BY_LABEL)}, not {quote_value(label)}")
    return ROLES_BY_LABEL["platform-engineer"]


def _read_targets(spec: Spec, findings: ManifestFindings, manifest: ConfigObject) -> Iterator[PatchTarget]:
    for path, data in spec.iterate_items("targets"):
        target = read_patch_target_template(data, path)
        if isinstance(target, PatchTarget):
            yield target
        else:
            findings.add_field_findings(target, manifest)


def _read_creations(spec: Spec, scope: TemplateScope) -> Iterator[ObjectTemplate]:
    for entry in spec.iterate_mappings("creates", None):
        if entry.has_value("kind") or entry.has_value("apiVersion"):
            if mixed := [name for name in _WRAPPER_FIELDS if entry.has_value(name)]:
                message = (
                    f"must be a resource, or contain a resource in `resource`, not both: it has {', '.join(mixed)}"
                )
                entry.faults.add(entry.path, message)
            yield _compile_object(entry, "", None, entry.data, entry.path, scope, ComponentCodes.ADDON_INVALID)
            continue
        wrapper = Spec(entry.data, entry.path, entry.faults, _WRAPPER_FIELDS)
        if wrapper.has_value("resource") == wrapper.has_value("template"):
            entry.faults.add(
                entry.path,
                "must be a resource, or contain a resource in exactly one of the fields `resource` and `template`",
            )
        else:
            yield _read_wrapped_object(
                wrapper,
                "resource" if wrapper.has_value("resource") else "template",
                scope,
                ComponentCodes.ADDON_INVALID,
            )


def _read_wrapped_object(entry: Spec, field: str, scope: TemplateScope, code: FindingCode) -> ObjectTemplate:
    """Compile an entry of the form `{forEach: …, resource: {…}}`. `field` is `resource` or `template`."""
    return _compile_object(
        entry,
        entry.read_identifier("id"),
        entry,
        entry.read_mapping(field, None).data,
        (*entry.path, field),
        scope,
        code,
    )


def _compile_object(
    entry: Spec,
    name: str,
    wrapper: Spec | None,
    data: Mapping[str, Any],
    path: Any,
    scope: TemplateScope,
    code: FindingCode,
) -> ObjectTemplate:
    wrapper_data = wrapper.data if wrapper else {}
    kind = data.get("kind")
    if not isinstance(kind, str) or not kind or EXPRESSION_START in kind:
        entry.faults.add((*path, "kind"), f"must be a kind without expressions, not {quote_value(kind)}", code)
    include = compile_condition(wrapper_data.get("includeWhen"), (*entry.path, "includeWhen"), scope)
    loop = compile_loop(wrapper_data.get("forEach"), wrapper_data.get("var"), entry.path, scope)
    return ObjectTemplate(name, include, loop, compile_template(data, path, loop.scope), data, entry.path)


def _read_patches(
    spec: Spec, schema: ComponentSchema, scope: TemplateScope, findings: ManifestFindings, manifest: ConfigObject
) -> Iterator[AddonPatch]:
    operation_scope = _build_scope(PATCH_VARIABLES, schema, scope.limits)
    for entry in spec.iterate_mappings("patches", _PATCH_FIELDS):
        field = "includeWhen" if entry.has_value("includeWhen") else "condition"
        if entry.has_value("condition") and entry.has_value("includeWhen"):
            entry.add_finding("includeWhen", "must not be set together with condition, which has the same meaning")
        loop = compile_loop(entry.data.get("forEach"), entry.data.get("var"), entry.path, scope)
        loop_scope = compile_loop(entry.data.get("forEach"), entry.data.get("var"), entry.path, operation_scope).scope
        target = compile_template(entry.data.get("target"), (*entry.path, "target"), loop.scope)
        target_result = read_patch_target_template(entry.data.get("target"), (*entry.path, "target"))
        findings.add_field_findings(target_result if isinstance(target_result, tuple) else (), manifest)
        condition = compile_condition(entry.data.get(field), (*entry.path, field), scope)
        should_skip = entry.read_choice("onMissing", _ON_MISSING_VALUES, "error") == "skip"
        operations = tuple(
            _compile_operation(operation, loop_scope) for operation in _read_operations(entry, findings, manifest)
        )
        yield AddonPatch(condition, loop, target, operations, should_skip, entry.path)


def _read_operations(entry: Spec, findings: ManifestFindings, manifest: ConfigObject) -> Iterator[OperationTemplate]:
    if entry.has_value("patch") == entry.has_value("operations"):
        entry.faults.add(entry.path, "must have exactly one of the fields patch and operations")
        return
    entries = (
        [((*entry.path, "patch"), entry.data["patch"])]
        if entry.has_value("patch")
        else entry.iterate_items("operations")
    )
    for path, data in entries:
        operation = read_operation(data, path)
        if isinstance(operation, OperationTemplate):
            yield operation
        else:
            findings.add_field_findings(operation, manifest)


def _compile_operation(operation: OperationTemplate, scope: TemplateScope) -> CompiledOperation:
    path = operation.path if isinstance(operation.path, str) else None
    value = None if operation.op == "remove" else operation.value
    return CompiledOperation(
        operation,
        None if path is None else compile_template(path, (*operation.field_path, "path"), scope),
        None if operation.op == "remove" else compile_template(value, (*operation.field_path, "value"), scope),
    )


def _check_unique_ids(entries: tuple[ObjectTemplate, ...], findings: ManifestFindings, *, is_required: bool) -> None:
    checked_ids: set[str] = set()
    for entry in entries:
        if is_required and not entry.id:
            findings.add((*entry.path, "id"), "must be a unique id")
        elif entry.id and entry.id in checked_ids:
            findings.add((*entry.path, "id"), f"must be unique, and {quote_value(entry.id)} is used twice")
        checked_ids.add(entry.id)


def _read_references(spec: Spec, name: str) -> Iterator[AddonReference]:
    for entry in spec.iterate_mappings(name, ("addon", "reason")):
        yield AddonReference(entry.read_text("addon", required=True), (*entry.path, "addon"), entry.read_text("reason"))


def _read_names(spec: Spec, name: str) -> Iterator[AddonReference]:
    for path, item in spec.iterate_items(name):
        if isinstance(item, str) and item:
            yield AddonReference(item, path)
        else:
            spec.faults.add(path, f"must be the name of an addon, not {quote_value(item)}")
