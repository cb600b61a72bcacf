"""Tests of strict JSON, which refuses texts that parsers interpret differently."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reconciler.krm.json_text import parse_strict_json
from reconciler.packages.parsing import ParseFailure, parse_json_cached


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        pytest.param('{"a": 1, "a": 2}', 'the key "a" is repeated in one mapping', 1, id="duplicate-key"),
        pytest.param('{"a": 1, "a": 1}', 'the key "a" is repeated in one mapping', 1, id="duplicate-key-same-value"),
        pytest.param('{"a": 1,\n "\\u0061": 2}', 'the key "a" is repeated in one mapping', 2, id="escaped-key"),
        pytest.param('{"b": [\n{"a": {}, "a": {}}]}', 'the key "a" is repeated in one mapping', 2, id="nested-key"),
        pytest.param('{"a": 1e400}', "the number 1e400 is outside of the range of 64-bit floating", 0, id="overflow"),
        pytest.param('{"a": -1e400}', "the number -1e400 is outside of the range of 64-bit floating", 0, id="negative"),
        pytest.param('{"a": 1e-400}', "the number 1e-400 is outside of the range", 0, id="underflow"),
        pytest.param('{"a": NaN}', "NaN is not allowed in JSON", 0, id="nan"),
        pytest.param('{"a": Infinity}', "Infinity is not allowed in JSON", 0, id="infinity"),
        pytest.param('{"a": -Infinity}', "-Infinity is not allowed in JSON", 0, id="negative-infinity"),
        pytest.param('{"a": 18446744073709551616}', "the integer 18446744073709551616 is outside", 0, id="65-bit"),
        pytest.param('{"a": -9223372036854775809}', "the integer -9223372036854775809 is", 0, id="below-64-bit"),
        pytest.param('{"a": %s}' % ("9" * 5000), "the integer 9999", 0, id="5000-digits"),
        pytest.param('{"a": "\\ud800"}', "a string must be Unicode text, but contains the lone", 0, id="surrogate"),
        pytest.param('{"\\udc00": 1}', "a string must be Unicode text, but contains the lone", 0, id="in-a-key"),
        pytest.param('{"a": 1}}', "Extra data", 1, id="no-json"),
        pytest.param("[" * 100_000, "maximum recursion depth exceeded", 0, id="deep"),
    ],
)
def test_ambiguous_json_is_refused(text: str, message: str, line: int) -> None:
    result = parse_json_cached(text.encode())

    assert isinstance(result, ParseFailure)
    assert result.message.startswith(message)
    assert len(result.message) < 200
    assert result.line == line or (line == 0 and result.line > 0)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param('{"a": {"a": 1}, "b": {"a": 2}}', {"a": {"a": 1}, "b": {"a": 2}}, id="equal-keys-apart"),
        pytest.param('{"a": 1.5e300, "b": -0.0, "c": 0e999}', {"a": 1.5e300, "b": -0.0, "c": 0.0}, id="floats"),
        pytest.param("[18446744073709551615, -9223372036854775808]", [2**64 - 1, -(2**63)], id="64-bit-integers"),
        pytest.param('"\\ud83d\\ude00"', "😀", id="surrogate-pair"),
    ],
)
def test_valid_json(text: str, data: Any) -> None:
    assert parse_strict_json(text) == data
    assert not isinstance(parse_json_cached(text.encode()), ParseFailure)


def test_sign_of_zero_stays() -> None:
    assert math.copysign(1, parse_strict_json("-0.0")) == -1
