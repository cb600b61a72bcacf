"""Tests of the text of values that are part of a longer text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.components.template_syntax import render_literal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("a 'b' ${c}", "a 'b' ${c}", id="text-as-it-is"),
        pytest.param("", "", id="empty"),
        pytest.param(1000000, "1000000", id="int"),
        pytest.param(-(2**63), "-9223372036854775808", id="least-int"),
        pytest.param(True, "true", id="true"),
        pytest.param(False, "false", id="false"),
        pytest.param(3.0, "3", id="whole-double"),
        pytest.param(0.1, "0.1", id="double"),
        pytest.param(2.5e-7, "0.00000025", id="small-double"),
        pytest.param(-0.0, "-0", id="negative-zero"),
        pytest.param(1e14, "100000000000000", id="large-double"),
        pytest.param(999999999999999.9, "999999999999999.9", id="largest-without-exponent"),
        pytest.param(1e15, "1e+15", id="first-with-exponent"),
        pytest.param(-1234567890123456.0, "-1.234567890123456e+15", id="exponent-and-digits"),
        pytest.param(1.7976931348623157e308, "1.7976931348623157e+308", id="largest"),
        pytest.param([], "[]", id="empty-list"),
        pytest.param({"b": [1, 2.0, None], "a": {"ü": 'q"'}}, '{"a":{"ü":"q\\""},"b":[1,2,null]}', id="json"),
    ],
)
def test_text_of_a_value(value: Any, text: str) -> None:
    assert render_literal(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_as_itself(value: float) -> None:
    text = render_literal(value)

    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert ("e" in text) == (abs(value) >= 1e15)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text(), JSON, max_size=3))
def test_lists_and_maps_are_compact_sorted_json(value: Any) -> None:
    def in_order(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
        return dict(pairs)

    text = render_literal(value)

    assert json.loads(text, object_pairs_hook=in_order) == value
    assert text.count(" ") == json.dumps(value, ensure_ascii=False, separators=(",", ":")).count(" ")
