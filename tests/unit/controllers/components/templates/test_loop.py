"""Tests of loops in templates."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cel import ExpressionBudget, ExpressionLimits
from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.templates.directives import compile_loop
from reconciler.controllers.components.templates.template import RESERVED_VARIABLES, compile_template
from tests.unit.controllers.components.templates.template_helpers import BINDINGS, IN_BASE, LIMITS

AT = ("spec", "resources", 0)


@pytest.mark.parametrize(
    ("for_each", "items"),
    [
        pytest.param("${[3, 1, 2]}", [3, 1, 2], id="list-in-its-order"),
        pytest.param(
            "${spec.notes}", [{"key": "a", "value": "early"}, {"key": "b", "value": "late"}], id="map-by-sorted-keys"
        ),
        pytest.param("${spec.doors.filter(d, d.open).map(d, d.name)}", ["main"], id="filtered"),
        pytest.param("${[]}", [], id="empty-list"),
        pytest.param("${ {} }", [], id="empty-map"),
        pytest.param(["a", "${spec.count}", "${omit()}"], ["a", 3], id="written-list"),
        pytest.param({"b": 1, "a": 2}, [{"key": "a", "value": 2}, {"key": "b", "value": 1}], id="written-map"),
    ],
)
def test_items(for_each: Any, items: list[Any]) -> None:
    loop = compile_loop(for_each, None, AT, IN_BASE)

    rounds = list(loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS)))

    assert loop.field_findings == ()
    assert [item["item"] for item in rounds] == items
    assert all({**item, "item": 0} == {**BINDINGS, "item": 0} for item in rounds)


def test_missing_loop_has_one_iteration() -> None:
    loop = compile_loop(None, None, AT, IN_BASE)

    assert (list(loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS))), loop.scope, loop.variables) == (
        [BINDINGS],
        IN_BASE,
        frozenset(),
    )


def test_loop_variable_with_a_custom_name() -> None:
    loop = compile_loop("${spec.doors}", "door", AT, IN_BASE)
    template = compile_template("${metadata.name}-${door.name}", AT, loop.scope)

    values = [
        template.render(bindings, ExpressionBudget(LIMITS))
        for bindings in loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS))
    ]

    assert values == ["mill-main", "mill-side"]
    assert loop.variables == {"spec"}
    assert compile_template("${item}", AT, loop.scope).field_findings[0].code.name == "CelUndeclared"


@pytest.mark.parametrize("name", sorted(RESERVED_VARIABLES))
def test_loop_variable_cannot_hide_another_variable(name: str) -> None:
    (finding,) = compile_loop("${[1]}", name, AT, IN_BASE).field_findings

    assert (finding.code.name, finding.path) == ("LoopVarReserved", (*AT, "var"))
    assert f'but is "{name}"' in finding.message


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a-b", id="hyphen"),
        pytest.param("a.b", id="dot"),
        pytest.param("1a", id="digit-first"),
        pytest.param("", id="empty"),
        pytest.param("ä", id="no-letter-of-cel"),
        pytest.param("in", id="operator"),
        pytest.param("true", id="constant"),
        pytest.param("for", id="reserved-word"),
        pytest.param(5, id="number"),
        pytest.param(["a"], id="list"),
        pytest.param({"a": "b"}, id="mapping"),
    ],
)
def test_invalid_loop_variable_names(name: Any) -> None:
    (finding,) = compile_loop("${[1]}", name, AT, IN_BASE).field_findings

    assert (finding.code.name, finding.path) == ("CelSyntax", (*AT, "var"))


@pytest.mark.parametrize("name", ["item", "_", "string", "Port2", "spec2"])
def test_valid_loop_variable_names(name: str) -> None:
    loop = compile_loop("${[7]}", name, AT, IN_BASE)

    assert loop.field_findings == ()
    assert [iter_binding[name] for iter_binding in loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS))] == [7]


@pytest.mark.parametrize(
    ("for_each", "message"),
    [
        pytest.param("doors", 'but is "doors"', id="text"),
        pytest.param("a${[1]}", 'but is "a${[1]}"', id="text-with-an-expression"),
        pytest.param(3, "but is 3", id="number"),
        pytest.param(True, "but is true", id="bool"),
    ],
)
def test_constant_that_is_no_list_is_reported_before_rendering(for_each: Any, message: str) -> None:
    (finding,) = compile_loop(for_each, None, AT, IN_BASE).field_findings

    assert (finding.code.name, finding.path) == ("ForEachType", (*AT, "forEach"))
    assert finding.message.endswith(message)


@pytest.mark.parametrize(
    ("for_each", "message"),
    [
        pytest.param("${metadata.name}", 'but is "mill"', id="text"),
        pytest.param("${spec.count}", "but is 3", id="number"),
        pytest.param("${null}", "but is null", id="null"),
        pytest.param("${omit()}", "but is omit()", id="omit"),
    ],
)
def test_result_that_is_no_list_is_reported(for_each: str, message: str) -> None:
    loop = compile_loop(for_each, None, AT, IN_BASE)

    with pytest.raises(FieldFindingError) as caught:
        list(loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS)))

    assert (caught.value.field_finding.code.name, caught.value.field_finding.path) == ("ForEachType", (*AT, "forEach"))
    assert caught.value.field_finding.message.endswith(message)


def test_template_in_an_invalid_loop_is_compiled() -> None:
    loop = compile_loop("${[1}", "spec", AT, IN_BASE)

    assert [finding.code.name for finding in loop.field_findings] == ["CelSyntax", "LoopVarReserved"]
    assert compile_template("${spec.nope}", AT, loop.scope).field_findings == ()
    with pytest.raises(FieldFindingError):
        list(loop.iter_bindings(BINDINGS, ExpressionBudget(LIMITS)))


@pytest.mark.parametrize(
    "for_each",
    [
        pytest.param("${spec.many}", id="given"),
        pytest.param("${spec.many.map(i, [i, i])}", id="made"),
        pytest.param("${spec.many.map(i, spec.many)}", id="squared"),
    ],
)
def test_million_items_exceed_the_budget(for_each: str) -> None:
    bindings = {"spec": {"many": list(range(1_000_000))}}
    loop = compile_loop(for_each, None, AT, IN_BASE.with_variable("spec"))
    template, budget = compile_template("${item}", AT, loop.scope), ExpressionBudget(LIMITS)

    with pytest.raises(FieldFindingError) as caught:
        [template.render(inner, budget) for inner in loop.iter_bindings(bindings, budget)]

    assert caught.value.field_finding.code.name == "CelBudget"


def test_empty_iterations_have_a_cost() -> None:
    limits = ExpressionLimits(bytes=100_000)
    loop = compile_loop("${spec.many}", None, AT, IN_BASE.with_variable("spec"))

    with pytest.raises(FieldFindingError) as caught:
        list(loop.iter_bindings({"spec": {"many": [0] * 1000}}, ExpressionBudget(limits)))

    assert caught.value.field_finding.path == (*AT, "forEach")
    assert "creates more than 100000 bytes" in caught.value.field_finding.message
