"""A small world to render templates in: a schema, the scopes that follow from it, and variables with values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.cel import ExpressionBudget, ExpressionLimits
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError
from reconciler.controllers.components.templates import (
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


def _record(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}
DOOR = _record(name=TEXT, number=COUNT, open={"type": "boolean"})
PARAMETERS = _record(
    doors={"type": "array", "items": DOOR},
    pages={"type": "array", "items": _record(name=TEXT, content=TEXT)},
    owner=TEXT,
    notes={"type": "object", "additionalProperties": TEXT},
    extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
ENV_OVERRIDES = _record(
    count=COUNT, idle=_record(enabled={"type": "boolean"}), share={"type": "number"}, any={"description": "whatever"}
)
SPEC = _record(**PARAMETERS["properties"], **ENV_OVERRIDES["properties"])

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


def compiled(data: Any) -> CompiledTemplate:
    """Return a template of a patch that has nothing wrong with it."""
    template = compile_template(data, AT, IN_PATCH)
    assert template.field_findings == ()
    return template


def rendered(data: Any, **spec: Any) -> Any:
    """Return what a template of a patch comes to, with these values besides or instead of the usual ones."""
    return compiled(data).render({**BINDINGS, "spec": {**VALUES, **spec}}, ExpressionBudget(LIMITS))


def faults(data: Any) -> list[str]:
    """Return the codes of what is wrong with a template of a component, before it is rendered."""
    return [fault.code.name for fault in compile_template(data, AT, IN_BASE).field_findings]


def failure(data: Any, **spec: Any) -> FieldFinding:
    """Return why a template of a component cannot be rendered, at load or later."""
    template = compile_template(data, AT, IN_BASE)
    try:
        value = template.render({**BINDINGS, "spec": {**VALUES, **spec}}, ExpressionBudget(LIMITS))
    except FieldFindingError as error:
        return error.field_finding
    raise AssertionError(f"gave {value!r}")
