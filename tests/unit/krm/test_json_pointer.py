"""Tests of JSON pointers with the examples of RFC 6901 and invalid pointers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer, resolve_pointer

RFC = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", RFC, id="the-whole-document"),
        pytest.param("/foo", ["bar", "baz"], id="a-key"),
        pytest.param("/foo/0", "bar", id="an-index"),
        pytest.param("/", 0, id="the-empty-key"),
        pytest.param("/a~1b", 1, id="an-escaped-slash"),
        pytest.param("/c%d", 2, id="percent-is-not-decoded"),
        pytest.param("/ ", 7, id="a-blank"),
        pytest.param("/m~0n", 8, id="an-escaped-tilde"),
    ],
)
def test_resolve(text: str, expected: Any) -> None:
    assert resolve_pointer(RFC, parse_pointer(text)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("/foo/2", "because the length of the list is 2", id="index-behind-the-end"),
        pytest.param("/foo/-", "because the length of the list is 2", id="the-item-after-the-last"),
        pytest.param("/foo/01", "because the length of the list is 2", id="leading-zero"),
        pytest.param("/foo/-1", "because the length of the list is 2", id="negative-index"),
        pytest.param("/foo/\u0661", "because the length of the list is 2", id="digit-of-another-script"),
        pytest.param("/foo/" + "1" * 5_000, "because the length of the list is 2", id="endless-index"),
        pytest.param("/bar", "/bar does not exist", id="missing-key"),
        pytest.param("/foo/0/x", "/foo/0 is neither a mapping nor a list", id="below-a-scalar"),
    ],
)
def test_pointer_to_an_absent_value(text: str, reason: str) -> None:
    with pytest.raises(PointerError, match=reason):
        resolve_pointer(RFC, parse_pointer(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("foo", id="no-slash"),
        pytest.param("/~", id="lone-tilde-at-the-end"),
        pytest.param("/~2", id="unknown-escape"),
        pytest.param("#/foo", id="uri-fragment"),
    ],
)
def test_invalid_pointer(text: str) -> None:
    with pytest.raises(PointerError, match=r"JSON pointer"):
        parse_pointer(text)


def test_number_in_a_path_is_an_index() -> None:
    assert resolve_pointer(RFC, ("foo", 1)) == "baz"


@pytest.mark.slow
@given(st.lists(st.text()))
def test_formatting_and_parsing_are_inverse(path: list[str]) -> None:
    assert parse_pointer(format_pointer(path)) == tuple(path)
