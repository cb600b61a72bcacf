"""Tests of template scopes: available variables, and the fields that are known before a render."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.components.templates.template import (
    RESERVED_VARIABLES,
    TemplateScope,
    build_shape,
    compile_template,
)
from tests.unit.controllers.components.templates.template_helpers import (
    AT,
    IN_ADDON,
    IN_BASE,
    IN_PATCH,
    SPEC,
    list_codes,
)

EVERYWHERE = ("metadata", "spec", "parameters", "envOverrides", "build", "workload", "env")
ADDONS_ONLY = ("instanceId", "addon", "resources")


@pytest.mark.parametrize(
    ("scope", "variables"),
    [
        pytest.param(IN_BASE, EVERYWHERE, id="component"),
        pytest.param(IN_ADDON, (*EVERYWHERE, *ADDONS_ONLY), id="addon"),
        pytest.param(IN_PATCH, (*EVERYWHERE, *ADDONS_ONLY, "target"), id="patch"),
    ],
)
def test_variables_of_each_scope(scope: TemplateScope, variables: tuple[str, ...]) -> None:
    values = (*EVERYWHERE, *ADDONS_ONLY, "target", "component", "item", "resource")

    there = [name for name in values if not compile_template(f"${{{name}}}", AT, scope).field_findings]

    assert there == list(variables)


def test_variables_of_all_scopes_are_reserved() -> None:
    assert {*EVERYWHERE, *ADDONS_ONLY, "target", "component"} == RESERVED_VARIABLES


def test_loop_variable_has_any_type() -> None:
    template = compile_template("${door.any.thing}", AT, IN_BASE.with_variable("door"))

    assert template.field_findings == ()
    assert template.variables == {"door"}
    assert list_codes("${door.any.thing}") == ["CelUndeclared"]


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("spec.count + 1", id="field"),
        pytest.param("spec.idle.enabled", id="nested"),
        pytest.param("spec['idle']['enabled']", id="by-literal"),
        pytest.param("has(spec.owner)", id="has"),
        pytest.param("spec.?idle.?enabled.orValue(false)", id="optional"),
        pytest.param("spec.notes.whatever", id="map"),
        pytest.param("spec.extra.what.ever", id="free-form"),
        pytest.param("spec.extra['a-b']", id="free-form-by-literal"),
        pytest.param("spec.any.thing", id="no-type"),
        pytest.param("spec.doors[0].nobody.knows", id="items-are-not-checked"),
        pytest.param("spec.doors.map(d, d.nobody)", id="items-in-macros-are-not-checked"),
        pytest.param("spec.owner.size()", id="methods"),
        pytest.param("spec['ow' + 'ner']", id="worked-out-fields"),
        pytest.param("parameters.owner", id="section"),
        pytest.param("envOverrides.count", id="other-section"),
        pytest.param("metadata.labels.team + metadata.annotations['a/b']", id="labels"),
        pytest.param("build.image + build.args.x", id="build-is-open"),
        pytest.param("workload.containers[0].name", id="workload-is-open"),
        pytest.param("env.name + env.region.zone", id="env-is-open"),
    ],
)
def test_known_or_open_fields_are_accepted(expression: str) -> None:
    assert list_codes(f"${{{expression}}}") == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("spec.cuont", "spec has no field 'cuont'", id="field"),
        pytest.param("spec.idle.on", "spec.idle has no field 'on'; existing fields: enabled", id="nested"),
        pytest.param("spec['idle'].on", "spec.idle has no field 'on'", id="after-a-literal"),
        pytest.param("spec['cuont']", "spec has no field 'cuont'", id="by-literal"),
        pytest.param("has(spec.idle.on)", "spec.idle has no field 'on'", id="has"),
        pytest.param("spec.?cuont.orValue(1)", "spec has no field 'cuont'", id="optional"),
        pytest.param("spec.owner.name", "spec.owner has no field 'name'; existing fields: none", id="scalar"),
        pytest.param("spec.doors.name", "spec.doors has no field 'name'", id="list"),
        pytest.param("spec.doors.all(d, spec.nope)", "spec has no field 'nope'", id="in-a-macro"),
        pytest.param("parameters.count", "parameters has no field 'count'", id="wrong-section"),
        pytest.param("envOverrides.owner", "envOverrides has no field 'owner'", id="other-wrong-section"),
        pytest.param(
            "metadata.uid", "metadata has no field 'uid'; existing fields: annotations, labels, name", id="metadata"
        ),
    ],
)
def test_unknown_fields_are_reported(expression: str, message: str) -> None:
    (finding,) = compile_template(f"${{{expression}}}", AT, IN_BASE).field_findings

    assert finding.code.name == "CelUndefinedField"
    assert message in finding.message


def test_fields_of_addon_variables() -> None:
    data = ["${addon.name}", "${addon.kind}", "${instanceId.x}", "${resources.kind}", "${target.any.thing}"]

    values = [finding.path[-1] for finding in compile_template(data, AT, IN_PATCH).field_findings]

    assert values == [1, 2, 3]


def build_nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        pytest.param({}, None, id="anything"),
        pytest.param({"type": "string"}, {}, id="scalar"),
        pytest.param({"type": "array", "items": SPEC}, {}, id="list"),
        pytest.param({"type": "object"}, {}, id="no-fields"),
        pytest.param({"type": "object", "additionalProperties": {"type": "string"}}, None, id="map"),
        pytest.param(build_nested(2), {"a": {"a": {}}}, id="nested"),
    ],
)
def test_shape_of_a_schema(schema: dict[str, Any], shape: Any) -> None:
    assert build_shape(schema) == shape


def test_only_the_first_steps_are_checked() -> None:
    scope = TemplateScope({"spec": build_shape(build_nested(5000))})

    assert compile_template(f"${{spec{'.a' * 200}.b}}", AT, scope).field_findings == ()
    assert compile_template("${spec.a.b}", AT, scope).field_findings[0].code.name == "CelUndefinedField"
