"""Tests of structured text: which texts are JSON or YAML, and how they are formatted again."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.replacement_fields import format_structured_text, parse_structured_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"a": 1}', {"a": 1}, id="json"),
        pytest.param("a: 1\nb:\n- x\n", {"a": 1, "b": ["x"]}, id="yaml"),
        pytest.param("plain", None, id="plain-text"),
        pytest.param("", None, id="empty"),
        pytest.param("a: [", None, id="broken"),
        pytest.param("a: 1\n---\nb: 2\n", None, id="two-documents"),
    ],
)
def test_parse_structured_text(text: str, expected: Any) -> None:
    assert parse_structured_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"b": 0, "a": 1}', '{"b":2,"a":1}', id="json-on-one-line"),
        pytest.param('{\n    "b": 0, "a": 1}', '{\n  "b": 2,\n  "a": 1\n}', id="json-on-several-lines"),
        pytest.param("# head\nb: 0 # why\na: 1\n", "# head\nb: 2 # why\na: 1\n", id="yaml"),
    ],
)
def test_format_structured_text(text: str, expected: str) -> None:
    assert format_structured_text(text, {"b": 2, "a": 1}) == expected
