"""Which variables there are, and what is known of them before a render (openchoreo 5.4, 5.5)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.components.templates import RESERVED_VARIABLES, TemplateScope, build_shape, compile_template
from tests.unit.controllers.components.templates.text_world import AT, IN_ADDON, IN_BASE, IN_PATCH, SPEC, faults

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
def test_where_which_variables_are(scope: TemplateScope, variables: tuple[str, ...]) -> None:
    values = (*EVERYWHERE, *ADDONS_ONLY, "target", "component", "item", "resource")

    there = [name for name in values if not compile_template(f"${{{name}}}", AT, scope).field_findings]

    assert there == list(variables)


def test_no_loop_may_hide_a_variable_of_any_place() -> None:
    assert {*EVERYWHERE, *ADDONS_ONLY, "target", "component"} == RESERVED_VARIABLES


def test_the_variable_of_a_loop_may_be_anything() -> None:
    template = compile_template("${door.any.thing}", AT, IN_BASE.with_variable("door"))

    assert template.field_findings == ()
    assert template.variables == {"door"}
    assert faults("${door.any.thing}") == ["CelUndeclared"]


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
        pytest.param("spec.doors[0].nobody.knows", id="items-are-looked-at-later"),
        pytest.param("spec.doors.map(d, d.nobody)", id="items-in-macros-too"),
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
def test_fields_that_may_be_there(expression: str) -> None:
    assert faults(f"${{{expression}}}") == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("spec.cuont", "spec has no field 'cuont'", id="field"),
        pytest.param("spec.idle.on", "spec.idle has no field 'on'; it has: enabled", id="nested"),
        pytest.param("spec['idle'].on", "spec.idle has no field 'on'", id="after-a-literal"),
        pytest.param("spec['cuont']", "spec has no field 'cuont'", id="by-literal"),
        pytest.param("has(spec.idle.on)", "spec.idle has no field 'on'", id="has"),
        pytest.param("spec.?cuont.orValue(1)", "spec has no field 'cuont'", id="optional"),
        pytest.param("spec.owner.name", "spec.owner has no field 'name'; it has: none", id="scalar"),
        pytest.param("spec.doors.name", "spec.doors has no field 'name'", id="list"),
        pytest.param("spec.doors.all(d, spec.nope)", "spec has no field 'nope'", id="in-a-macro"),
        pytest.param("parameters.count", "parameters has no field 'count'", id="wrong-section"),
        pytest.param("envOverrides.owner", "envOverrides has no field 'owner'", id="other-wrong-section"),
        pytest.param("metadata.uid", "metadata has no field 'uid'; it has: annotations, labels, name", id="metadata"),
    ],
)
def test_fields_that_cannot_be_there(expression: str, message: str) -> None:
    (fault,) = compile_template(f"${{{expression}}}", AT, IN_BASE).field_findings

    assert fault.code.name == "CelUndefinedField"
    assert message in fault.message


def test_fields_of_what_addons_see() -> None:
    data = ["${addon.name}", "${addon.kind}", "${instanceId.x}", "${resources.kind}", "${target.any.thing}"]

    values = [fault.path[-1] for fault in compile_template(data, AT, IN_PATCH).field_findings]

    assert values == [1, 2, 3]


def nested(depth: int) -> dict[str, Any]:
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
        pytest.param(nested(2), {"a": {"a": {}}}, id="nested"),
    ],
)
def test_the_shape_of_a_schema(schema: dict[str, Any], shape: Any) -> None:
    assert build_shape(schema) == shape


def test_only_the_first_steps_are_checked() -> None:
    scope = TemplateScope({"spec": build_shape(nested(5000))})

    assert compile_template(f"${{spec{'.a' * 200}.b}}", AT, scope).field_findings == ()
    assert compile_template("${spec.a.b}", AT, scope).field_findings[0].code.name == "CelUndefinedField"
