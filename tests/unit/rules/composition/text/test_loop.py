"""Loops (openchoreo 5.3, 6.2)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.expressions import Budget, Limits
from reconciler.rules.composition.faults import FaultError
from reconciler.rules.composition.text import RESERVED, compile_loop, compile_template
from tests.unit.rules.composition.text.text_world import BINDINGS, IN_BASE, LIMITS

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

    rounds = list(loop.rounds(BINDINGS, Budget(LIMITS)))

    assert loop.faults == ()
    assert [one["item"] for one in rounds] == items
    assert all({**one, "item": 0} == {**BINDINGS, "item": 0} for one in rounds)


def test_without_a_loop_there_is_one_round() -> None:
    loop = compile_loop(None, None, AT, IN_BASE)

    assert (list(loop.rounds(BINDINGS, Budget(LIMITS))), loop.scope, loop.names) == ([BINDINGS], IN_BASE, frozenset())


def test_a_variable_of_ones_own() -> None:
    loop = compile_loop("${spec.doors}", "door", AT, IN_BASE)
    template = compile_template("${metadata.name}-${door.name}", AT, loop.scope)

    made = [template.render(bindings, Budget(LIMITS)) for bindings in loop.rounds(BINDINGS, Budget(LIMITS))]

    assert made == ["mill-main", "mill-side"]
    assert loop.names == {"spec"}
    assert compile_template("${item}", AT, loop.scope).faults[0].code.name == "CelUndeclared"


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_no_variable_hides_another(name: str) -> None:
    (fault,) = compile_loop("${[1]}", name, AT, IN_BASE).faults

    assert (fault.code.name, fault.path) == ("LoopVarReserved", (*AT, "var"))
    assert fault.message.endswith(f'not "{name}"')


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
def test_variables_that_cel_cannot_name(name: Any) -> None:
    (fault,) = compile_loop("${[1]}", name, AT, IN_BASE).faults

    assert (fault.code.name, fault.path) == ("CelSyntax", (*AT, "var"))


@pytest.mark.parametrize("name", ["item", "_", "string", "Port2", "spec2"])
def test_variables_that_may_be(name: str) -> None:
    loop = compile_loop("${[7]}", name, AT, IN_BASE)

    assert loop.faults == ()
    assert [one[name] for one in loop.rounds(BINDINGS, Budget(LIMITS))] == [7]


@pytest.mark.parametrize(
    ("for_each", "message"),
    [
        pytest.param("doors", 'not "doors"', id="text"),
        pytest.param("a${[1]}", 'not "a${[1]}"', id="text-with-an-expression"),
        pytest.param(3, "not 3", id="number"),
        pytest.param(True, "not true", id="bool"),
    ],
)
def test_what_can_never_be_walked_through(for_each: Any, message: str) -> None:
    (fault,) = compile_loop(for_each, None, AT, IN_BASE).faults

    assert (fault.code.name, fault.path) == ("ForEachType", (*AT, "forEach"))
    assert fault.message.endswith(message)


@pytest.mark.parametrize(
    ("for_each", "message"),
    [
        pytest.param("${metadata.name}", 'not "mill"', id="text"),
        pytest.param("${spec.count}", "not 3", id="number"),
        pytest.param("${null}", "not null", id="null"),
        pytest.param("${omit()}", "not omit()", id="omit"),
    ],
)
def test_what_turns_out_to_be_something_else(for_each: str, message: str) -> None:
    loop = compile_loop(for_each, None, AT, IN_BASE)

    with pytest.raises(FaultError) as caught:
        list(loop.rounds(BINDINGS, Budget(LIMITS)))

    assert (caught.value.fault.code.name, caught.value.fault.path) == ("ForEachType", (*AT, "forEach"))
    assert caught.value.fault.message.endswith(message)


def test_what_is_inside_of_a_broken_loop_is_compiled_nevertheless() -> None:
    loop = compile_loop("${[1}", "spec", AT, IN_BASE)

    assert [fault.code.name for fault in loop.faults] == ["CelSyntax", "LoopVarReserved"]
    assert compile_template("${spec.nope}", AT, loop.scope).faults == ()
    with pytest.raises(FaultError):
        list(loop.rounds(BINDINGS, Budget(LIMITS)))


@pytest.mark.parametrize(
    "for_each",
    [
        pytest.param("${spec.many}", id="given"),
        pytest.param("${spec.many.map(i, [i, i])}", id="made"),
        pytest.param("${spec.many.map(i, spec.many)}", id="squared"),
    ],
)
def test_a_million_items_end_in_a_fault(for_each: str) -> None:
    bindings = {"spec": {"many": list(range(1_000_000))}}
    loop = compile_loop(for_each, None, AT, IN_BASE.including("spec"))
    template, budget = compile_template("${item}", AT, loop.scope), Budget(LIMITS)

    with pytest.raises(FaultError) as caught:
        [template.render(inner, budget) for inner in loop.rounds(bindings, budget)]

    assert caught.value.fault.code.name == "CelBudget"


def test_rounds_cost_something_even_when_nothing_is_done_in_them() -> None:
    limits = Limits(bytes=100_000)
    loop = compile_loop("${spec.many}", None, AT, IN_BASE.including("spec"))

    with pytest.raises(FaultError) as caught:
        list(loop.rounds({"spec": {"many": [0] * 1000}}, Budget(limits)))

    assert caught.value.fault.path == (*AT, "forEach")
    assert "makes more than 100000 bytes" in caught.value.fault.message
