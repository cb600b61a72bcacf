from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, ExpressionError
from tests.support.examples import examples

S = CelEnvironment(frozenset({"s", "t", "n"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("'a,b,,c'.split(',')", ["a", "b", "", "c"], id="split"),
        pytest.param("'a,b,c'.split(',', 2)", ["a", "b,c"], id="split-with-a-limit"),
        pytest.param("'a,b'.split(',', 0)", [], id="split-into-nothing"),
        pytest.param("'äbc'.split('', 2)", ["ä", "bc"], id="split-into-characters"),
        pytest.param("''.split('')", [], id="split-nothing-into-characters"),
        pytest.param("''.split(',')", [""], id="split-nothing"),
        pytest.param("'aXbXc'.replace('X', '', 1)", "abXc", id="replace-with-a-limit"),
        pytest.param("'ab'.replace('', '-')", "-a-b-", id="replace-nothing"),
        pytest.param("'tacocat'.lastIndexOf('ac', 0)", -1, id="last-index-before-the-place"),
        pytest.param("'😀a'.indexOf('a')", 1, id="characters-are-code-points"),
        pytest.param("'abc'.charAt(3) + 'abc'.substring(3)", "", id="right-behind-the-end"),
        pytest.param("'\\u0085\\u3000a\\u200b'.trim()", "a\u200b", id="trim-removes-unicode-white-space"),
        pytest.param("'ÄÉ-Az'.lowerAscii() + 'äß-Az'.upperAscii()", "ÄÉ-azäß-AZ", id="only-ascii-letters"),
        pytest.param("'foobar'.matches('o{2}b')", True, id="matches-anywhere"),
        pytest.param("matches('foo', '^o')", False, id="matches-as-a-function"),
        pytest.param("'é'.matches('^.$')", True, id="matches-characters"),
        pytest.param("strings.quote('a\\t\"\\\\')", '"a\\t\\"\\\\"', id="quote"),
        pytest.param("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b", id="join"),
        pytest.param("'abä'.reverse()", "äba", id="reverse"),
    ],
)
def test_strings(text: str, expected: Any) -> None:
    assert S.compile(text).evaluate({}) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("'abc'.charAt(4)", "CelIndex", id="char-at"),
        pytest.param("'abc'.substring(2, 1)", "CelIndex", id="substring"),
        pytest.param("'abc'.indexOf('a', -1)", "CelIndex", id="index-of"),
        pytest.param("['a', 1].join()", "CelNoOverload", id="join"),
        pytest.param("'a'.matches('(?=a)')", "CelRegex", id="look-ahead"),
        pytest.param("'a'.matches('(a)\\\\1')", "CelRegex", id="back-reference"),
    ],
)
def test_string_errors(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        S.compile(text).evaluate({})

    assert caught.value.code == code


TEXTS = st.text("ab,", max_size=8)


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS, TEXTS, st.integers(-1, 4))
def test_split_and_join_are_inverse(s: str, t: str, n: int) -> None:
    limit = n if n else -1
    parts = S.compile("s.split(t, n)").evaluate({"s": s, "t": t, "n": limit})

    assert t.join(parts) == s
    assert limit < 0 or len(parts) <= limit


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS, st.text("ab", max_size=2), st.integers(0, 9))
def test_last_index_of_is_the_last_match_at_or_before_the_index(s: str, t: str, n: int) -> None:
    last = min(n, len(s))
    places = [place for place in range(last + 1) if s.startswith(t, place)]

    assert S.compile("s.lastIndexOf(t, n)").evaluate({"s": s, "t": t, "n": last}) == max(places, default=-1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("'%s and %s%%'.format(['a', 1])", "a and 1%", id="strings"),
        pytest.param("'%d %d'.format([-1, 2u])", "-1 2", id="decimal"),
        pytest.param("'%.2f %f %.0f'.format([1.005, 2, 2.5])", "1.00 2.000000 2", id="fixed"),
        pytest.param("'%e %.1e'.format([12345.678, 0])", "1.234568e+04 0.0e+00", id="scientific"),
        pytest.param("'%b %o %x %X'.format([-5, 8, 255, 255])", "-101 10 ff FF", id="bases"),
        pytest.param("'%x %X'.format(['né', b'\\xff'])", "6ec3a9 FF", id="hexadecimal-of-text"),
        pytest.param("'%b'.format([true])", "1", id="binary-of-a-bool"),
        pytest.param("'%s'.format([[1, 'a', null, true, 1.5]])", "[1, a, null, true, 1.5]", id="list"),
        pytest.param("'%s'.format([{'b': 1, 'a': {2: b'x'}}])", "{a: {2: x}, b: 1}", id="map-in-order"),
        pytest.param("'%s %s'.format([int, duration('90s')])", "int 90s", id="type-and-duration"),
        pytest.param("'%s %f %e'.format([-1.0 / 0.0, 1.0 / 0.0, 0.0 / 0.0])", "-Infinity Infinity NaN", id="special"),
        pytest.param("'nothing'.format(['left over'])", "nothing", id="arguments-left-over"),
        pytest.param("'%%s'.format([1])", "%s", id="percent-sign"),
    ],
)
def test_format(text: str, expected: str) -> None:
    assert S.compile(text).evaluate({}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "'%d'.format([])", "format() has no argument for %d, because the list has only 0 elements", id="too-few"
        ),
        pytest.param(
            "'%d'.format(['a'])", "%d in format() requires a number, not a value of type string", id="no-number"
        ),
        pytest.param("'%q'.format([1])", "format() does not support %q", id="unknown-clause"),
        pytest.param("'%'.format([1])", "format() does not support %", id="lonely-percent-sign"),
        pytest.param("'%5d'.format([1])", "format() does not support %5", id="width"),
        pytest.param("'%.1001f'.format([1.0])", "format() supports at most 1000 decimals", id="precision"),
        pytest.param(
            "'%s'.format([optional.none()])", "format() does not support values of type optional_type", id="o"
        ),
        pytest.param("'%x'.format([1.5])", "%x in format() requires an integer, string or bytes", id="hexadecimal"),
    ],
)
def test_format_errors(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        S.compile(text).evaluate({})

    assert caught.value.message.startswith(message)
