"""Tests of indented JSON. Its bytes are fixed, because earlier versions read it and equal states must have equal
bytes.
"""

import pytest

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


def test_value_without_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        encode_indented_json({"a": {"b"}})
