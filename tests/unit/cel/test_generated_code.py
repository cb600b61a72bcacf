"""Tests of the generated Python code: names, nested functions, positions of errors, and specialized operations."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, CelOptional, Duration, ExpressionBudget, ExpressionError, ExpressionLimits
from reconciler.cel.check import NameResolver
from reconciler.cel.code_writer import MAX_INDENTATION
from reconciler.cel.compile import CelCompiler
from reconciler.cel.library import FUNCTIONS, METHODS
from reconciler.cel.parser import parse_expression
from reconciler.cel.support import SUPPORT
from reconciler.cel.values import Uint
from tests.support.examples import examples

X = CelEnvironment(frozenset({"x"}))

GENERATED_NAMES = re.compile(r"[fkv][0-9]+|create|offsets|bindings|budget|failure")
ATTRIBUTES = {
    *("get", "append", "steps", "bytes", "raise_no_steps", "raise_no_bytes", "is_present", "value"),
    *("startswith", "endswith", "isascii"),
}

EXPRESSIONS = (
    "x.__class__['__import__'].eval",
    "__import__.x + x.os.system('rm')",
    "x.exec.all(__builtins__, __builtins__.startsWith('exec(1)') && size(__builtins__) > 3)",
    "x.map(lambda, lambda + 1).filter(def, def in ['import', \"a\\nb\"])",
    "cel.bind(None, x.?pass.orValue('\\\"'), {'__doc__': None, 'a': [?x.?b]})",
    "x.optMap(self, self.y).or(optional.of(1)) == -x ? x.transformMap(k, v, v != 12345678901) : !x",
    "x.sortBy(del, del.size()).exists_one(with, with.endsWith('True') || with.contains(x))",
    "x.transformMapEntry(k, v, {k: v}).map(k, x[k] * 2 - 1) + '#'.format([x, true, null, 1.5, b'z'])",
)


def _generate(text: str) -> str:
    compiler = CelCompiler(NameResolver({"x", "__import__"}, FUNCTIONS), FUNCTIONS, METHODS)
    compiler.compile(parse_expression(text))
    return compiler.writer.build("f0").source


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_code_contains_no_names_and_texts_of_the_expression(text: str) -> None:
    for node in ast.walk(ast.parse(_generate(text))):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                assert GENERATED_NAMES.fullmatch(name) or name in SUPPORT
            case ast.Attribute(attr=name):
                assert name in ATTRIBUTES
            case ast.Constant(value=value):
                assert value is None or type(value) in (bool, int)
            case ast.Import() | ast.ImportFrom() | ast.Global() | ast.keyword() | ast.JoinedStr():
                pytest.fail(f"unexpected code: {ast.dump(node)}")


def test_code_has_no_builtin_functions_except_the_listed_ones() -> None:
    code = X.compile("x.a").code.evaluate.__globals__  # type: ignore[attr-defined]

    assert code is SUPPORT
    assert code["__builtins__"] == {}
    assert not {"eval", "exec", "open", "getattr", "__import__", "compile"} & set(code)


def test_expressions_that_differ_only_in_names_and_constants_share_their_code() -> None:
    first, second, other = (
        X.compile(text).code.evaluate.__code__  # type: ignore[attr-defined]
        for text in ("x.a == 'b'", "x.name == 'value'", "x.a.b == 'b'")
    )

    assert first is second
    assert first is not other


NESTED = {
    "conditions": ("x > 0 && (x > 6 || ", "x == 5", ")"),
    "conditionals": ("x > 6 ? 'a' == 'b' : (x < 5 || ", "x == 5", ")"),
    "loops": ("[x].all(i, i == 5 && ", "x == 5", ")"),
    "lists": ("[x].map(i, [i][0] == 5 ? ", "x == 5", " : true)[0]"),
    "bind": ("cel.bind(v, x + 1, v == 6 && ", "x == 5", ")"),
    "optionals": ("optional.of(x).optMap(v, v == 5 && ", "x == 5", ").orValue(false)"),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("depth", [MAX_INDENTATION // 2, MAX_INDENTATION, 24])
def test_nested_code_continues_in_other_functions(name: str, depth: int) -> None:
    before, inner, after = NESTED[name]
    environment = CelEnvironment(frozenset({"x"}), limits=ExpressionLimits(nesting=50))
    text = before * depth + inner + after * depth

    assert environment.compile(text).evaluate({"x": 5}) is True
    failing = environment.compile(before * depth + "1 / (x - 5) == 1" + after * depth)
    with pytest.raises(ExpressionError) as caught:
        failing.evaluate({"x": 5})
    assert (caught.value.message, caught.value.column) == ("division by zero", len(before) * depth + 3)


@pytest.mark.parametrize(
    ("text", "limits", "column"),
    [
        pytest.param("[1] == x", ExpressionLimits(bytes=10), 1, id="list"),
        pytest.param("x.all(i, [i, 1] != x)", ExpressionLimits(bytes=100), 3, id="list-in-a-loop"),
        pytest.param("1 in x.map(i, x.all(j, [j] != x))", ExpressionLimits(bytes=300), 17, id="innermost-loop"),
        pytest.param("x.all(i, cel.bind(v, [i, 1], v != x))", ExpressionLimits(bytes=100), 3, id="bind-in-a-loop"),
        pytest.param("cel.bind(v, [1], x.all(i, v != x))", ExpressionLimits(bytes=10), 20, id="bind-read-in-a-loop"),
        pytest.param("x.all(i, i + 1 > 0)", ExpressionLimits(steps=12), 3, id="iterations"),
        pytest.param("cel.bind(v, 1 + 1 + 1, v == 3)", ExpressionLimits(steps=9), 1, id="bound-value"),
        pytest.param("x == [3]", ExpressionLimits(steps=2), 1, id="expression"),
        pytest.param("{'a': 1, 'b': x}", ExpressionLimits(bytes=130), 10, id="map-entry"),
        pytest.param("x.map(i, i) == x", ExpressionLimits(bytes=10), 3, id="map"),
        pytest.param("x.filter(i, true) == x", ExpressionLimits(bytes=10), 3, id="filter"),
        pytest.param("x.transformMap(i, v, v) == x", ExpressionLimits(bytes=10), 3, id="transform-map"),
        pytest.param("x.transformMapEntry(i, v, {v: i}) == x", ExpressionLimits(bytes=10), 3, id="transform-entries"),
        pytest.param("x.sortBy(i, i) == x", ExpressionLimits(bytes=10), 3, id="sort"),
        pytest.param("x[0] in ['a', 'b']", ExpressionLimits(steps=8), 6, id="membership-of-an-int"),
        pytest.param("string(x[0]) in ['a', 'b']", ExpressionLimits(steps=9), 14, id="membership-of-a-text"),
        pytest.param("x.map(i, i > 1, [i]) == x", ExpressionLimits(bytes=70), 3, id="element"),
        pytest.param("x + x == x", ExpressionLimits(bytes=10), 3, id="sum"),
        pytest.param("x.exists_one(i, i == 1) && true", ExpressionLimits(steps=12), 3, id="exists-one"),
        pytest.param("size(x) == 3 ? 'a' + string(x) : ''", ExpressionLimits(), 22, id="argument"),
        pytest.param("false || ('é' + string(size(x))) == ''", ExpressionLimits(bytes=3), 15, id="text"),
    ],
)
def test_error_has_the_position_of_its_operation(text: str, limits: ExpressionLimits, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        CelEnvironment(frozenset({"x"}), limits=limits).compile(text).evaluate({"x": [1, 2, 3]})

    assert caught.value.column == column


def test_absorbed_error_keeps_its_position() -> None:
    with pytest.raises(ExpressionError) as caught:
        X.compile("x.all(i, 1 / i == 1) || 'a' == x.b || x.c").evaluate({"x": [0]})

    assert (caught.value.message, caught.value.column) == ("division by zero", 12)


LITERALS: dict[str, Any] = {
    "0": 0,
    "1": 1,
    "2": 2,
    "-3": -3,
    "5u": Uint(5),
    "1u": Uint(1),
    "1.0": 1.0,
    "2.5": 2.5,
    "0.0": 0.0,
    "9007199254740993": 2**53 + 1,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "true": True,
    "false": False,
    "null": None,
    "''": "",
    "'a'": "a",
    "'é'": "é",
    "'1'": "1",
    "b'a'": b"a",
    f"'{'q' * 70}'": "q" * 70,
}
"""Literals with their values. Each literal is one node of the syntax tree, as a variable is."""

OTHER_VALUES = (
    *([], [1, 2], ["a", "1"], {}, {"a": 1}, {1: "a", "k": [1]}, 2**70, Duration(0)),
    *(CelOptional(True, "a"), CelOptional(True, {"a": 1}), CelOptional(False)),
)

FORMS = (
    *(f"§ {sign} §" for sign in ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||")),
    *(
        "§ + § + §",
        "§ && § && §",
        "§ == § || § < §",
        "§ ? § : §",
        "!(§)",
        "!!(§)",
        "-dyn(§)",
        "--dyn(§)",
        "§[§]",
        "§[?§]",
    ),
    *("[§, §, [§]]", "{'k': §, §: §}", "§ in [§, §]", "cel.bind(v, § + §, [v, v])", "(§)['a']", "(§).a + §"),
    *(f"{name}(§)" for name in ("size", "string", "int", "uint", "double", "bool", "bytes", "dyn", "type", "duration")),
    *(f"(§).{name}(§)" for name in ("contains", "startsWith", "endsWith", "indexOf", "split", "charAt", "orValue")),
    *("(§).substring(§, §)", "(§).replace(§, §)", "(§).size() + §", "(§).trim() + (§).upperAscii()", "(§).hasValue()"),
    *(f"(§).{name}(i, i == §)" for name in ("all", "exists", "exists_one", "filter", "map")),
    *("(§).map(i, [i, § + §])", "(§).exists(i, § < i || i == §)", "(§).all(i, v, v == §)", "has({'a': §}.a)"),
    *(
        "(§).?a.orValue(§)",
        "(§).?a.?b.hasValue()",
        "has((§).a)",
        "(§).transformMap(k, v, v + §)",
        "(§).sortBy(i, i + §)",
    ),
)


@dataclass(frozen=True)
class FilledForm:
    """An expression with literals, and the same expression with variables."""

    with_literals: str
    with_variables: str
    bindings: dict[str, Any]


@st.composite
def _fill_forms(draw: st.DrawFn) -> FilledForm:
    form = draw(st.sampled_from(FORMS))
    for _ in range(draw(st.integers(0, 2))):
        form = form.replace("§", f"({draw(st.sampled_from(FORMS))})", 1)
    with_literals = with_variables = form
    bindings = {}
    has_only_literals = draw(st.booleans())
    for index in range(form.count("§")):
        name = f"x{index}"
        if has_only_literals or draw(st.booleans()):
            literal = draw(st.sampled_from(sorted(LITERALS)))
            bindings[name] = LITERALS[literal]
        else:
            literal = name
            bindings[name] = draw(st.sampled_from([*LITERALS.values(), *OTHER_VALUES]))
        # The texts have equal lengths, so that errors have equal positions.
        with_literals = with_literals.replace("§", f"({literal.ljust(len(name))})", 1)
        with_variables = with_variables.replace("§", f"({name.ljust(len(literal))})", 1)
    return FilledForm(with_literals, with_variables, bindings)


LIMITS = st.builds(
    ExpressionLimits,
    steps=st.sampled_from([1_000_000, 1_000_000, 3, 5, 8, 12, 20, 40]),
    bytes=st.sampled_from([1_000_000, 1_000_000, 0, 2, 70, 150, 300]),
)


@pytest.mark.slow
@settings(max_examples=examples(800), deadline=None)
@given(form=_fill_forms(), limits=LIMITS)
def test_constants_and_variables_have_equal_results_errors_and_costs(
    form: FilledForm, limits: ExpressionLimits
) -> None:
    """The code for constants is specialized and folded. The code for variables is general."""
    environment = CelEnvironment(frozenset(form.bindings), limits=limits)

    assert _evaluate(environment, form.with_literals, form.bindings) == _evaluate(
        environment, form.with_variables, form.bindings
    )


def _evaluate(environment: CelEnvironment, text: str, bindings: dict[str, Any]) -> tuple[object, ...]:
    budget = ExpressionBudget(environment.limits)
    try:
        result = environment.compile(text).evaluate(bindings, budget)
    except ExpressionError as error:
        return error.code, str(error), max(budget.steps, -1), max(budget.bytes, -1)
    return repr(result), budget.steps, budget.bytes
