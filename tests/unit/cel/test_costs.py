"""Tables of results, errors and costs: the exact steps and bytes of each operator, macro and literal."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cel import CelEnvironment, CelOptional, ExpressionBudget, ExpressionError, ExpressionLimits

LIMITS = ExpressionLimits(steps=1_000, bytes=10_000)
X = CelEnvironment(frozenset({"x"}), openchoreo_functions=True, limits=LIMITS)
VALUES = {
    "n": 2,
    "s": "ab",
    "t": True,
    "l": [1, 2, 3],
    "sl": ["b", "a", "c"],
    "m": {"b": 1, "a": 2},
    "d": {"k": {"b": "v"}},
    "o": CelOptional(True, {"b": 5}),
    "e": CelOptional(False),
}

COSTS: tuple[tuple[str, Any, int, int], ...] = (
    ("x.n", 2, 3, 0),
    ("x.s", "ab", 3, 2),
    ("x.d.k.b", "v", 5, 1),
    ("x.d['k'].b", "v", 6, 1),
    ("x.l[1]", 2, 5, 0),
    ("x.s + x.s", "abab", 7, 8),
    ("x.s + 'é'", "abé", 5, 9),
    ("'a' + x.s + x.s", "aabab", 8, 13),
    ("x.l + x.l", [1, 2, 3, 1, 2, 3], 14, 224),
    ("x.n + 1 > x.n * 2 - 1", False, 13, 0),
    ("x.s == 'ab' && x.n != 3 || x.t", True, 15, 0),
    ("x.s in ['q', 'ab', 'z']", True, 10, 88),
    ("x.s in ['q', 'ab', 'ab']", True, 10, 88),
    ("x.s in ['q', 'z']", False, 9, 80),
    ("x.n in ['q', 'z']", False, 9, 80),
    ("x.s in ['q', x.s]", True, 11, 80),
    ("2 in x.l", True, 7, 0),
    ("'a' in x.m", True, 5, 0),
    ("x.t ? x.s : x.l", "ab", 10, 2),
    ("[x.n, x.s]", [2, "ab"], 9, 162),
    ("[?x.o, ?x.e, 1]", [{"b": 5}, 1], 11, 296),
    ("{'a': x.n, 'b': x.s}", {"a": 2, "b": "ab"}, 11, 386),
    ("{'a': x.n, x.s: 1, 'c': 2}", {"a": 2, "ab": 1, "c": 2}, 14, 512),
    ("{?'a': x.o, ?'b': x.e}", {"a": {"b": 5}}, 11, 384),
    ("[1, omit(), x.n]", [1, 2], 8, 168),
    ("{'a': omit(), 'b': 1}", {"b": 1}, 6, 256),
    ("x.l.map(i, i)", [1, 2, 3], 14, 176),
    ("x.l.map(i, i > 1, [i])", [[2], [3]], 31, 448),
    ("x.l.map(i, i == 2 ? omit() : i)", [1, 3], 33, 160),
    ("x.m.map(k, k)", ["a", "b"], 13, 162),
    ("x.l.filter(i, i > 1)", [2, 3], 21, 160),
    ("x.m.filter(k, x.m[k] > 1)", ["a"], 30, 145),
    ("x.l.all(i, i > 0)", True, 19, 0),
    ("x.l.exists(i, i == 2)", True, 15, 0),
    ("x.l.exists_one(i, i == 2)", True, 19, 0),
    ("x.l.existsOne(i, j, i == j)", False, 19, 0),
    ("x.sl.sortBy(i, i)", ["a", "b", "c"], 21, 251),
    ("x.m.transformMap(k, v, v + 1)", {"a": 3, "b": 2}, 19, 384),
    ("x.m.transformMap(k, v, v > 1, k)", {"a": "a"}, 21, 257),
    ("x.sl.transformMap(i, v, v)", {0: "b", 1: "a", 2: "c"}, 14, 515),
    ("x.l.transformMap(i, v, v == 2 ? omit() : v)", {0: 1, 2: 3}, 33, 384),
    ("x.m.transformList(k, v, [k, v])", [["a", 2], ["b", 1]], 23, 482),
    ("x.l.transformList(i, v, i > 0, v)", [2, 3], 25, 160),
    ("x.m.transformMapEntry(k, v, {v: k})", {2: "a", 1: "b"}, 19, 642),
    ("x.m.transformMapEntry(k, v, v > 1, {v: k})", {2: "a"}, 27, 385),
    ("x.m.all(k, v, v > 0)", True, 17, 0),
    ("cel.bind(v, x.l + x.l, v)", [1, 2, 3, 1, 2, 3], 23, 224),
    ("cel.bind(v, x.l + x.l, v == v)", True, 26, 112),
    ("cel.bind(v, x.l + x.l, x.n)", 2, 11, 0),
    ("x.l.map(i, cel.bind(v, [i], v + v))", [[1, 1], [2, 2], [3, 3]], 49, 872),
    ("x.?m.b", CelOptional(is_present=True, value=1), 4, 0),
    ("x.?m.?b.orValue(0)", 1, 6, 0),
    ("x.?m.?q.orValue([x.n])", [2], 10, 144),
    ("x.?q.b.?c.hasValue()", False, 6, 0),
    ("x.?m.?q", CelOptional(is_present=False, value=None), 4, 0),
    ("x.?d.k.b.orValue('')", "v", 7, 1),
    ("x.?o.b.orValue(1)", 5, 6, 0),
    ("x.?e.b.orValue(x.s)", "ab", 8, 2),
    ("x.o.orValue(1)", {"b": 5}, 6, 128),
    ("x.e.orValue([1])", [1], 7, 144),
    ("x.e.or(x.o)", CelOptional(is_present=True, value={"b": 5}), 8, 128),
    ("x.o.or(1)", CelOptional(is_present=True, value={"b": 5}), 6, 128),
    ("x.o.optMap(v, [v])", CelOptional(is_present=True, value=[{"b": 5}]), 8, 272),
    ("x.e.optMap(v, [v])", CelOptional(is_present=False, value=None), 6, 0),
    ("x.o.optFlatMap(v, optional.of(v.b))", CelOptional(is_present=True, value=5), 10, 0),
    ("x.e.optFlatMap(v, 1)", CelOptional(is_present=False, value=None), 5, 0),
    ("has(x.m.b) && !has(x.m.q)", True, 10, 0),
    ("!x.t", False, 4, 0),
    ("!!x.t", True, 4, 0),
    ("-x.n", -2, 4, 0),
    ("--x.n", 2, 4, 0),
    ("---x.n", -2, 4, 0),
    ("string(x.n) + string(x.s)", "2ab", 9, 7),
    ("string(x.t)", "true", 4, 4),
    ("int('3') + size(x.l)", 6, 7, 0),
    ("x.s.contains('b') && x.s.startsWith('a') && x.s.endsWith('b')", True, 16, 0),
    ("x.s.split('').join('-')", "a-b", 10, 97),
    ("x.s.upperAscii().replace('A', 'bb')", "bbB", 7, 9),
    ("'%s-%d'.format([x.s, x.n])", "ab-2", 20, 94),
    ("x.sl.sort().reverse()", ["c", "b", "a"], 16, 291),
    ("type(x.n) == int", True, 6, 0),
    ("lists.range(x.n)", [0, 1], 9, 224),
)
"""Expressions with their results, and the steps and bytes that they use."""


@pytest.mark.parametrize(("text", "result", "steps", "bytes_"), [pytest.param(*row, id=row[0]) for row in COSTS])
def test_cost_of_a_result(text: str, result: Any, steps: int, bytes_: int) -> None:
    budget = ExpressionBudget(LIMITS)

    assert repr(X.compile(text).evaluate({"x": VALUES}, budget)) == repr(result)
    assert (LIMITS.steps - budget.steps, LIMITS.bytes - budget.bytes) == (steps, bytes_)


ERRORS: tuple[tuple[str, str, int, int, int], ...] = (
    ("x.q + 1", "no such key: q", 3, 5, 0),
    ("x.n.q", "a value of type int has no field 'q'", 5, 4, 0),
    ("x.d.k.q.r", "no such key: q", 7, 6, 0),
    ("x['n']['q']", "a value of type int cannot be indexed", 7, 6, 0),
    ("x.l['a']", "a list index must be an integer, not a value of type string", 4, 5, 0),
    ("x.l[7]", "index out of bounds: 7; number of elements: 3", 4, 5, 0),
    ("x.l['a' + x.s]", "a list index must be an integer, not a value of type string", 4, 9, 3),
    ("x.m[?x.l]", "a value of type list is not a valid map key", 4, 7, 0),
    ("x.n + x.s", "no such overload: int + string; convert with string()", 5, 7, 0),
    ("x.s + x.n", "no such overload: string + int; convert with string()", 5, 7, 0),
    ("'a' + x.n", "no such overload: string + int; convert with string()", 5, 5, 0),
    ("1 + x.s", "no such overload: int + string; convert with string()", 3, 5, 0),
    ("x.n - 'a'", "no such overload: int - string", 5, 5, 0),
    ("x.n + 9223372036854775807", "9223372036854775809 is outside of the range of int", 5, 5, 0),
    ("9223372036854775807 * 2 + x.n", "18446744073709551614 is outside of the range of int", 21, 7, 0),
    ("x.n * 4611686018427387904", "9223372036854775808 is outside of the range of int", 5, 5, 0),
    ("x.n - 1 - (-9223372036854775807) + 1", "9223372036854775808 is outside of the range of int", 9, 7, 0),
    ("x.n < x.s", "no such overload: int < string", 5, 7, 0),
    ("x.s < 1", "no such overload: string < int", 5, 5, 0),
    ("1 >= x.t", "no such overload: int >= bool", 3, 5, 0),
    ("x.n in x.s", "no such overload: int in string", 5, 7, 0),
    ("'a' in x.n", "no such overload: string in int", 5, 5, 0),
    ("x.l in ['a', 'b'] || x.q", "no such key: q", 24, 13, 80),
    ("x.s in x.n", "no such overload: string in int", 5, 7, 0),
    ("x.n / (x.n - 2)", "division by zero", 5, 9, 0),
    ("!x.n", "no such overload: !(int)", 1, 4, 0),
    ("!!x.n", "no such overload: !(int)", 1, 4, 0),
    ("-x.s", "no such overload: -(string)", 1, 4, 0),
    ("--x.s", "no such overload: -(string)", 1, 4, 0),
    ("size(x.n) + 1", "no such overload: size(int)", 1, 6, 0),
    ("x.n.size()", "no such overload: size(int)", 5, 4, 0),
    ("string(x.l)", "no such overload: string(list)", 1, 4, 0),
    ("int(x.s)", "'ab' cannot be converted to int", 1, 4, 0),
    ("x.s.contains(x.n)", "no such overload: contains(string, int)", 5, 7, 0),
    ("x.n.startsWith('a')", "no such overload: startsWith(int, string)", 5, 5, 0),
    ("x.s.substring(x.s)", "no such overload: substring(string, string)", 5, 7, 0),
    ("x.s.substring(5)", "position 5 is outside of the string, which has 2 characters", 5, 5, 0),
    ("x.s.trim(1 / 0 == 1 ? '' : '')", "trim() takes 0 arguments, not 1", 5, 0, 0),
    ("x.n ? 1 : 2", "?: requires a bool, not a value of type int", 5, 6, 0),
    ("x.t ? x.q : 2", "no such key: q", 9, 8, 0),
    ("!x.t ? 1 : x.n ? 2 : 3", "?: requires a bool, not a value of type int", 6, 11, 0),
    ("x.n && x.t", "&& requires a bool, not a value of type int", 5, 7, 0),
    ("x.t && x.n", "&& requires a bool, not a value of type int", 5, 7, 0),
    ("x.q || x.s", "no such key: q", 3, 7, 0),
    ("!x.t || x.n || x.q", "|| requires a bool, not a value of type int", 6, 11, 0),
    ("x.n.map(i, i)", "map() requires a list or map, not a value of type int", 5, 5, 64),
    ("x.n.map(i, j, i)", "undeclared variable 'j'; declared: x", 12, 0, 0),
    ("x.n.all(i, true)", "all() requires a list or map, not a value of type int", 5, 5, 0),
    ("x.l.all(i, i)", "all() requires a bool, not a value of type int", 5, 11, 0),
    ("x.l.exists(i, 'a')", "exists() requires a bool, not a value of type string", 5, 11, 0),
    ("x.l.exists_one(i, i)", "exists_one() requires a bool, not a value of type int", 5, 7, 0),
    ("x.l.filter(i, i)", "filter() requires a bool, not a value of type int", 5, 7, 0),
    ("x.l.map(i, i, i)", "map() requires a bool, not a value of type int", 5, 9, 64),
    ("x.l.map(i, 1 / (i - 2))", "division by zero", 14, 21, 72),
    ("x.l.all(i, 1 / (i - 2) < 5)", "division by zero", 14, 35, 0),
    ("x.m.sortBy(k, k)", "no such overload: sortBy(map)", 5, 5, 0),
    ("x.l.sortBy(i, i == 1 ? 'a' : i)", "cannot sort string and int in one list", 5, 34, 160),
    (
        "x.l.transformMapEntry(i, v, v)",
        "transformMapEntry() requires a map for each element, not a value of type int",
        5,
        7,
        64,
    ),
    ("x.l.transformMapEntry(i, v, {'a': v})", "the map has the key a twice", 5, 15, 448),
    ("x.n.transformMap(i, v, v)", "transformMap() requires a list or map, not a value of type int", 5, 5, 64),
    ("x.l.transformMap(i, v, v, v)", "transformMap() requires a bool, not a value of type int", 5, 9, 64),
    ("x.n.transformList(i, v, v)", "transformList() requires a list or map, not a value of type int", 5, 5, 64),
    ("x.l.transformList(i, v, v, v)", "transformList() requires a bool, not a value of type int", 5, 9, 64),
    ("x.n.?q", "a value of type int has no field 'q'", 6, 4, 0),
    ("x.?n.?q.orValue(1)", "a value of type int has no field 'q'", 7, 6, 0),
    ("x.?n.q.hasValue()", "a value of type int has no field 'q'", 6, 5, 0),
    ("x.n.orValue(1)", "orValue() requires an optional, not a value of type int", 5, 5, 0),
    ("x.n.or(x.o)", "or() requires an optional, not a value of type int", 5, 7, 0),
    ("x.e.or(x.n)", "or() requires an optional, not a value of type int", 5, 7, 0),
    ("x.n.optMap(v, v)", "optMap() requires an optional, not a value of type int", 5, 5, 0),
    ("x.o.optFlatMap(v, 1)", "optFlatMap() requires an optional, not a value of type int", 5, 5, 0),
    ("x.o.optMap(v, v + 1)", "no such overload: map + int", 17, 7, 0),
    ("[1, ?x.n]", "[?…] requires an optional, not a value of type int", 1, 5, 80),
    ("{'a': 1, ?'b': x.n}", "{?…} requires an optional, not a value of type int", 11, 7, 128),
    ("{x.l: 1}", "a value of type list cannot be the key of a map", 2, 5, 64),
    ("{'a': 1, 'b': 2, 'a': 3}", "the map has the key a twice", 18, 7, 256),
    ("{x.s: 1, 'ab': 2}", "the map has the key ab twice", 10, 7, 192),
    ("has(x.n.q)", "a value of type int has no field 'q'", 9, 4, 0),
    ("has(x.q.r)", "no such key: q", 7, 4, 0),
    ("cel.bind(v, x.q, v + 1)", "no such key: q", 15, 10, 0),
    ("cel.bind(v, x.n, v + 'a')", "no such overload: int + string; convert with string()", 20, 10, 0),
    ("x.e.value()", "value() requires an optional that is not empty", 5, 4, 0),
)
"""Expressions with the message and the column of their error, and the steps and bytes that they use."""


@pytest.mark.parametrize(
    ("text", "message", "column", "steps", "bytes_"), [pytest.param(*row, id=row[0]) for row in ERRORS]
)
def test_cost_of_an_error(text: str, message: str, column: int, steps: int, bytes_: int) -> None:
    budget = ExpressionBudget(LIMITS)
    with pytest.raises(ExpressionError) as caught:
        X.compile(text).evaluate({"x": VALUES}, budget)

    assert (caught.value.message, caught.value.column) == (message, column)
    assert (LIMITS.steps - budget.steps, LIMITS.bytes - budget.bytes) == (steps, bytes_)
