from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, ExpressionError, Uint
from tests.support.examples import examples

X = CelEnvironment(frozenset({"x"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x.map(k, k)", ["a", "b", "c"], id="map-has-keys"),
        pytest.param("x.map(k, x[k] > 1, k)", ["a", "b"], id="map-with-a-condition"),
        pytest.param("x.filter(k, k != 'b')", ["a", "c"], id="filter-has-keys"),
        pytest.param("x.transformList(k, v, k + string(v))", ["a2", "b3", "c1"], id="transform-list"),
        pytest.param("x.transformList(k, v, v > 1, k)", ["a", "b"], id="transform-list-with-a-condition"),
        pytest.param("x.transformMap(k, v, v + 1)", {"a": 3, "b": 4, "c": 2}, id="transform-map"),
        pytest.param("x.transformMapEntry(k, v, {string(v): k})", {"2": "a", "3": "b", "1": "c"}, id="entries"),
        pytest.param("x.transformMapEntry(k, v, v == 1, {k: v})", {"c": 1}, id="entries-with-a-condition"),
        pytest.param("['p', 'q'].transformMap(i, v, v)", {0: "p", 1: "q"}, id="lists-have-indices"),
        pytest.param("['p', 'q'].transformMapEntry(i, v, {v: i})", {"p": 0, "q": 1}, id="map-from-a-list"),
        pytest.param("x.all(k, v, k < 'd' && v > 0)", True, id="all-of-two"),
        pytest.param("x.exists(k, v, k == 'c' && v == 1)", True, id="exists-of-two"),
        pytest.param("x.exists_one(k, v, v > 1)", False, id="exists-one-of-two"),
        pytest.param("x.existsOne(k, k == 'a')", True, id="exists-one-by-its-other-name"),
        pytest.param("[1, 2, 3].exists(i, 1 / (i - 2) == 1)", True, id="exists-absorbs"),
        pytest.param("[1, 2, 3].all(i, 1 / (i - 2) == 1)", False, id="all-absorbs"),
        pytest.param("[3, 1, 2].sortBy(i, -i)", [3, 2, 1], id="sort-by"),
        pytest.param("[[2, 'b'], [1, 'z'], [2, 'a']].sortBy(p, p[0]).map(p, p[1])", ["z", "b", "a"], id="stable"),
        pytest.param("[1, 2].map(i, [3, 4].map(j, i * j))", [[3, 4], [6, 8]], id="a-loop-in-a-loop"),
        pytest.param("[1, 2].map(i, [i].map(i, i + 1)[0] + i)", [3, 5], id="a-variable-hides-another"),
        pytest.param("cel.bind(y, 2, [1, 2].map(i, i * y))", [2, 4], id="bind"),
        pytest.param("[1, 2].map(i, cel.bind(y, i * 10, y + i))", [11, 22], id="bind-in-a-loop"),
        pytest.param("cel.bind(y, 1 / 0, false && y == 1)", False, id="unused-bound-variable"),
    ],
)
def test_loops(text: str, expected: Any) -> None:
    assert X.compile(text).evaluate({"x": {"b": 3, "c": 1, "a": 2}}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[1, 0].map(i, 1 / i)", "division by zero", id="map-does-not-absorb"),
        pytest.param("[1, 0].exists(i, 1 / i == 2)", "division by zero", id="nothing-decides"),
        pytest.param("[1, 2].transformMapEntry(i, v, {'a': v})", "the map has the key a twice", id="twice-a-key"),
        pytest.param("[1].transformMapEntry(i, v, v)", "requires a map for each element", id="no-map"),
        pytest.param("[1, 'a'].sortBy(i, i)", "cannot sort int and string in one list", id="sort"),
    ],
)
def test_loop_errors(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        X.compile(text).evaluate({})


def test_omitted_elements_and_entries_are_removed() -> None:
    environment = CelEnvironment(openchoreo_functions=True)
    text = """{'a': omit(), 'b': [1, omit()].size(), 'c': [1, 2].map(i, i == 1 ? omit() : i),
        'd': {'x': 1, 'y': 2}.transformMap(k, v, k == 'x' ? omit() : v)}"""

    assert environment.compile(text).evaluate({}) == {"b": 1, "c": [2], "d": {"y": 2}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x.transformList(k, v, [k, v])", [[False, "f"], [True, "t"], [2, "n"]], id="bound-map"),
        pytest.param("x.all(k, v, x[k] == v)", True, id="values-of-a-bound-map"),
        pytest.param("{true: 1, 1: 2}.transformList(k, v, [k, v])", [[True, 1], [1, 2]], id="map-literal"),
    ],
)
def test_two_variables_with_bool_keys(text: str, expected: Any) -> None:
    result = X.compile(text).evaluate({"x": {2: "n", True: "t", False: "f"}})

    assert repr(result) == repr(expected)


@settings(max_examples=examples(60), deadline=None)
@given(st.permutations(["b", "a", "ä", "", "Z", "aa", True, False, 3, -1, Uint(2)]))
def test_map_order_does_not_depend_on_the_input_order(keys: list[Any]) -> None:
    keys_in_order = X.compile("x.map(k, k)").evaluate({"x": dict.fromkeys(keys)})

    assert keys_in_order == [False, True, -1, 2, 3, "", "Z", "a", "aa", "b", "ä"]
    assert [type(key) for key in keys_in_order[:5]] == [bool, bool, int, Uint, int]
