"""Tests of field paths of replacements: how they are parsed and what they refer to."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.replacement_fields import (
    ElementMatching,
    MatchSegment,
    NameSegment,
    ReplacementPathError,
    find_references,
    parse_replacement_path,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a.b", (NameSegment("a"), NameSegment("b")), id="dots"),
        pytest.param(r"a\.b.c", (NameSegment("a.b"), NameSegment("c")), id="escaped-dot"),
        pytest.param("a.[b.c/d]", (NameSegment("a"), NameSegment("b.c/d")), id="bracketed-key"),
        pytest.param("a.[k=v.w].c", (NameSegment("a"), MatchSegment("k", "v.w"), NameSegment("c")), id="element"),
        pytest.param("a.[=v]", (NameSegment("a"), MatchSegment("", "v")), id="scalar-element"),
        pytest.param(
            "a.[k=x]y].b", (NameSegment("a"), MatchSegment("k", "x]y"), NameSegment("b")), id="bracket-in-a-value"
        ),
        pytest.param("a.-", (NameSegment("a"), NameSegment("-")), id="last"),
    ],
)
def test_parse_path(text: str, expected: tuple[Any, ...]) -> None:
    assert parse_replacement_path(text) == expected


def test_empty_path_is_refused() -> None:
    with pytest.raises(ReplacementPathError):
        parse_replacement_path("")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("l.[k=a].v", [1], id="first"),
        pytest.param("l.*.v", [1, 2], id="every"),
        pytest.param("l.1.k", ["ab"], id="index"),
        pytest.param("l.7.k", [], id="no-such-index"),
        pytest.param("s.[=y]", ["y"], id="scalar-element"),
        pytest.param("m.x", [None], id="null"),
        pytest.param("m.no.deeper", [], id="absent"),
        pytest.param("t.x", [], id="through-a-scalar"),
    ],
)
def test_find(path: str, expected: list[Any]) -> None:
    data = {"l": [{"k": "a", "v": 1}, {"k": "ab", "v": 2}], "s": ["x", "y"], "m": {"x": None}, "t": "text"}

    assert [reference.read() for reference in find_references(data, parse_replacement_path(path))] == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("a.b", {"a": {"b": 1}}, id="mappings"),
        pytest.param("a.[k=v].b", {"a": [{"k": "v", "b": 1}]}, id="element"),
        pytest.param("a.-", {"a": [1]}, id="appended"),
        pytest.param("l.1", {"l": [0, 1]}, id="index-behind-the-end"),
    ],
)
def test_create_missing_fields(path: str, expected: dict[str, Any]) -> None:
    data: dict[str, Any] = {"l": [0]} if path.startswith("l") else {}

    for reference in find_references(data, parse_replacement_path(path), create=True):
        reference.write(1)

    assert data == expected


def test_regular_expressions_match_any_part() -> None:
    data = {"l": [{"k": "app"}, {"k": "app-2"}]}

    assert (
        len(find_references(data, parse_replacement_path("l.[k=app].k"), matching=ElementMatching(by_pattern=True)))
        == 2
    )
    with pytest.raises(ReplacementPathError):
        find_references(data, parse_replacement_path("l.[k=(].k"), matching=ElementMatching(by_pattern=True))


def test_only_the_first_matching_element_is_found() -> None:
    data = {"l": [{"k": "a", "v": 1}, {"k": "a", "v": 2}]}
    first = ElementMatching(every=False)

    assert [
        reference.read() for reference in find_references(data, parse_replacement_path("l.[k=a].v"), matching=first)
    ] == [1]
    assert find_references(data, parse_replacement_path("l.*.v"), matching=first) == []
