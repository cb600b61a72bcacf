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
from reconciler.cel.budget import TEXT_PER_STEP
from reconciler.cel.check import NameResolver
from reconciler.cel.code_writer import MAX_INDENTATION, GeneratedCode
from reconciler.cel.compile import CelCompiler
from reconciler.cel.library import FUNCTIONS, METHODS
from reconciler.cel.parser import parse_expression
from reconciler.cel.support import SUPPORT
from reconciler.cel.values import INT_MAX, INT_MIN, Uint
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


def _generate(text: str) -> GeneratedCode:
    compiler = CelCompiler(NameResolver({"x", "__import__"}, FUNCTIONS), FUNCTIONS, METHODS)
    compiler.compile(parse_expression(text))
    return compiler.writer.build("f0")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_code_contains_no_names_and_texts_of_the_expression(text: str) -> None:
    for node in ast.walk(ast.parse(_generate(text).source)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                assert GENERATED_NAMES.fullmatch(name) or name in SUPPORT
            case ast.Attribute(attr=name):
                assert name in ATTRIBUTES
            case ast.Constant(value=value):
                assert value is None or type(value) in (bool, int)
            case ast.Import() | ast.ImportFrom() | ast.Global() | ast.keyword() | ast.JoinedStr():
                pytest.fail(f"unexpected code: {ast.dump(node)}")


LONGEST_TEXT_OF_ONE_STEP = "q" * TEXT_PER_STEP

SPECIALIZED_LINES = (
    ("!true", "return False"),
    ("-x", "v2 = negate(v1)"),
    ("-size(x) < 2", "v4 = v3 < 2"),
    ("x + 1", "v2 = v1 + 1"),
    ("x + 'a'", "v2 = v1 + 'a'"),
    ("x in ['a', 'b']", "v3 = v1 in {'b': 2, 'a': 1}"),
    (f"x in ['{LONGEST_TEXT_OF_ONE_STEP}']", f"v3 = v1 in {{'{LONGEST_TEXT_OF_ONE_STEP}': 1}}"),
    ("x.size()", "v2 = len(v1) if type(v1) in {bytes, dict, list, str} else GENERAL"),
    (
        "x.charAt(x)",
        (
            "v2 = char_at(budget, v1, v1)"
            f" if type(v1) is str and type(v1) is int and {INT_MIN} <= v1 <= {INT_MAX} else GENERAL"
        ),
    ),
    (
        f"x.startsWith('{LONGEST_TEXT_OF_ONE_STEP}')",
        f"v2 = v1.startswith('{LONGEST_TEXT_OF_ONE_STEP}') if type(v1) is str else GENERAL",
    ),
    ("string(size(x))", "v3 = convert_integer_to_text(budget, v2)"),
    ("math.greatest(size(x))", "v3 = MAPPING.get(type(v2), <lambda>)(budget, v2)"),
    ("[1].all(i, true)", "for v2 in v1:"),
    ("x.a", "v2 = v1['a']"),
    ("x['a'].b", "v2 = v1['a']['b']"),
    ("x.?a.orValue(1)", "if v2 is MISSING:"),
    ("x == 1", "v2 = v1 == 1 and type(v1) is not bool"),
    ("0 != x", "v2 = not (v1 == 0 and type(v1) is not bool)"),
    ("x == 2", "v2 = v1 == 2"),
    (f"x != {2**53}", f"v2 = not (v1 == {2**53})"),
    ("x == null", "v2 = v1 is None"),
    ("x != true", "v2 = v1 is not True"),
    ("x == false", "v2 = v1 is False"),
    (f"'{LONGEST_TEXT_OF_ONE_STEP}' != x", f"v2 = v1 != '{LONGEST_TEXT_OF_ONE_STEP}'"),
    ("!(x == x)", "v3 = not v2"),
    ("!(x < x)", "v3 = not v2"),
    ("!(x in x)", "v3 = not v2"),
    ("!has(x.a)", "v3 = not v2"),
    ("'a' in x", "v2 = 'a' in v1 if type(v1) is dict else contains(budget, 'a', v1)"),
    ("x - 1", "v2 = v1 - 1"),
    ("x * 2", "v2 = v1 * 2"),
    ("x.getHours() < 2", "v3 = v2 < 2"),
    ("x.upperAscii()", "v2 = upper_ascii(budget, v1) if type(v1) is str else GENERAL"),
    ("[1].join('a')", "if True:"),
    ("{'a': 1, 'b': 2}", "v1['b'] = 2"),
    ("{x: 1}", "if True:"),
)
"""Expressions with a line of their code. The line does not call a general function, or calls it only if a class of an
operand is unknown.
"""

GENERAL_LINES = (
    (f"x == {2**53 + 1}", f"v2 = is_equal(budget, v1, {2**53 + 1})"),
    ("x == 2.5", "v2 = is_equal(budget, v1, 2.5)"),
    (f"x == '{LONGEST_TEXT_OF_ONE_STEP}q'", f"v2 = is_equal(budget, v1, '{LONGEST_TEXT_OF_ONE_STEP}q')"),
    ("!(x / x)", "v3 = not v2 if type(v2) is bool else invert(v2)"),
    ("int(x) < 2", "v3 = v2 < 2 if type(v2) is int else less(budget, v2, 2)"),
    ("(x ? 1 : 'a') + 1", "if type(v1) is int:"),
    ("-string(x) + 'a'", "if type(v3) is str:"),
    ("{'a': 1, 'a': 2}", "add_checked_entry(budget, v1, 'a', 2)"),
    ("{'a': 1, x: 2, 'b': 3}", "add_checked_entry(budget, v1, 'b', 3)"),
    ("!(-(x == x))", "v4 = not v3 if type(v3) is bool else invert(v3)"),
    ("x[?'a']", "v2 = read_optional_index(budget, v1, 'a')"),
    ("math.bitAnd(x, x)", "v2 = GENERAL"),
)
"""Expressions with a line of their code that calls a general function or tests a class, because special code would
change the result.
"""


@pytest.mark.parametrize(("text", "line"), [pytest.param(*row, id=row[0]) for row in SPECIALIZED_LINES])
def test_frequent_operations_have_specialized_code(text: str, line: str) -> None:
    assert line in _generate_readable_lines(text)


@pytest.mark.parametrize(("text", "line"), [pytest.param(*row, id=row[0]) for row in GENERAL_LINES])
def test_other_operations_have_general_code(text: str, line: str) -> None:
    assert line in _generate_readable_lines(text)


def test_a_field_is_read_before_the_variable_is_tested() -> None:
    lines = _generate_readable_lines("x.a")

    assert lines.index("try:") < lines.index("if v1 is MISSING: raise_no_value('x')")


def _generate_readable_lines(text: str) -> list[str]:
    """Return the lines of the generated code, with constants instead of their names."""
    code = _generate(text)
    names = [f"k{index}" for index in range(len(code.constants))]
    constants = dict(zip(names, map(_format_constant, code.constants), strict=True))
    readable = re.sub(r"\bk[0-9]+\b", lambda name: constants[name[0]], code.source)
    return [re.sub(r"call_overload\(.*", "GENERAL", line.strip()) for line in readable.splitlines()]


def _format_constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(kind.__name__ for kind in value))}}}"
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return "MAPPING"
    return getattr(value, "__name__", repr(value))


@pytest.mark.parametrize(
    "text",
    [
        *("!x", "!!x", "-size(x)", "size(x) + 1", "x + 'a'", "x && x", "x ? 1 : 2", "x.contains('a')"),
        *("{'a': 1}", "x in ['a']", f"x in ['{LONGEST_TEXT_OF_ONE_STEP}q']", "x.?a", "x.optMap(i, i)"),
        *("x.all(i, i)", "x.exists_one(i, i)", "x.filter(i, i)", "x.map(i, i)", "x.sortBy(i, i)"),
        *("x.transformMap(k, v, v)", "x.transformMapEntry(k, v, v)"),
        pytest.param("x ? (" * MAX_INDENTATION + "1" + ") : 1" * MAX_INDENTATION, id="result-of-another-function"),
    ],
)
def test_class_of_the_result_is_known_before_the_evaluation(text: str) -> None:
    """A list literal has no test for `OMIT` if the classes of its elements are known."""
    assert "is OMIT" not in _generate(f"[{text}]").source
    assert "is OMIT" in _generate(f"[{text}, x]").source


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
        pytest.param("size(x) == 3 && x != x", ExpressionLimits(steps=8), 19, id="comparison"),
        pytest.param("true && 1 in [2, ?x]", ExpressionLimits(), 14, id="optional-element"),
        pytest.param("{'a': 1, 'b': x}", ExpressionLimits(bytes=130), 10, id="map-entry"),
        pytest.param("x.map(i, i) == x", ExpressionLimits(bytes=10), 3, id="map"),
        pytest.param("x.filter(i, true) == x", ExpressionLimits(bytes=10), 3, id="filter"),
        pytest.param("x.transformMap(i, v, v) == x", ExpressionLimits(bytes=10), 3, id="transform-map"),
        pytest.param("x.transformMapEntry(i, v, {v: i}) == x", ExpressionLimits(bytes=10), 3, id="transform-entries"),
        pytest.param("x.sortBy(i, i) == x", ExpressionLimits(bytes=10), 3, id="sort"),
        pytest.param("x[0] in ['a', 'b']", ExpressionLimits(steps=8), 6, id="membership-of-an-int"),
        pytest.param("string(x[0]) in ['a', 'b']", ExpressionLimits(steps=9), 14, id="membership-of-a-text"),
        pytest.param(
            f"x[0] in ['{LONGEST_TEXT_OF_ONE_STEP}q', 'b']", ExpressionLimits(steps=8), 6, id="membership-in-long-texts"
        ),
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
