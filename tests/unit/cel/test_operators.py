from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, ExpressionError
from tests.support.examples import examples

XY = CelEnvironment(frozenset({"x", "y"}))
INTS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-10, 10))


@settings(max_examples=examples(150), deadline=None)
@given(INTS, INTS, st.sampled_from("+-*/%"))
def test_int_results_are_exact_or_an_error(x: int, y: int, operator: str) -> None:
    exact = {
        "+": lambda: x + y,
        "-": lambda: x - y,
        "*": lambda: x * y,
        "/": lambda: abs(x) // abs(y) * (1 if x * y >= 0 else -1),
        "%": lambda: int(math.copysign(1, x)) * (abs(x) % abs(y)),
    }
    program = XY.compile(f"x {operator} y")

    if (operator in "/%" and y == 0) or not -(2**63) <= exact[operator]() < 2**63:
        with pytest.raises(ExpressionError) as caught:
            program.evaluate({"x": x, "y": y})
        assert caught.value.code == "CelArithmetic"
    else:
        assert program.evaluate({"x": x, "y": y}) == exact[operator]()


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(max_size=1), st.booleans()), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(150), deadline=None)
@given(PLAIN, PLAIN)
def test_equality_is_reflexive_and_symmetric(x: Any, y: Any) -> None:
    program = XY.compile("[x == x, x == y, y == x, [x] == [y], {'k': x} == {'k': y}, x != y, x in [y]]")

    same, value, other, in_lists, in_maps, unequal, among = program.evaluate({"x": x, "y": y})

    assert same
    assert value == other == in_lists == in_maps == among == (not unequal)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("true == 1", False, id="bool-and-int"),
        pytest.param("[true] == [1]", False, id="bool-and-int-in-lists"),
        pytest.param("{'a': true} == {'a': 1}", False, id="bool-and-int-in-maps"),
        pytest.param("{true: 1} == {1: 1}", False, id="bool-and-int-as-keys"),
        pytest.param("1 in {true: 1}", False, id="int-among-bool-keys"),
        pytest.param("true in {true: 1}", True, id="bool-key"),
        pytest.param("{1: 'a'}[1u] + {1u: 'b'}[1.0]", "ab", id="numbers-as-keys"),
        pytest.param("1 == 1.0 && 1u == 1 && [1] == [1.0]", True, id="numbers"),
        pytest.param("x == x", False, id="nan"),
        pytest.param("[x] == [x]", False, id="nan-in-a-list"),
        pytest.param("x < 1.0 || x >= 1.0", False, id="nan-has-no-order"),
        pytest.param("null == false || null == 0 || null == ''", False, id="null-is-only-null"),
        pytest.param("1 < 1.5 && 2u > 1 && -1 < 0u", True, id="order-of-numbers"),
        pytest.param("1.0 / 0.0 > 1.0 && -1.0 / 0.0 < 1.0", True, id="infinities"),
        pytest.param("type(1) == int && type(1u) != int && type(type(1)) == type", True, id="types"),
        pytest.param("optional.of([1]) == optional.of([1.0])", True, id="optionals"),
        pytest.param("1 / 0 == 1 || true", True, id="true-overrides-an-earlier-error"),
        pytest.param("1 / 0 == 1 && false", False, id="false-overrides-an-earlier-error"),
        pytest.param(
            "{?'a': optional.none(), ?'b': optional.of(1), 'c': 2} == {'b': 1, 'c': 2}", True, id="optional-entries"
        ),
        pytest.param("[?optional.none(), ?optional.of(1), 2] == [1, 2]", True, id="optional-items"),
        pytest.param("optional.none() == optional.of(null)", False, id="empty-optional"),
        pytest.param("timestamp(0) + duration('1h') - duration('30m') < timestamp(3600)", True, id="times"),
    ],
)
def test_comparisons(text: str, expected: Any) -> None:
    assert XY.compile(text).evaluate({"x": math.nan}) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1 < '1'", id="int-and-string"),
        pytest.param("[1] < [2]", id="lists"),
        pytest.param("null < null", id="nulls"),
        pytest.param("true < 1", id="bool-and-int"),
        pytest.param("'a' in 'abc'", id="in-a-string"),
        pytest.param("[1] in {1: 1}", id="a-list-as-key"),
        pytest.param("1 - 1u", id="int-and-uint"),
        pytest.param("-1u", id="minus-uint"),
        pytest.param("1.5 % 1.0", id="remainder-of-doubles"),
        pytest.param("timestamp(0) + timestamp(0)", id="timestamps"),
        pytest.param("{'a': 1} + {'b': 2}", id="maps"),
        pytest.param("true + true", id="bools"),
        pytest.param("'a' * 3", id="repetition"),
    ],
)
def test_missing_overload_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        XY.compile(text).evaluate({})

    assert caught.value.code == "CelNoOverload"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("size({1: 'a', true: 'b'})", 2, id="size"),
        pytest.param("{1: 'a', true: 'b'}[true]", "b", id="index-by-bool"),
        pytest.param("{1: 'a', true: 'b'}[1]", "a", id="index-by-int"),
        pytest.param("{1u: 'a', true: 'b'}[1.0]", "a", id="index-by-double"),
        pytest.param("{0: 'a', false: 'b'}[false]", "b", id="zero-and-false"),
        pytest.param("1 in {true: 'b'}", False, id="no-int-in"),
        pytest.param("true in {1: 'b'}", False, id="no-bool-in"),
        pytest.param("{true: 'b'} == {1: 'b'}", False, id="not-equal"),
        pytest.param("{1: 'a', true: 'b'} == {true: 'b', 1: 'a'}", True, id="equal"),
        pytest.param("{1: 'a', true: 'b'}.map(k, string(k))", ["true", "1"], id="keys-in-order"),
        pytest.param("{true: 'b'}.map(k, k)", [True], id="a-key-is-a-bool"),
        pytest.param("{1: 'a', true: 'b'}.transformMap(k, v, v + '!')[true]", "b!", id="transformed"),
        pytest.param("{1: 'a', true: 'b'}.transformMap(k, v, v + '!')[1]", "a!", id="transformed-int"),
        pytest.param("'%s'.format([{true: 'b'}])", "{true: b}", id="formatted"),
        pytest.param("{true: 'b'}", {True: "b"}, id="as-a-result"),
    ],
)
def test_boolean_keys_differ_from_numbers(expression: str, expected: object) -> None:
    result = XY.compile(expression).evaluate({})

    assert result == expected
    assert type(result) is type(expected)


def test_duplicate_boolean_key_is_shown_as_written() -> None:
    with pytest.raises(ExpressionError) as caught:
        XY.compile("{true: 'a', true: 'b'}").evaluate({})

    assert caught.value.code == "CelDuplicateKey"
    assert "the key true twice" in str(caught.value)
