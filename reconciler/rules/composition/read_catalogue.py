"""Reading component definitions and addons, and compiling what they hold (openchoreo 1.1, 1.2, 5.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.expressions import Limits
from reconciler.krm.findings import Code, Finding
from reconciler.rules.composition.catalogue import (
    SIDES,
    Addon,
    Definition,
    ObjectTemplate,
    Patch,
    PatchedPlace,
    Relation,
)
from reconciler.rules.composition.codes import ADDON_EMPTY, ADDON_INVALID, COMPONENT_DEFINITION_INVALID
from reconciler.rules.composition.marks import OPEN
from reconciler.rules.composition.model import API_VERSION
from reconciler.rules.composition.patching.operations import OperationTemplate, read_operation
from reconciler.rules.composition.patching.targets import Target, read_target_template
from reconciler.rules.composition.reading import Spec, Told, label, opened, read_rules, written_label
from reconciler.rules.composition.schema import ComponentSchema, read_schema
from reconciler.rules.composition.text import (
    ADDON,
    BASE,
    PATCH,
    CompiledRule,
    Scope,
    compile_condition,
    compile_loop,
    compile_rule,
    compile_template,
    declare,
)
from reconciler.rules.fields import shown
from reconciler.snapshot.catalog import ConfigObject

VERSION, ALLOWED_FOR = "version", "allowedFor"
ENABLED = "enabled"
_DEFINITION = ("schema", "resources")
_ADDON = (
    "displayName", "description", "icon", "schema", "condition", "targets", "creates", "patches", "dependencies",
    "validation", "outputs",
)  # fmt: skip
_DEPENDENCIES = ("requires", "conflictsWith", "loadOrder")
_RESOURCE = ("id", "includeWhen", "forEach", "var", "template")
_WRAPPER = ("id", "includeWhen", "forEach", "var", "resource", "template")
_PATCH = ("condition", "includeWhen", "forEach", "var", "target", "patch", "operations", "onMissing")
_MISSING = ("error", "skip")


def read_definition(one: ConfigObject, limits: Limits) -> tuple[Definition | None, tuple[Finding, ...]]:
    """Return a component definition, None where anything is wrong with it, and what that is."""
    spec, told = opened(one, COMPONENT_DEFINITION_INVALID, API_VERSION, _DEFINITION)
    schema = _schema(spec, told, one)
    scope = _scope(BASE, schema, limits)
    resources = tuple(
        _object(each, "template", scope, COMPONENT_DEFINITION_INVALID) for each in spec.mappings("resources", _RESOURCE)
    )
    if spec.data.get("resources") in (None, []):
        spec.fault("resources", "must be a list that is not empty: a component is at least one object")
    for each in resources:
        told.take(each.faults, one)
    _unique_ids(resources, told, needed=True)
    return (None if told.findings else Definition(one, label(one, VERSION), schema, resources)), told.all


def read_addon(one: ConfigObject, limits: Limits) -> tuple[Addon | None, tuple[Finding, ...]]:
    """Return an addon, None where anything is wrong with it, and what that is."""
    spec, told = opened(one, ADDON_INVALID, API_VERSION, _ADDON)
    spec.unsupported("outputs")
    for name in ("displayName", "icon"):
        spec.text(name)
    schema = _schema(spec, told, one)
    scope = _scope(ADDON, schema, limits)
    creates, patches = tuple(_creates(spec, scope)), tuple(_patches(spec, schema, scope, told, one))
    condition = compile_condition(_condition(spec, schema), ("spec", "condition"), scope)
    rules = tuple(compile_rule(rule.name, rule.expression, rule.message, rule.path, scope) for rule in read_rules(spec))
    told.take(condition.faults, one)
    parts: tuple[ObjectTemplate | Patch | CompiledRule, ...] = (*creates, *patches, *rules)
    for part in parts:
        told.take(part.faults, one)
    _unique_ids(creates, told, needed=False)
    depends = spec.mapping("dependencies", _DEPENDENCIES)
    order = depends.mapping("loadOrder", ("after", "before"))
    if not creates and not patches and not told.findings:
        message = f"{one.key} neither creates nor patches anything"
        told.notes.append(ADDON_EMPTY.finding(message, one.where))
    read = Addon(
        one, label(one, VERSION), spec.text("description"), _sides(one, told), schema, condition,
        tuple(_targets(spec, told, one)), creates, patches, tuple(_related(depends, "requires")),
        tuple(_related(depends, "conflictsWith")), tuple(_listed(order, "after")), tuple(_listed(order, "before")),
        rules,
    )  # fmt: skip
    return (None if told.findings else read), told.all


def _schema(spec: Spec, told: Told, one: ConfigObject) -> ComponentSchema:
    schema = read_schema(spec.data.get("schema"), ("spec", "schema"))
    told.take(schema.faults, one)
    return schema


def _scope(variables: tuple[str, ...], schema: ComponentSchema, limits: Limits) -> Scope:
    return declare(variables, schema.full, schema.parameters, schema.env_overrides, limits)


def _condition(spec: Spec, schema: ComponentSchema) -> Any:
    """Return the condition of an addon: its own, else that it is enabled, where it has that field (openchoreo 6.1)."""
    enabled = schema.full.get("properties", {}).get(ENABLED, {})
    if spec.has("condition") or enabled.get("type") != "boolean":
        return spec.data.get("condition")
    return f"${{spec.{ENABLED}}}"


def _sides(one: ConfigObject, told: Told) -> frozenset[Any]:
    written = written_label(one, ALLOWED_FOR)
    if isinstance(written, str) and written in SIDES:
        return SIDES[written]
    if written is not None:
        path = ("metadata", "labels", ALLOWED_FOR)
        told.add(path, f"must be one of {', '.join(SIDES)}, not {shown(written)}")
    return SIDES["platform-engineer"]


def _targets(spec: Spec, told: Told, one: ConfigObject) -> Iterator[Target]:
    for path, data in spec.items("targets"):
        read = read_target_template(data, path)
        if isinstance(read, Target):
            yield read
        else:
            told.take(read, one)


def _creates(spec: Spec, scope: Scope) -> Iterator[ObjectTemplate]:
    for one in spec.mappings("creates", None):
        if one.has("kind") or one.has("apiVersion"):
            if mixed := [name for name in _WRAPPER if one.has(name)]:
                what = f"must be an object as it is, and has {', '.join(mixed)}: put the object below resource"
                one.faults.add(one.path, what)
            yield _compiled(one, "", None, one.data, one.path, scope, ADDON_INVALID)
            continue
        held = Spec(one.data, one.path, one.faults, _WRAPPER)
        if held.has("resource") == held.has("template"):
            one.faults.add(one.path, "must be an object, or have one, as resource or as template, and not both")
        else:
            yield _object(held, "resource" if held.has("resource") else "template", scope, ADDON_INVALID)


def _object(one: Spec, field: str, scope: Scope, code: Code) -> ObjectTemplate:
    """Return the entry that wraps an object in `field`."""
    return _compiled(one, one.identifier("id"), one, one.mapping(field, None).data, (*one.path, field), scope, code)


def _compiled(
    entry: Spec, name: str, wrapper: Spec | None, data: Mapping[str, Any], path: Any, scope: Scope, code: Code
) -> ObjectTemplate:
    wrapped = wrapper.data if wrapper else {}
    kind = data.get("kind")
    if not isinstance(kind, str) or not kind or OPEN in kind:
        entry.faults.add((*path, "kind"), f"must be the kind of an object, as it is, not {shown(kind)}", code)
    include = compile_condition(wrapped.get("includeWhen"), (*entry.path, "includeWhen"), scope)
    loop = compile_loop(wrapped.get("forEach"), wrapped.get("var"), entry.path, scope)
    return ObjectTemplate(name, include, loop, compile_template(data, path, loop.scope), data, entry.path)


def _patches(spec: Spec, schema: ComponentSchema, scope: Scope, told: Told, of: ConfigObject) -> Iterator[Patch]:
    known = _scope(PATCH, schema, scope.limits)
    for one in spec.mappings("patches", _PATCH):
        field = "includeWhen" if one.has("includeWhen") else "condition"
        if one.has("condition") and one.has("includeWhen"):
            one.fault("includeWhen", "must be left out beside condition, which is the same")
        loop = compile_loop(one.data.get("forEach"), one.data.get("var"), one.path, scope)
        inner = compile_loop(one.data.get("forEach"), one.data.get("var"), one.path, known).scope
        target = compile_template(one.data.get("target"), (*one.path, "target"), loop.scope)
        read = read_target_template(one.data.get("target"), (*one.path, "target"))
        told.take(read if isinstance(read, tuple) else (), of)
        condition = compile_condition(one.data.get(field), (*one.path, field), scope)
        skips = one.choice("onMissing", _MISSING, "error") == "skip"
        places = tuple(_place(each, inner) for each in _operations(one, told, of))
        yield Patch(condition, loop, target, places, skips, one.path)


def _operations(one: Spec, told: Told, of: ConfigObject) -> Iterator[OperationTemplate]:
    if one.has("patch") == one.has("operations"):
        one.faults.add(one.path, "must have either patch or operations")
        return
    entries = [((*one.path, "patch"), one.data["patch"])] if one.has("patch") else one.items("operations")
    for path, data in entries:
        read = read_operation(data, path)
        if isinstance(read, OperationTemplate):
            yield read
        else:
            told.take(read, of)


def _place(operation: OperationTemplate, scope: Scope) -> PatchedPlace:
    path = operation.path if isinstance(operation.path, str) else None
    value = None if operation.op == "remove" else operation.value
    return PatchedPlace(
        operation,
        None if path is None else compile_template(path, (*operation.at, "path"), scope),
        None if operation.op == "remove" else compile_template(value, (*operation.at, "value"), scope),
    )


def _unique_ids(entries: tuple[ObjectTemplate, ...], told: Told, *, needed: bool) -> None:
    seen: set[str] = set()
    for one in entries:
        if needed and not one.id:
            told.add((*one.path, "id"), "must be an id, of which there is only one")
        elif one.id and one.id in seen:
            told.add((*one.path, "id"), f"must not be there twice: {shown(one.id)}")
        seen.add(one.id)


def _related(spec: Spec, name: str) -> Iterator[Relation]:
    for one in spec.mappings(name, ("addon", "reason")):
        yield Relation(one.text("addon", required=True), (*one.path, "addon"), one.text("reason"))


def _listed(spec: Spec, name: str) -> Iterator[Relation]:
    for path, item in spec.items(name):
        if isinstance(item, str) and item:
            yield Relation(item, path)
        else:
            spec.faults.add(path, f"must be the name of an addon, not {shown(item)}")
