"""Tests of hostile expressions: each ends with a clear error or with its value, within the budget."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from reconciler.cel import CelEnvironment, ExpressionError, ExpressionLimits

HOSTILE = CelEnvironment(
    frozenset({"numbers", "text", "texts", "deep"}),
    openchoreo_functions=True,
    limits=ExpressionLimits(steps=100_000, bytes=1_000_000),
)
BINDINGS = {
    "numbers": list(range(300)),
    "text": "a" * 200_000,
    "texts": ["a" * 100_000 + str(number) for number in range(20)],
}


def _build_nested_bind(count: int, first: str, content: str) -> str:
    """Return nested `cel.bind` calls, in which each variable uses the previous one."""
    text = f"v{count}"
    for number in range(count, 0, -1):
        text = f"cel.bind(v{number}, {content.replace('v', f'v{number - 1}')}, {text})"
    return f"cel.bind(v0, {first}, {text})"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("numbers.all(a, numbers.all(b, numbers.all(c, true)))", id="loops-in-loops"),
        pytest.param("numbers.map(a, numbers.map(b, numbers.map(c, a)))", id="lists-of-lists"),
        pytest.param("numbers.all(a, numbers.all(b, !(-1 in numbers)))", id="searches-in-loops"),
        pytest.param("numbers.map(a, numbers.map(b, {'a': a, 'b': b}))", id="maps-in-loops"),
        pytest.param("numbers.exists(a, numbers.exists(b, numbers.exists(c, a / 0 == 1))) || true", id="absorbed"),
        pytest.param("[1].all(x, numbers.all(a, numbers.all(b, numbers.all(c, true)))) || true", id="absorbed-twice"),
        pytest.param(_build_nested_bind(24, "'xxxxxxxxxx'", "v + v"), id="text-doubled"),
        pytest.param(_build_nested_bind(30, "lists.range(10)", "v + v"), id="list-doubled"),
        pytest.param(_build_nested_bind(28, "[1]", "[v, v]"), id="result-that-shares-its-parts"),
        pytest.param(
            f"{_build_nested_bind(28, '[1]', '[v, v]')} == {_build_nested_bind(28, '[1]', '[v, v]')}",
            id="equality-of-such",
        ),
        pytest.param(f"'%s'.format([{_build_nested_bind(28, '[1]', '[v, v]')}])", id="text-of-such"),
        pytest.param(f"{_build_nested_bind(28, '[1]', '[v, v]')}.flatten(30)", id="such-flattened"),
        pytest.param("text.replace('', text)", id="replacement"),
        pytest.param("text.replace('a', 'aaaaaaaaaaaaaaaaaaaa')", id="long-replacement"),
        pytest.param("numbers.map(n, text).join(text)", id="join"),
        pytest.param("text.split('')", id="split"),
        pytest.param("lists.range(9223372036854775807)", id="range"),
        pytest.param("numbers.map(n, '%.1000f%.1000f%.1000f%.1000f'.format([1.0, 1.0, 1.0, 1.0]))", id="decimals"),
        pytest.param("lists.range(20000).sortBy(n, -n)", id="sort"),
        pytest.param("lists.range(5000).distinct()", id="distinct"),
        pytest.param("sets.contains(lists.range(5000), lists.range(5000))", id="sets"),
        pytest.param("numbers.all(a, texts.all(b, texts.all(c, b + 'x' != c + 'y')))", id="long-texts-compared"),
        pytest.param("numbers.all(a, numbers.all(b, !text.contains('b')))", id="contains"),
        pytest.param("numbers.all(a, numbers.all(b, text.indexOf('b') == -1))", id="index-of"),
        pytest.param("numbers.all(a, numbers.all(b, text.lowerAscii() == text))", id="lower"),
        pytest.param("numbers.all(a, numbers.all(b, hash(text) != ''))", id="hash"),
        pytest.param("numbers.all(a, numbers.all(b, generateName(text) != ''))", id="generate-name"),
        pytest.param("numbers.all(a, text.matches('^(a+)+$'))", id="pattern-bomb"),
        pytest.param("!text.matches('(a?){500}(b){500}')", id="long-pattern"),
        pytest.param("numbers.all(a, !'a'.matches('\\\\pL{9}' + string(a)))", id="many-patterns"),
        pytest.param("numbers.all(a, numbers.all(b, timestamp(a).getHours('Europe/Rome') < 25))", id="time-zones"),
        pytest.param("merge(" + ", ".join(["{'a': text + text}"] * 5) + ")", id="merge"),
    ],
)
def test_hostile_expressions_exhaust_their_budget(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        HOSTILE.compile(text).evaluate(BINDINGS)

    assert caught.value.code == "CelBudget"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param("[x]", 72, id="list-of-one"),
        pytest.param("[x, x, x]", 88, id="list-of-three"),
        pytest.param("[[x], [x]]", 224, id="lists-in-a-list"),
        pytest.param("{'a': x}", 128, id="map-of-one"),
        pytest.param("{'a': x, 'b': x}", 192, id="map-of-two"),
    ],
)
def test_literals_use_exactly_their_size_of_the_memory_budget(text: str, size: int) -> None:
    def evaluate(limit: int) -> object:
        environment = CelEnvironment(frozenset({"x"}), limits=ExpressionLimits(bytes=limit))
        return environment.compile(f"size({text}) > 0").evaluate({"x": 1})

    assert evaluate(size)
    with pytest.raises(ExpressionError, match=f"creates more than {size - 1} bytes"):
        evaluate(size - 1)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("[" * 2000 + "]" * 2000, "CelTooDeep", id="lists"),
        pytest.param("{1:" * 800 + "1" + "}" * 800, "CelTooDeep", id="maps"),
        pytest.param("-(-" * 1000 + "numbers" + ")" * 1000, "CelTooDeep", id="signs"),
        pytest.param("size(" * 600 + "text" + ")" * 600, "CelTooDeep", id="calls"),
        pytest.param("[0" + "[0" * 1000 + "]" * 1001, "CelTooDeep", id="indices"),
        pytest.param(_build_nested_bind(120, "1", "v + v"), "CelTooDeep", id="bindings"),
        pytest.param("numbers" + ".map(x, x" * 400 + ")" * 400, "CelTooDeep", id="loops"),
        pytest.param(
            "numbers.all(a, numbers.all(b, numbers.all(c, numbers.all(d, numbers.all(e, true)))))",
            "CelNesting",
            id="nesting",
        ),
        pytest.param("numbers.map(a, " + "numbers.sortBy(b, " * 4 + "b" + ")" * 5, "CelNesting", id="nested-sorts"),
        pytest.param("'" + "a" * 4095 + "'", "CelTooLong", id="characters"),
        pytest.param("(" * 2000, "CelSyntax", id="open-parentheses"),
        pytest.param('"' + "\\" * 4001, "CelSyntax", id="backslashes"),
        pytest.param("`" * 4000, "CelSyntax", id="backquotes"),
        pytest.param("numbers" + ".a" * 2000, "CelNoOverload", id="selections"),
        pytest.param("numbers" + "[0]" * 1300, "CelNoOverload", id="chain-of-indices"),
        pytest.param("'a'.matches('((\\\\pL{10}){10}){9}')", "CelRegex", id="huge-pattern"),
        pytest.param("'%.9999999999f'.format([1.0])", "CelArgument", id="precision"),
        pytest.param("deep == deep", "CelTooDeep", id="deep-values-compared"),
        pytest.param("'%s'.format([deep])", "CelTooDeep", id="deep-values-formatted"),
        pytest.param("deep.flatten(100000)", "CelTooDeep", id="deep-values-flattened"),
        pytest.param("deep", "CelTooDeep", id="deep-values-returned"),
    ],
)
def test_hostile_expressions_are_refused(text: str, code: str) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ExpressionError) as caught:
        HOSTILE.compile(text).evaluate({**BINDINGS, "deep": deep})

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("+".join(["1"] * 2048), 2048, id="sum"),
        pytest.param("||".join(["false"] * 580) + "||true", True, id="or"),
        pytest.param("false?1:" * 500 + "2", 2, id="conditionals"),
        pytest.param("(" * 2000 + "1" + ")" * 2000, 1, id="parentheses"),
        pytest.param("!" * 4000 + "true", True, id="nots"),
        pytest.param("-" * 4000 + "1", 1, id="signs"),
        pytest.param("'a'" + ".trim()" * 580, "a", id="methods"),
        pytest.param("size(" + "[" * 90 + "]" * 90 + ")", 1, id="depth-within-the-limit"),
        pytest.param("text.matches('^(a+)+$')", True, id="pattern"),
        pytest.param("cel.bind(x, numbers.all(a, numbers.all(b, numbers.all(c, true))), 1)", 1, id="never-needed"),
    ],
)
def test_long_expressions_are_evaluated(text: str, value: object) -> None:
    assert HOSTILE.compile(text).evaluate(BINDINGS) == value


def test_deepest_expressions_stay_below_the_recursion_limit() -> None:
    deepest = "size(['a'].map(x, " * 30 + "'a'" + "))" * 30
    environment = CelEnvironment(limits=ExpressionLimits(nesting=100))
    limit = sys.getrecursionlimit()
    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1

    sys.setrecursionlimit(used + 550)
    try:
        program = environment.compile(deepest)
        assert program.evaluate({}) == 1
    finally:
        sys.setrecursionlimit(limit)


def test_cost_does_not_depend_on_earlier_evaluations() -> None:
    text = "numbers.map(n, ('a' + string(n)).matches('^a[0-9]{1,3}$')).size()"

    def measure_cost() -> tuple[int, int]:
        for steps in range(0, 20_000, 50):
            limits = ExpressionLimits(steps=steps)
            try:
                CelEnvironment(frozenset({"numbers"}), limits=limits).compile(text).evaluate(BINDINGS)
            except ExpressionError:
                continue
            return steps, 0
        return -1, -1

    assert measure_cost() == measure_cost()


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f"generateName({', '.join(['x'] * 600)})", id="name-of-many-parts"),
        pytest.param(f"dnsLabel({', '.join(['x'] * 600)})", id="label-of-many-parts"),
        pytest.param(" + ".join(["x"] * 600), id="sum"),
        pytest.param(f"[{', '.join(['x'] * 600)}].join()", id="join"),
        pytest.param("x.replace('a', x)", id="replace"),
        pytest.param("lists.range(100000000)", id="range"),
        pytest.param(f"'{'%s' * 600}'.format([{', '.join(['x'] * 600)}])", id="format"),
    ],
)
def test_budget_is_charged_before_memory_is_allocated(expression: str) -> None:
    environment = CelEnvironment(frozenset({"x"}), openchoreo_functions=True)
    program = environment.compile(expression)
    tracemalloc.start()
    try:
        with pytest.raises(ExpressionError) as raised:
            program.evaluate({"x": "a" * 1_000_000})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert raised.value.code == "CelBudget"
    assert peak < 64 * 1024 * 1024
