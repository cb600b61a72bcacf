"""Property tests: the outcome of any text and values is a value or an ExpressionError."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, CelProgram, ExpressionError, ExpressionLimits
from tests.support.examples import examples

LIMITS = ExpressionLimits(steps=20_000, bytes=200_000)
ENVIRONMENT = CelEnvironment(frozenset({"x", "y"}), openchoreo_functions=True, limits=LIMITS)

TOKENS = st.sampled_from(
    [
        *(
            "x",
            "y",
            "1",
            "-",
            "+",
            "*",
            "/",
            "%",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ":",
            ",",
            "?",
            ".",
            ".?",
            "!",
            "&&",
            "||",
        ),
        *("==", "<", "in", "'a'", '"', "'''", "b'", "r'", "\\", "`", "2u", "1.5", "null", "true", "has", "map", "all"),
        *(
            "filter",
            "format",
            "size",
            "cel.bind",
            "optional.of",
            "timestamp",
            "=>",
            "//",
            "\n",
            "0x",
            "1e9",
            "🐱",
            "\0",
        ),
    ]
)


@settings(max_examples=examples(200), deadline=None)
@given(st.one_of(st.lists(TOKENS, max_size=25).map(" ".join), st.lists(TOKENS, max_size=25).map("".join), st.text()))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    outcome = _compile_or_refuse(text)

    if isinstance(outcome, ExpressionError):
        assert 1 <= outcome.line <= text.count("\n") + 1
        assert 1 <= outcome.column <= len(text.split("\n")[outcome.line - 1]) + 1
        assert str(outcome).isprintable()
    else:
        assert outcome.text == text


def _compile_or_refuse(text: str) -> CelProgram | ExpressionError:
    try:
        return ENVIRONMENT.compile(text)
    except ExpressionError as error:
        return error


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(), st.integers()), inner)),
    max_leaves=5,
)

OPERATIONS = st.sampled_from(
    [
        *(f"x {sign} y" for sign in ("+", "-", "*", "/", "%", "==", "<", ">=", "in", "&&", "||")),
        *("x[y]", "x[?y]", "x.a", "has(x.a)", "x ? y : x", "-x", "!x", "{x: y}", "[x].map(i, i)", "x.map(i, i == y)"),
        *(
            "x.exists(i, v, v == y)",
            "x.transformMap(k, v, k)",
            "x.sortBy(i, i)",
            "x.split(y)",
            "x.replace(y, y)",
            "x.join(y)",
        ),
        *("'%s %d %f %e %x'.format([x, y, x, y, x])", "x.matches(y)", "string(x)", "int(x)", "uint(x)", "double(x)"),
        *("timestamp(x)", "duration(x)", "timestamp(x).getHours(y)", "lists.range(x)", "x.flatten(y)", "x.slice(y, y)"),
        *(
            "math.greatest(x, y)",
            "math.bitShiftLeft(x, y)",
            "math.sqrt(x)",
            "sets.equivalent(x, y)",
            "base64.decode(x)",
        ),
        *(
            "x.substring(y)",
            "x.lastIndexOf(y, 1)",
            "x.distinct()",
            "x.sort()",
            "hash(x)",
            "generateName(x, y)",
            "merge(x, y)",
        ),
    ]
)


@settings(max_examples=examples(200), deadline=None)
@given(OPERATIONS, VALUES, VALUES)
def test_any_values_produce_the_same_value_or_error_twice(text: str, x: Any, y: Any) -> None:
    program = ENVIRONMENT.compile(text)

    assert _describe_outcome(program, x, y) == _describe_outcome(program, x, y)


def _describe_outcome(program: CelProgram, x: Any, y: Any) -> str:
    try:
        return repr(program.evaluate({"x": x, "y": y}))
    except ExpressionError as error:
        return str(error)
