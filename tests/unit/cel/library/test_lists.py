from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import EMPTY_OPTIONAL, CelEnvironment, CelOptional, ExpressionError
from tests.support.examples import examples

X = CelEnvironment(frozenset({"x"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[1, [2, [3, [4]]]].flatten()", [1, 2, [3, [4]]], id="flatten"),
        pytest.param("[1, [2, [3, [4]]]].flatten(2)", [1, 2, 3, [4]], id="flatten-deeper"),
        pytest.param("[[1]].flatten(0)", [[1]], id="flatten-not-at-all"),
        pytest.param(
            "[1, 1.0, 1u, true, '1', 'a', 'a', [1], [1.0]].distinct()", [1, True, "1", "a", [1]], id="distinct"
        ),
        pytest.param("[3, 1, 2].sort()", [1, 2, 3], id="sort"),
        pytest.param("['b', 'B', 'ä', 'a'].sort()", ["B", "a", "b", "ä"], id="sort-by-code-point"),
        pytest.param("[].sort()", [], id="sort-nothing"),
        pytest.param("[1, 2, 3].slice(1, 3)", [2, 3], id="slice"),
        pytest.param("[1, 2, 3].slice(3, 3)", [], id="slice-behind-the-end"),
        pytest.param("[1, 2].reverse()", [2, 1], id="reverse"),
        pytest.param("[1, 2].first()", CelOptional(is_present=True, value=1), id="first"),
        pytest.param("[1, 2].last().value()", 2, id="last"),
        pytest.param("[].first()", EMPTY_OPTIONAL, id="first-of-nothing"),
        pytest.param("lists.range(3)", [0, 1, 2], id="range"),
        pytest.param("sets.contains([1, 'a'], [1.0])", True, id="sets-contain"),
        pytest.param("sets.contains([], [])", True, id="sets-contain-nothing"),
        pytest.param("sets.equivalent([1, 2], [2u, 1, 1])", True, id="sets-equivalent"),
        pytest.param("sets.intersects([[1]], [[2], [1]])", True, id="sets-intersect"),
        pytest.param("sets.intersects([], [])", False, id="nothing-intersects"),
        pytest.param("[1, ?optional.none(), ?optional.of(2)]", [1, 2], id="optional-items"),
        pytest.param("optional.unwrap([optional.of(1), optional.none()])", [1], id="unwrap"),
        pytest.param("[optional.of(1)].unwrapOpt()", [1], id="unwrap-as-a-method"),
        pytest.param("x[?'a'].orValue(x.?b.c.orValue(3))", 3, id="optional-paths"),
        pytest.param("x.?l[0].or(optional.of(1)).value()", 5, id="through-an-optional"),
        pytest.param("x.?l.optMap(l, size(l)).orValue(0)", 1, id="opt-map"),
        pytest.param("x.?l.optFlatMap(l, l[?7]).hasValue()", False, id="opt-flat-map"),
        pytest.param("optional.of(1).orValue(1 / 0)", 1, id="alternatives-are-lazy"),
        pytest.param("optional.ofNonZeroValue({}).hasValue()", False, id="zero-values"),
        pytest.param("optional.ofNonZeroValue(optional.none()).hasValue()", True, id="an-optional-is-no-zero-value"),
        pytest.param("math.greatest(1, 2.5, 2u) == math.greatest([1, 2.5, 2u])", True, id="greatest"),
        pytest.param("math.least(3, -1.5)", -1.5, id="least"),
        pytest.param(
            "[math.round(2.5), math.round(-2.5), math.round(0.4999999999999999)]", [3.0, -3.0, 0.0], id="round"
        ),
        pytest.param("[math.ceil(-0.5), math.floor(-0.5), math.trunc(-1.9)]", [0.0, -1.0, -1.0], id="roundings"),
        pytest.param("math.bitShiftRight(-1, 60) + math.bitShiftLeft(-1, 63)", 15 - 2**63, id="shifts"),
        pytest.param("math.bitShiftLeft(1, 64)", 0, id="shift-out"),
        pytest.param("math.bitNot(0) + math.bitAnd(6, 3) + math.bitOr(4, 1) + math.bitXor(7, 2)", 11, id="bits"),
    ],
)
def test_lists_sets_optionals_and_math(text: str, expected: Any) -> None:
    assert X.compile(text).evaluate({"x": {"l": [5]}}) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("[1, 1.5].sort()", "CelNoOverload", id="sort-of-two-types"),
        pytest.param("[[1]].sort()", "CelNoOverload", id="sort-of-lists"),
        pytest.param("[0.0 / 0.0, 1.0].sort()", "CelArgument", id="sort-of-nan"),
        pytest.param("[1].slice(0, 2)", "CelIndex", id="slice"),
        pytest.param("[1].flatten(-1)", "CelArgument", id="flatten"),
        pytest.param("lists.range(-1)", "CelArgument", id="range"),
        pytest.param("math.greatest([])", "CelArgument", id="greatest-of-nothing"),
        pytest.param("math.least(['a'])", "CelNoOverload", id="least-of-texts"),
        pytest.param("math.ceil(1)", "CelNoOverload", id="rounding-an-int"),
        pytest.param("math.abs(-9223372036854775808)", "CelArithmetic", id="absolute-least-int"),
        pytest.param("math.bitShiftLeft(1, -1)", "CelArgument", id="shift"),
        pytest.param("optional.unwrap([1])", "CelNoOverload", id="unwrap"),
        pytest.param("optional.of(1).or(2).or(optional.none()) || 1.or(optional.none())", "CelNoOverload", id="or"),
        pytest.param("optional.of(1).optFlatMap(v, v)", "CelNoOverload", id="flat-map-of-no-optional"),
    ],
)
def test_lists_sets_optionals_and_math_errors(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        X.compile(text).evaluate({})

    assert caught.value.code == code


@settings(max_examples=examples(100), deadline=None)
@given(st.one_of(st.lists(st.integers(-5, 5)), st.lists(st.text("abä", max_size=3)), st.lists(st.booleans())))
def test_sort_and_distinct_are_equal_to_those_of_python(elements: list[Any]) -> None:
    program = X.compile("[x.sort(), x.distinct(), x.sortBy(e, e)]")

    assert program.evaluate({"x": elements}) == [sorted(elements), list(dict.fromkeys(elements)), sorted(elements)]
