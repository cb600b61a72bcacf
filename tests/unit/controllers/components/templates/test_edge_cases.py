"""Tests of edge cases of templates. The number in an id or docstring is the number of the edge case."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cel import ExpressionBudget
from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.templates.directives import compile_condition, compile_loop
from reconciler.controllers.components.templates.template import compile_template
from tests.unit.controllers.components.templates.template_helpers import (
    BINDINGS,
    IN_BASE,
    LIMITS,
    find_failure,
    render_patch_template,
)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param({"a": "${spec.count}\n"}, {"a": 3}, id="row-12-a-block-scalar-keeps-the-type"),
        pytest.param("${spec.count}${metadata.name}", "3mill", id="row-13-two-expressions-are-text"),
        pytest.param('${"{"}', "{", id="row-14-an-opening-brace"),
        pytest.param('${"}"}', "}", id="row-14-a-closing-brace"),
        pytest.param(
            {"x": "${has(spec.owner) ? spec.owner : omit()}", "y": 1}, {"y": 1}, id="row-16-a-key-that-is-omitted"
        ),
        pytest.param("at ${1000000}", "at 1000000", id="row-18-a-million"),
        pytest.param("at ${1000000.0}", "at 1000000", id="row-18-a-million-as-a-double"),
        pytest.param("${spec.extra.text}", "${evil}", id="row-54-a-value-is-no-template"),
        pytest.param(
            {"${spec.extra.text}": "a ${spec.extra.text}"}, {"${evil}": "a ${evil}"}, id="row-54-nor-within-text"
        ),
        pytest.param("${spec.extra}", {"text": "${evil}"}, id="row-54-nor-inside-of-a-map"),
    ],
)
def test_edge_cases(data: Any, value: Any) -> None:
    assert render_patch_template(data, extra={"text": "${evil}"}) == value


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param({"${spec.count}": 1}, "TemplateKeyType", id="row-15-a-key-that-is-an-int"),
        pytest.param("prefix-${omit()}", "TemplateOmitInText", id="row-17-omit-in-text"),
        pytest.param("${spec.count + 1.5}", "CelNoOverload", id="row-19-int-and-double"),
    ],
)
def test_edge_cases_that_are_errors(data: Any, code: str) -> None:
    assert find_failure(data).code.name == code


def test_loop_over_a_map_has_its_sorted_keys() -> None:
    """Row 20: the items of a map are its sorted entries."""
    loop = compile_loop("${ {'b': 1, 'a': 2} }", None, ("spec",), IN_BASE)

    assert [iter_binding["item"]["key"] for iter_binding in loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS))] == [
        "a",
        "b",
    ]


def test_loop_over_a_string_is_an_error() -> None:
    """Row 21: a loop does not iterate over the characters of a string."""
    loop = compile_loop("${metadata.name}", None, ("spec",), IN_BASE)

    with pytest.raises(FieldFindingError) as caught:
        list(loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS)))
    assert caught.value.field_finding.code.name == "ForEachType"


def test_condition_cannot_use_the_loop_variable() -> None:
    """Row 22: the condition is evaluated outside of the loop."""
    condition = compile_condition("${item.open}", ("spec", "includeWhen"), IN_BASE)

    assert [finding.code.name for finding in condition.field_findings] == ["CelUndeclared"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("${metadata.name}-pvc", "mill-pvc", id="text"),
        pytest.param("${spec.doors.filter(d, d.open)}", [{"name": "main", "number": 7000, "open": True}], id="list"),
        pytest.param("${spec.idle.enabled ? 0 : 1}", 1, id="int"),
        pytest.param(
            '${spec.doors.map(d, {"name": d.name, "port": d.number})}',
            [{"name": "main", "port": 7000}, {"name": "side", "port": 7001}],
            id="map-with-keys-in-quotes",
        ),
        pytest.param(
            "${spec.pages.transformMapEntry(i, p, {p.name: p.content})}",
            {"one.html": "first", "two.html": "second"},
            id="what-reduce-was-meant-to-do",
        ),
    ],
)
def test_example_expressions(text: str, value: Any) -> None:
    result = render_patch_template(text)

    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        pytest.param(
            "${spec.doors.map(d, {name: d.name, port: d.number})}",
            "CelUndeclared",
            "the variable 'name' is not declared",
            id="keys-without-quotes",
        ),
        pytest.param(
            "${spec.pages.reduce((acc, p) => {acc[p.name] = p.content; return acc;}, {})}",
            "CelArrowFunction",
            "transformMapEntry",
            id="reduce",
        ),
    ],
)
def test_example_expressions_that_are_invalid_cel(text: str, code: str, hint: str) -> None:
    (finding,) = compile_template(text, ("spec",), IN_BASE).field_findings

    assert finding.code.name == code
    assert hint in finding.message
