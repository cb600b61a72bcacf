"""Tests of templates: rendered values, and the findings about invalid templates."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reconciler.cel import OMIT, ExpressionBudget, ExpressionLimits
from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.templates.nodes import ValueOrigin
from reconciler.controllers.components.templates.template import (
    MAX_EXPRESSIONS,
    MAX_TEMPLATE_DEPTH,
    CompiledTemplate,
    build_scope,
    compile_template,
)
from tests.unit.controllers.components.templates.template_helpers import (
    AT,
    BINDINGS,
    IN_BASE,
    IN_PATCH,
    LIMITS,
    VALUES,
    compile_patch_template,
    find_failure,
    list_codes,
    render_patch_template,
)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param("plain", "plain", id="text"),
        pytest.param(5, 5, id="number"),
        pytest.param(None, None, id="null"),
        pytest.param({"a": [1, {"b": True}], "c": 2.5}, {"a": [1, {"b": True}], "c": 2.5}, id="nothing-to-render"),
        pytest.param("${spec.count}", 3, id="int"),
        pytest.param("${spec.share}", 2.5, id="double"),
        pytest.param("${3.0}", 3.0, id="whole-double-stays-double"),
        pytest.param("${spec.idle.enabled}", False, id="bool"),
        pytest.param("${spec.any}", None, id="null-alone"),
        pytest.param("${metadata.name}", "mill", id="string"),
        pytest.param("${spec.notes}", {"b": "late", "a": "early"}, id="map"),
        pytest.param("${spec.doors.map(d, d.number)}", [7000, 7001], id="list"),
        pytest.param("${5u}", 5, id="uint-is-a-number"),
        pytest.param("  ${spec.count}\n", 3, id="blanks-around-do-not-count"),
        pytest.param("${spec.count} ", 3, id="blank-behind"),
        pytest.param("${metadata.name}-pvc", "mill-pvc", id="within-text"),
        pytest.param("${metadata.name}${spec.count}", "mill3", id="two-are-text"),
        pytest.param("${spec.count} ${spec.count}", "3 3", id="two-with-a-blank-are-text"),
        pytest.param("${true}/${1.0}/${2.5}/${-7}", "true/1/2.5/-7", id="scalars-as-text"),
        pytest.param("${spec.notes}=${[1, 'a']}", '{"a":"early","b":"late"}=[1,"a"]', id="json-as-text"),
        pytest.param("a ${''} b", "a  b", id="empty-text"),
        pytest.param('${"${HOME}"}/bin', "${HOME}/bin", id="literal"),
        pytest.param({"${metadata.name}-x": 1, "b": "${spec.count}"}, {"mill-x": 1, "b": 3}, id="keys"),
        pytest.param({" ${metadata.name}\n": 1}, {"mill": 1}, id="a-whole-key"),
        pytest.param({"z": "${1}", "a": 1, "m": "${2}"}, {"z": 1, "a": 1, "m": 2}, id="order-of-keys"),
        pytest.param({"a": "${omit()}", "b": 1}, {"b": 1}, id="omitted-entry"),
        pytest.param(["${omit()}", 1, "${omit()}"], [1], id="omitted-items"),
        pytest.param({"a": {"b": "${omit()}"}, "c": ["${omit()}"]}, {"a": {}, "c": []}, id="empty-values-stay"),
        pytest.param("${ {'a': omit(), 'b': [1, omit()]} }", {"b": [1]}, id="omitted-inside-of-an-expression"),
        pytest.param("${[1, 2].map(i, i == 1 ? omit() : i)}", [2], id="omitted-by-a-macro"),
        pytest.param("x${ {'a': omit(), 'b': 1} }", 'x{"b":1}', id="omitted-in-json"),
        pytest.param("${resources[0].kind} ${target.metadata.name}", "Deployment mill", id="variables-of-patches"),
        pytest.param("${instanceId} ${addon.name}", "wheel gauge", id="variables-of-addons"),
        pytest.param(
            {"${true ? 'a' : 'b'}": "${omit()}", "${'a'}": 1}, {"a": 1}, id="an-entry-that-is-omitted-is-no-duplicate"
        ),
    ],
)
def test_rendering(data: Any, value: Any) -> None:
    result = render_patch_template(data)

    assert (result, type(result)) == (value, type(value))
    assert repr(result) == repr(value), "in this order"


def test_template_can_omit_itself() -> None:
    assert render_patch_template("${omit()}") is OMIT


@pytest.mark.parametrize(
    ("data", "code", "path", "message"),
    [
        pytest.param(
            "a${null}",
            "TemplateNullInText",
            (),
            'the expression "null" inside a text, but the expression returns null',
            id="null",
        ),
        pytest.param(
            "a${omit()}",
            "TemplateOmitInText",
            (),
            "but the expression returns omit(); omit() can only remove a complete value",
            id="omit",
        ),
        pytest.param(
            {"${spec.count}": 1}, "TemplateKeyType", ("${spec.count}",), "returns 3; use string()", id="key-type"
        ),
        pytest.param({"${spec.notes}": 1}, "TemplateKeyType", ("${spec.notes}",), "returns a mapping", id="key-map"),
        pytest.param({"${omit()}": 1}, "TemplateKeyType", ("${omit()}",), "returns omit()", id="key-omit"),
        pytest.param({"${null}": 1}, "TemplateKeyType", ("${null}",), "returns null", id="key-null"),
        pytest.param(
            {8080: 1}, "TemplateKeyType", (8080,), "must have strings as keys, but has the key 8080", id="key-no-text"
        ),
        pytest.param(
            {"mill": 1, "b": {"mill": 2, "${metadata.name}": 3}},
            "TemplateDuplicateKey",
            ("b", "${metadata.name}"),
            'must not have the key "mill" twice',
            id="duplicate-key",
        ),
        pytest.param([{"a": "${spec.count / 0}"}], "CelArithmetic", (0, "a"), "line 1, column 12", id="division"),
        pytest.param(["${1}", "${spec.extra.none}"], "CelNoSuchKey", (1,), "no such key: none", id="missing-key"),
        pytest.param("a ${spec.owner}", "CelNoSuchKey", (), "no such key: owner", id="optional-field-not-there"),
        pytest.param("${'a' + 1}", "CelNoOverload", (), "convert with string()", id="mixed-sum"),
        pytest.param(
            "${spec.?owner}", "CelConversion", (), "must not be an optional value; append .orValue", id="optional"
        ),
        pytest.param("${0.0 / 0.0}", "CelConversion", (), "a finite number", id="not-a-number"),
        pytest.param("${[1.0 / 0.0]}", "CelConversion", (), "a finite number", id="infinite-inside"),
        pytest.param(
            "${b'a'}", "CelConversion", (), "not bytes, a timestamp, a duration or a type; use string()", id="bytes"
        ),
        pytest.param(
            "a${type(1)}", "CelConversion", (), "not bytes, a timestamp, a duration or a type", id="type-in-text"
        ),
        pytest.param(
            "${ {'a': {1: 2}} }", "TemplateKeyType", (), "keys of a map must be strings, but one key is 1", id="int-key"
        ),
        pytest.param("${[1].map(i, {true: i})}", "TemplateKeyType", (), "strings, but one key is true", id="bool-key"),
    ],
)
def test_render_errors_are_reported(data: Any, code: str, path: tuple[str | int, ...], message: str) -> None:
    finding = find_failure(data)

    assert (finding.code.name, finding.path) == (code, (*AT, *path))
    assert finding.message.startswith("spec.resources[0].template")
    assert message in finding.message


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param("${}", "CelSyntax", "the expression is incomplete", id="empty"),
        pytest.param("a ${spec.count +}", "CelSyntax", "is incomplete (line 1, column 13)", id="syntax"),
        pytest.param("a ${spec.count\n = 1}", "CelSyntax", "write == to compare (line 2, column 2)", id="second-line"),
        pytest.param(
            "${nope}",
            "CelUndeclared",
            "the variable 'nope' is not declared; declared variables: build, env,",
            id="undeclared",
        ),
        pytest.param(
            "${target.kind}", "CelUndeclared", "the variable 'target' is not declared", id="not-in-this-place"
        ),
        pytest.param(
            "${spec.nope}", "CelUndefinedField", "spec has no field 'nope'; existing fields: any, ", id="field"
        ),
        pytest.param("${foo(1)}", "CelUnknownFunction", "there is no function foo()", id="function"),
        pytest.param("${[1].reduce((a, i) => a)}", "CelArrowFunction", "list.transformMapEntry(", id="arrow"),
        pytest.param("${HOME}", "CelUndeclared", '; to write ${…} as text, use ${"${…}"}', id="for-a-shell"),
        pytest.param("${PORT:-80}", "CelSyntax", '; to write ${…} as text, use ${"${…}"}', id="for-a-shell-too"),
        pytest.param("${ {name: 1} }", "CelUndeclared", "; write string keys in quotes", id="bare-key"),
        pytest.param("${ {'a': 1,\n b : 2} }", "CelUndeclared", "; write string keys", id="second-bare-key"),
        pytest.param("${" + "1+" * 2100 + "1}", "CelTooLong", "4096 are allowed", id="long"),
        pytest.param("${" + "[" * 200 + "]" * 200 + "}", "CelTooDeep", "nested more than 100 levels deep", id="deep"),
        pytest.param("${a ${b}}", "TemplateNested", "must not contain ${ inside an expression", id="nested"),
        pytest.param("${'a", "TemplateUnterminated", "must close every ${ with } outside of quotes", id="unterminated"),
    ],
)
def test_errors_are_reported_before_a_render(text: str, code: str, message: str) -> None:
    (finding,) = compile_template({"a": [text]}, AT, IN_BASE).field_findings

    assert (finding.code.name, finding.path) == (code, (*AT, "a", 0))
    assert finding.message.startswith("spec.resources[0].template.a[0] ")
    assert message in finding.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("${nope ? 1 : 2}", id="no-key-but-a-condition"),
        pytest.param("${true ? nope : 1}", id="neither-is-a-choice"),
        pytest.param("${spec-nope(1)}", id="another-code"),
        pytest.param("${nope.size() + 1}", id="no-shell"),
    ],
)
def test_unrelated_errors_have_no_hint(text: str) -> None:
    assert not find_failure(text).message.endswith(("in quotes", '}"}'))


def test_all_errors_are_reported_together() -> None:
    data = {"a": "${nope}", "${b": [1, "${c"], "d": "${1}", "e": "${1 +} ${2 +}"}

    template = compile_template(data, AT, IN_BASE)

    assert [(finding.path[len(AT) :], finding.code.name) for finding in template.field_findings] == [
        (("a",), "CelUndeclared"),
        (("${b", 1), "TemplateUnterminated"),
        (("${b",), "TemplateUnterminated"),
        (("e",), "CelSyntax"),
    ]
    with pytest.raises(FieldFindingError) as caught:
        template.render(BINDINGS, ExpressionBudget(LIMITS))
    assert caught.value.field_finding == template.field_findings[0]


@pytest.mark.parametrize(
    ("data", "is_static", "names"),
    [
        pytest.param({"a": ["b", 1]}, True, set(), id="none"),
        pytest.param("${1}", False, set(), id="an-expression-without"),
        pytest.param({"${build.tag}": ["a-${spec.count}", "${env}"]}, False, {"build", "spec", "env"}, id="everywhere"),
        pytest.param("${spec.doors.map(spec, spec.name)}", False, {"spec"}, id="a-macro-binds"),
        pytest.param("${[1].map(env, env)}", False, set(), id="only-bound"),
    ],
)
def test_variables_of_a_template(data: Any, is_static: bool, names: set[str]) -> None:
    template = compile_patch_template(data)

    assert template.is_static is is_static
    assert template.variables == names


def test_results_share_no_values() -> None:
    data = {"static": {"l": [1]}, "made": "${spec.notes}"}
    template = compile_patch_template(data)

    first, second = (template.render(BINDINGS, ExpressionBudget(LIMITS)) for _ in range(2))
    first["static"]["l"].append(2)
    first["made"]["c"] = "x"

    assert second == {"static": {"l": [1]}, "made": {"b": "late", "a": "early"}}
    assert data["static"] == {"l": [1]}
    assert VALUES["notes"] == {"b": "late", "a": "early"}


def test_origins_of_rendered_values() -> None:
    data = {
        "kept": {"a": "plain"},
        "name": "${metadata.name}-x",
        "${metadata.name}": {"b": "static", "c": "${spec.count}"},
        "${build.tag}": "${env.name}",
        "list": ["${omit()}", "plain", " ${spec.notes}\n"],
    }

    value, origins = compile_patch_template(data).render_with_origins(BINDINGS, ExpressionBudget(LIMITS))

    assert value == compile_patch_template(data).render(BINDINGS, ExpressionBudget(LIMITS))
    assert origins == {
        ("name",): ValueOrigin((*AT, "name"), "${metadata.name}-x"),
        ("mill",): ValueOrigin((*AT, "${metadata.name}"), "${metadata.name}"),
        ("mill", "c"): ValueOrigin((*AT, "${metadata.name}", "c"), "${spec.count}"),
        ("2.0",): ValueOrigin((*AT, "${build.tag}"), "${env.name}"),
        ("list", 1): ValueOrigin((*AT, "list", 2), "${spec.notes}"),
    }


def test_origins_list_the_fields_that_expressions_read() -> None:
    data = ["plain", "${spec.count}", "${metadata.name}-${spec.idle.enabled ? build.tag : 'x'}"]

    _, origins = compile_patch_template(data).render_with_origins(BINDINGS, ExpressionBudget(LIMITS))

    assert {path: origin.reads for path, origin in origins.items()} == {
        (1,): {("spec", "count")},
        (2,): {("metadata", "name"), ("spec", "idle", "enabled"), ("build", "tag")},
    }


def test_origin_of_a_template_that_is_one_expression() -> None:
    assert compile_patch_template("${spec.notes}").render_with_origins(BINDINGS, ExpressionBudget(LIMITS))[1] == {
        (): ValueOrigin(AT, "${spec.notes}")
    }


def compile_with_limits(data: Any, limits: ExpressionLimits) -> CompiledTemplate:
    return compile_template(data, AT, build_scope(("spec",), {}, {}, {}, limits))


@pytest.mark.parametrize(
    ("data", "limits"),
    [
        pytest.param(["${[1, 2, 3].map(i, i)}"] * 100, ExpressionLimits(steps=600), id="steps-of-all-expressions"),
        pytest.param(["${spec.text + 'b'}"] * 100, ExpressionLimits(bytes=50_000), id="bytes-of-all-expressions"),
        pytest.param("${spec.text}" * 100, ExpressionLimits(bytes=50_000), id="text-that-is-put-together"),
        pytest.param([["plain"]] * 100, ExpressionLimits(steps=200), id="steps-without-any-expression"),
        pytest.param(["x" * 1000] * 100, ExpressionLimits(bytes=50_000), id="bytes-without-any-expression"),
    ],
)
def test_budget_applies_to_the_whole_render(data: Any, limits: ExpressionLimits) -> None:
    template = compile_with_limits(data, limits)
    bindings = {"spec": {"text": "a" * 500}}

    budget = ExpressionBudget(limits)

    with pytest.raises(FieldFindingError) as caught:
        template.render(bindings, budget)

    assert caught.value.field_finding.code.name == "CelBudget"
    assert re.search(
        "all expressions of the render share this limit|exceeds the budget of the render",
        caught.value.field_finding.message,
    )
    assert budget.steps < 0 or budget.bytes < 0
    assert compile_with_limits("${spec.text}", limits).render(bindings, ExpressionBudget(limits)) == "a" * 500


def test_cost_of_text_is_its_rendered_length() -> None:
    template = compile_with_limits("x${spec.text}", limits := ExpressionLimits(bytes=50_000))

    with pytest.raises(FieldFindingError, match="exceeds the budget"):
        template.render({"spec": {"text": [10**4000] * 10}}, ExpressionBudget(limits))


def test_too_many_expressions_are_refused() -> None:
    data: list[str] = ["${1}"] * MAX_EXPRESSIONS

    assert list_codes(data) == []
    assert list_codes([*data, "${1}"]) == ["CelBudget"]


def test_too_deep_template_is_refused() -> None:
    def build_nested(depth: int) -> Any:
        data: Any = "${1}"
        for _ in range(depth):
            data = [data]
        return data

    assert list_codes(build_nested(MAX_TEMPLATE_DEPTH)) == []
    assert list_codes(build_nested(MAX_TEMPLATE_DEPTH + 1)) == ["CelTooDeep"]
    assert list_codes(build_nested(50_000)) == ["CelTooDeep"]


def test_variable_without_a_value_is_reported_on_use() -> None:
    template = compile_template("${spec.count > 1 ? 'a' : instanceId}", AT, IN_PATCH)

    assert template.render({"spec": {"count": 2}}, ExpressionBudget(LIMITS)) == "a"
    with pytest.raises(FieldFindingError, match="the variable 'instanceId' has no value in this expression"):
        template.render({"spec": {"count": 1}}, ExpressionBudget(LIMITS))


def test_deep_values_in_deep_templates() -> None:
    deep: Any = "end"
    for _ in range(120):
        deep = [deep]
    data: Any = ["${spec.extra}", "<${spec.extra}>"]
    for _ in range(MAX_TEMPLATE_DEPTH - 1):
        data = {"a": data}

    result = render_patch_template(data, extra=deep)

    for _ in range(MAX_TEMPLATE_DEPTH - 1):
        result = result["a"]
    assert result == [deep, f'<{"[" * 120}"end"{"]" * 120}>']
