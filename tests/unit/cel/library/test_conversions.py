from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, CelType, ExpressionError, Uint
from reconciler.cel.library.conversions import format_double
from tests.support.examples import examples

X = CelEnvironment(frozenset({"x"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("int('-42')", -42, id="int-of-text"),
        pytest.param("int('+7')", 7, id="int-with-a-plus"),
        pytest.param("int(-2.9)", -2, id="toward-zero"),
        pytest.param("int(3u)", 3, id="int-of-uint"),
        pytest.param("uint('18446744073709551615')", Uint(2**64 - 1), id="uint-of-text"),
        pytest.param("uint(2.9)", Uint(2), id="uint-of-double"),
        pytest.param("double('1e3')", 1000.0, id="double-of-text"),
        pytest.param("double('-inf')", -math.inf, id="infinity"),
        pytest.param("double(7)", 7.0, id="double-of-int"),
        pytest.param("bool('t')", True, id="bool-of-text"),
        pytest.param("string(1.0)", "1", id="string-of-a-whole-double"),
        pytest.param("string(-1.5e-7)", "-1.5e-07", id="string-of-a-small-double"),
        pytest.param("string(1234567.0)", "1.234567e+06", id="string-of-a-large-double"),
        pytest.param("string(true) + string(2u) + string(b'\\xc3\\xa9')", "true2é", id="strings"),
        pytest.param("bytes('é')", b"\xc3\xa9", id="bytes-of-text"),
        pytest.param("size('é') + size(b'é') + size([1]) + {'a': 1}.size()", 5, id="sizes"),
        pytest.param("type({})", CelType("map"), id="type"),
        pytest.param("dyn([1])", [1], id="dyn"),
        pytest.param("base64.encode(b'\\xff') + base64.encode('hi')", "/w==aGk=", id="base64-encode"),
        pytest.param("base64.decode('aGk=') == base64.decode('aGk')", True, id="base64-decode"),
    ],
)
def test_conversions(text: str, expected: Any) -> None:
    result = X.compile(text).evaluate({})

    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("int('')", "CelConversion", id="empty"),
        pytest.param("int(' 1')", "CelConversion", id="blank"),
        pytest.param("int('1_0')", "CelConversion", id="underscore"),
        pytest.param("int('١')", "CelConversion", id="digits-of-another-script"),
        pytest.param("int('9223372036854775808')", "CelArithmetic", id="int-range"),
        pytest.param("int(9223372036854775808.0)", "CelArithmetic", id="double-range"),
        pytest.param("int(0.0 / 0.0)", "CelArithmetic", id="nan"),
        pytest.param("uint('-1')", "CelConversion", id="sign-of-uint"),
        pytest.param("uint(-1)", "CelArithmetic", id="uint-range"),
        pytest.param("double('1e400')", "CelArithmetic", id="range-of-double"),
        pytest.param("double('0x10')", "CelConversion", id="hexadecimal"),
        pytest.param("bool('yes')", "CelConversion", id="no-bool"),
        pytest.param("bool(1)", "CelNoOverload", id="bool-of-int"),
        pytest.param("string(null)", "CelNoOverload", id="string-of-null"),
        pytest.param("string([1])", "CelNoOverload", id="string-of-a-list"),
        pytest.param("string(b'\\xff')", "CelConversion", id="no-utf-8"),
        pytest.param("base64.decode('a')", "CelConversion", id="one-character-of-base64"),
        pytest.param("base64.decode('aG k=')", "CelConversion", id="blank-in-base64"),
        pytest.param("base64.decode('aGk==')", "CelConversion", id="too-much-padding"),
    ],
)
def test_failed_conversions(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        X.compile(text).evaluate({})

    assert caught.value.code == code


@settings(max_examples=examples(150), deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_double_is_parsed_to_the_same_double(number: float) -> None:
    assert float(format_double(number)) == number


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=40))
def test_base64_round_trip(data: bytes) -> None:
    assert X.compile("base64.decode(base64.encode(x))").evaluate({"x": data}) == data
