from __future__ import annotations

from typing import Any

import pytest

from reconciler.cel import CelEnvironment, ExpressionError

X = CelEnvironment(frozenset({"x"}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("-9223372036854775808", -(2**63), id="least-int"),
        pytest.param("- 5 - -5", 0, id="signs"),
        pytest.param(".5 + 5e-1", 1.0, id="doubles"),
        pytest.param("'it\\'s' + \"\\\"\"", "it's\"", id="quotes-in-quotes"),
        pytest.param("'''a'b''c'''", "a'b''c", id="three-quotes"),
        pytest.param('"""a\n"b"""', 'a\n"b', id="three-quotes-over-lines"),
        pytest.param("r'\\d' + R\"\\\"", "\\d\\", id="raw"),
        pytest.param("'\\x41\\u00e9\\U0001F600\\101'", "Aé😀A", id="escapes"),
        pytest.param("b'\\xff\\377é'", b"\xff\xff\xc3\xa9", id="bytes"),
        pytest.param("bR'\\x'", b"\\x", id="raw-bytes"),
        pytest.param("1 // one\n + 2", 3, id="comment"),
        pytest.param("[1, 2,]", [1, 2], id="comma-at-the-end-of-a-list"),
        pytest.param("{'a': 1,}", {"a": 1}, id="comma-at-the-end-of-a-map"),
        pytest.param("{'a.b/c-d': 1}.`a.b/c-d`", 1, id="quoted-field"),
        pytest.param("{'package': {'namespace': 1}}.package.namespace", 1, id="reserved-words-as-fields"),
        pytest.param("1 + 2 * 3 % 2", 1, id="precedence"),
        pytest.param("false ? 1 : true ? 2 : 3", 2, id="conditionals-to-the-right"),
        pytest.param("(false ? 1 : 2) + (true ? 3 : 4)", 5, id="conditionals-in-parentheses"),
        pytest.param("10 - 3 - 2", 5, id="to-the-left"),
        pytest.param("1 < 2 == true", True, id="relations-to-the-left"),
        pytest.param("!!true && !false", True, id="not"),
        pytest.param("index_in_it.in_", 1, id="in-at-the-start-of-names"),
    ],
)
def test_parse(text: str, value: Any) -> None:
    environment = CelEnvironment(frozenset({"index_in_it"}))

    result = environment.compile(text).evaluate({"index_in_it": {"in_": 1}})

    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        pytest.param("", "the expression is incomplete", 1, 1, id="empty"),
        pytest.param("x +", "the expression is incomplete", 1, 4, id="ends-early"),
        pytest.param("x +\n  * 2", "unexpected *", 2, 3, id="second-line"),
        pytest.param("x = 1", "unexpected =; write == to compare", 1, 3, id="single-equals-sign"),
        pytest.param("x & x", "unexpected &; write && for a logical and", 1, 3, id="single-ampersand"),
        pytest.param("'a", "unexpected '; the string has no closing quote on its line", 1, 1, id="open-string"),
        pytest.param("x 'a'", "unexpected 'a'", 1, 3, id="two-values"),
        pytest.param("'\\q'", "\\q is not an escape sequence", 1, 1, id="escape"),
        pytest.param("'\\ud800'", "\\ud800 is not a Unicode character", 1, 1, id="surrogate"),
        pytest.param("b'\\u0041'", "\\u0041 is not allowed in bytes", 1, 1, id="character-in-bytes"),
        pytest.param("9223372036854775808", "9223372036854775808 is outside of the range of int", 1, 1, id="int"),
        pytest.param("-9223372036854775809", "9223372036854775809 is outside of the range of int", 1, 2, id="least"),
        pytest.param("18446744073709551616u", "18446744073709551616u is outside of the range of uint", 1, 1, id="uint"),
        pytest.param("1e999", "the number is outside of the range of double", 1, 1, id="double"),
        pytest.param("1" * 4000, "the number is too large for an int or uint", 1, 1, id="thousands-of-digits"),
        pytest.param("package", "'package' is a reserved word and cannot be a name", 1, 1, id="reserved-word"),
        pytest.param("import(x)", "'import' is a reserved word and cannot be a name", 1, 1, id="reserved-function"),
        pytest.param("x.in", "unexpected in", 1, 3, id="keyword-as-field"),
        pytest.param("x{a: 1}", "unexpected {; Protocol Buffers messages are not supported", 1, 2, id="message"),
        pytest.param("has(x)", "has() takes one argument: a field such as a.b", 1, 1, id="has-of-a-name"),
        pytest.param("has(x['a'])", "has() takes one argument: a field such as a.b", 1, 1, id="has-of-an-index"),
        pytest.param("x.map(x.y, 1)", "map() requires a name without dots as its variable", 1, 7, id="no-variable"),
        pytest.param("x.all(a, a, true)", "all() uses 'a' for two variables", 1, 3, id="twice-the-same-variable"),
        pytest.param("x\0", "unexpected \\x00", 1, 2, id="control-character"),
    ],
)
def test_invalid_syntax_is_refused(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        X.compile(text)

    error = caught.value
    assert (error.code, error.line, error.column) == ("CelSyntax", line, column)
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        pytest.param("x.reduce((acc, f) => acc + f)", 19, id="in-parentheses"),
        pytest.param("x.map(f => f)", 9, id="bare"),
        pytest.param("x.map('=>', f => f)", 15, id="not-the-one-in-a-string"),
    ],
)
def test_arrow_functions_have_their_own_code(text: str, column: int) -> None:
    with pytest.raises(ExpressionError, match="transformMapEntry") as caught:
        X.compile(text)

    assert (caught.value.code, caught.value.column) == ("CelArrowFunction", column)


def test_arrow_in_a_string_is_no_arrow_function() -> None:
    assert X.compile("'a => b'").evaluate({}) == "a => b"
