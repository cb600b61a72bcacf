"""Tests of indented JSON. Its bytes are fixed, because earlier versions read it and equal states must have equal
bytes.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.json_text import encode_indented_json


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param({"b": [], "a": {}}, '{\n "a": {},\n "b": []\n}\n', id="sorted-and-empty"),
        pytest.param({"a": [{"b": [1]}]}, '{\n "a": [\n  {\n   "b": [\n    1\n   ]\n  }\n ]\n}\n', id="nested"),
        pytest.param(['é\n\u2028\x00"\\'], '[\n "é\\n\u2028\\u0000\\"\\\\"\n]\n', id="quoted"),
        pytest.param([True, None, 1.5], "[\n true,\n null,\n 1.5\n]\n", id="scalars"),
    ],
)
def test_indented_json(data: object, text: str) -> None:
    assert encode_indented_json(data) == text.encode()


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec="utf-8")))
_KEYS = st.text(st.characters(codec="utf-8"), max_size=4)


@pytest.mark.slow
@given(st.recursive(_SCALARS, lambda data: st.one_of(st.lists(data), st.dictionaries(_KEYS, data))))
def test_bytes_equal_json_library(data: Any) -> None:
    """The bytes equal those of the library, so that states of earlier versions have equal IDs."""
    expected = json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True)
    assert encode_indented_json(data).decode() == f"{expected}\n"


@pytest.mark.parametrize("data", [pytest.param({"a": {"b"}}, id="a set"), pytest.param({1: "a"}, id="a number as key")])
def test_value_without_json_form_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        encode_indented_json(data)
