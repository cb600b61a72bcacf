"""Helpers for tests of templates: a schema, its scopes, and variables with values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.cel import ExpressionBudget, ExpressionLimits
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError
from reconciler.controllers.components.templates.template import (
    ADDON_VARIABLES,
    COMPONENT_VARIABLES,
    PATCH_VARIABLES,
    CompiledTemplate,
    build_scope,
    compile_template,
)
from reconciler.krm.yaml import DataPath

AT: DataPath = ("spec", "resources", 0, "template")
LIMITS = ExpressionLimits()


def _object_schema(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}
DOOR = _object_schema(name=TEXT, number=COUNT, open={"type": "boolean"})
PARAMETERS = _object_schema(
    doors={"type": "array", "items": DOOR},
    pages={"type": "array", "items": _object_schema(name=TEXT, content=TEXT)},
    owner=TEXT,
    notes={"type": "object", "additionalProperties": TEXT},
    extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
ENV_OVERRIDES = _object_schema(
    count=COUNT,
    idle=_object_schema(enabled={"type": "boolean"}),
    share={"type": "number"},
    any={"description": "whatever"},
)
SPEC = _object_schema(**PARAMETERS["properties"], **ENV_OVERRIDES["properties"])

IN_BASE, IN_ADDON, IN_PATCH = (
    build_scope(names, SPEC, PARAMETERS, ENV_OVERRIDES, LIMITS)
    for names in (COMPONENT_VARIABLES, ADDON_VARIABLES, PATCH_VARIABLES)
)

VALUES: dict[str, Any] = {
    "doors": [{"name": "main", "number": 7000, "open": True}, {"name": "side", "number": 7001, "open": False}],
    "pages": [{"name": "one.html", "content": "first"}, {"name": "two.html", "content": "second"}],
    "notes": {"b": "late", "a": "early"},
    "extra": {"free": {"deep": [1, None]}, "a-b": "dashed"},
    "count": 3,
    "share": 2.5,
    "idle": {"enabled": False},
    "any": None,
}
BINDINGS: dict[str, Any] = {
    "metadata": {"name": "mill", "namespace": "river", "labels": {"team": "water"}, "annotations": {}},
    "spec": VALUES,
    "parameters": {key: VALUES[key] for key in ("doors", "pages", "notes", "extra")},
    "envOverrides": {key: VALUES[key] for key in ("count", "share", "idle", "any")},
    "build": {"image": "registry.example.org/mill:2.0", "tag": "2.0"},
    "workload": {},
    "env": {"name": "live"},
    "instanceId": "wheel",
    "addon": {"name": "gauge", "instanceId": "wheel"},
    "resources": [{"kind": "Deployment", "metadata": {"name": "mill"}}],
    "target": {"kind": "Deployment", "metadata": {"name": "mill", "labels": {"team": "water"}}},
}


def compile_patch_template(data: Any) -> CompiledTemplate:
    """Compile the template of a patch, which must be valid."""
    template = compile_template(data, AT, IN_PATCH)
    assert template.field_findings == ()
    return template


def render_patch_template(data: Any, **spec: Any) -> Any:
    """Render the template of a patch. `spec` adds values to the default values or replaces them."""
    return compile_patch_template(data).render({**BINDINGS, "spec": {**VALUES, **spec}}, ExpressionBudget(LIMITS))


def list_codes(data: Any) -> list[str]:
    """Return the codes of the findings about a component template before it is rendered."""
    return [finding.code.name for finding in compile_template(data, AT, IN_BASE).field_findings]


def find_failure(data: Any, **spec: Any) -> FieldFinding:
    """Return the finding of a component template that cannot be compiled or rendered."""
    template = compile_template(data, AT, IN_BASE)
    try:
        value = template.render({**BINDINGS, "spec": {**VALUES, **spec}}, ExpressionBudget(LIMITS))
    except FieldFindingError as error:
        return error.field_finding
    raise AssertionError(f"gave {value!r}")
