"""Tests of scalars: the value of a text, and its form when it replaces another scalar."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.field_edits import (
    convert_scalar_type,
    is_quoted_scalar,
    parse_plain_scalar,
    quote_like,
)
from reconciler.packages.functions.field_specs import get_resource_scope
from tests.unit.packages.builders import parse_items


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("3", 3, id="integer"),
        pytest.param("true", True, id="boolean"),
        pytest.param("null", None, id="null"),
        pytest.param("a", "a", id="text"),
        pytest.param("a: b", "a: b", id="a-mapping-is-text"),
        pytest.param("[1]", "[1]", id="a-list-is-text"),
        pytest.param("a # b", "a # b", id="no-comment"),
        pytest.param('"3', '"3', id="not-yaml"),
        pytest.param("", "", id="empty"),
    ],
)
def test_parse_plain_scalar(text: str, expected: Any) -> None:
    assert parse_plain_scalar(text) == expected
    assert type(parse_plain_scalar(text)) is type(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("v: 1", False, id="number"),
        pytest.param("v: a", False, id="plain"),
        pytest.param('v: "a"', True, id="double"),
        pytest.param("v: 'a'", True, id="single"),
        pytest.param('v: "3"', True, id="must-be"),
        pytest.param("v: |\n  a", True, id="block"),
        pytest.param('v: a "b"', False, id="quotes-inside"),
    ],
)
def test_is_quoted(line: str, expected: bool) -> None:
    assert is_quoted_scalar(parse_items(f"x: y\n{line}\n")[0].document, ("v",)) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("v: a", "it's", id="plain"),
        pytest.param("v: 'a'", "'it''s'", id="single"),
        pytest.param('v: "1"', '"it\'s"', id="double"),
        pytest.param("v: 1", "it's", id="number"),
    ],
)
def test_quote_like(line: str, expected: str) -> None:
    assert quote_like("it's", parse_items(line + "\n")[0].document, ("v",)) == expected


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        pytest.param("v: 1", "2", 2, id="number"),
        pytest.param("v: 1.5", "1.10", 1.1, id="number-by-number"),
        pytest.param("v: v1", "1.10", "1.10", id="version-by-text"),
        pytest.param("v: v1", "1.5", 1.5, id="float-that-reads-back"),
        pytest.param("v: 'x'", "2", "2", id="quoted"),
    ],
)
def test_convert_scalar_type(line: str, text: str, expected: Any) -> None:
    assert convert_scalar_type(text, parse_items(line + "\n")[0].document, ("v",)) == expected


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        pytest.param("v1", "Node", "cluster", id="core"),
        pytest.param("example.com/v1", "Node", "unknown", id="another-group"),
        pytest.param("batch/v9", "Job", "namespaced", id="any-version"),
    ],
)
def test_resource_scope(api_version: str, kind: str, expected: str) -> None:
    assert get_resource_scope(parse_items(f"apiVersion: {api_version}\nkind: {kind}\n")[0]) == expected
