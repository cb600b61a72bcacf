"""Tests of edits that reuse the formatting of another document, and of moved list items."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.yaml import Document, FormattingSource, parse_yaml


def parse_document(text: str) -> Document:
    return parse_yaml(text).documents[0]


def edit_text(text: str, data: Any, source: str, places: dict[Any, FormattingSource]) -> str:
    return parse_document(text).with_data(data, parse_document(source).reuse_formatting(places)).text


A, B = FormattingSource(("a",)), FormattingSource(("b",))
ANEW = FormattingSource(("b",), whole=False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("b: 'x' # c\n", "z: 1\nb: 'x' # c\n", id="quotes-and-comment"),
        pytest.param("a: 1\n\n# d\n# e\nb: x\n", "z: 1\n\n# d\n# e\nb: x\n", id="comments-and-blank-lines-above"),
        pytest.param("# d\nb: x\n", "z: 1\nb: x\n", id="but-no-licence"),
        pytest.param("# w\n\n# d\nb: x\n", "z: 1\n\n# d\nb: x\n", id="the-comment-below-a-licence"),
        pytest.param('"b": >-\n      x\n', 'z: 1\n"b": >-\n      x\n', id="a-folded-text"),
        pytest.param("{a: 1, b: 'x'}\n", "z: 1\nb: 'x'\n", id="out-of-flow-style"),
        pytest.param("{b: 'x\n  '}\n", "z: 1\nb: x\n", id="afresh-from-flow-over-lines"),
        pytest.param("? b\n: 'x'\n", "z: 1\nb: 'x'\n", id="quotes-below-a-question-mark"),
        pytest.param("b: &y x\nc: *y\n", "z: 1\nb: x\n", id="afresh-with-an-anchor"),
        pytest.param("a: 'x'\n", "z: 1\nb: x\n", id="afresh-where-nothing-is"),
    ],
)
def test_scalar_from_another_document(source: str, expected: str) -> None:
    assert edit_text("z: 1\n", {"z": 1, "b": "x"}, source, {("b",): B}) == expected


@pytest.mark.parametrize(
    ("text", "data", "source", "places", "expected"),
    [
        pytest.param(
            "a:\n    x: 1\n",
            {"a": {"x": 1, "b": {"c": [1]}}},
            "b:\n  c:\n  - 1 # d\n",
            {("a", "b"): B},
            "a:\n    x: 1\n    b:\n      c:\n      - 1 # d\n",
            id="indented-anew",
        ),
        pytest.param("z: 1\n", {"b": 2, "z": 1}, "b: 0x2\n", {("b",): B}, "b: 0x2\nz: 1\n", id="in-front"),
        pytest.param(
            "{z: 1}\n", {"b": 2, "z": 1}, "b: 0x2\n", {("b",): B}, "{b: 2, z: 1}\n", id="in-front-in-flow-style"
        ),
        pytest.param(
            "- a: 1\n",
            [{"b": 2, "a": 1}],
            "# d\n\n# c\nb: 0x2\n",
            {(0, "b"): B},
            "- # c\n  b: 0x2\n  a: 1\n",
            id="in-front-of-an-item",
        ),
        pytest.param(
            "l:\n- 1\n",
            {"l": [1, "b"]},
            "l:\n  # c\n  -   'b'\n",
            {("l", 1): FormattingSource(("l", 0))},
            "l:\n- 1\n# c\n-   'b'\n",
            id="an-item",
        ),
        pytest.param(
            "l:\n- 1\n",
            {"l": ["b", 1]},
            "l: ['b']\n",
            {("l", 0): FormattingSource(("l", 0))},
            "l:\n- 'b'\n- 1\n",
            id="an-item-out-of-flow-style",
        ),
        pytest.param(
            "a: {}\n",
            {"a": {"b": 2}},
            "b: 0x2 # c\n",
            {("a", "b"): B},
            "a:\n  b: 0x2 # c\n",
            id="into-a-value-that-is-replaced",
        ),
        pytest.param(
            "z: 1\n",
            {"z": 1, "b": {"d": 2, "c": 1}},
            "a: 1\n# x\n'b': # y\n  c: 1 # z\n  d: 2\n",
            {("b",): ANEW, ("b", "c"): FormattingSource(("b", "c"))},
            "z: 1\n# x\n'b': # y\n  d: 2\n  c: 1 # z\n",
            id="a-mapping-anew",
        ),
        pytest.param(
            "z: 1\n",
            {"z": 1, "b": {}},
            "b: # y\n  c: 1\n",
            {("b",): ANEW},
            "z: 1\nb: {}\n",
            id="an-emptied-mapping-anew",
        ),
        pytest.param(
            "l:\n- 1\n",
            {"l": [1, {"d": 2, "c": 1}]},
            "l:\n# x\n- c: 1\n  # y\n  d: 0x2\n",
            {("l", 1): FormattingSource(("l", 0), whole=False), ("l", 1, "d"): FormattingSource(("l", 0, "d"))},
            "l:\n- 1\n# x\n# y\n- d: 0x2\n  c: 1\n",
            id="an-item-anew",
        ),
        pytest.param(
            "l:\n- 1\n",
            {"l": [1, 2]},
            "l:\n# x\n- 3\n",
            {("l", 1): FormattingSource(("l", 0), whole=False)},
            "l:\n- 1\n# x\n- 2\n",
            id="a-scalar-item-anew",
        ),
    ],
)
def test_values_from_another_document(
    text: str, data: Any, source: str, places: dict[Any, FormattingSource], expected: str
) -> None:
    assert edit_text(text, data, source, places) == expected


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        pytest.param(
            "# a\n\n# x\n- 'b' # y\n- c\n- d\n",
            ["c", "d", "b"],
            "# a\n\n- c\n- d\n# x\n- 'b' # y\n",
            id="with-quotes-and-comments",
        ),
        pytest.param(
            "- b: 0x1\n- c: 2\n- d: 3\n",
            [{"c": 2}, {"d": 3}, {"b": 1}],
            "- c: 2\n- d: 3\n- b: 0x1\n",
            id="with-what-is-in-it",
        ),
        pytest.param("- &x 'b'\n- c\n- d\n- *x\n", ["c", "d", "b"], "- c\n- d\n- b\n", id="afresh-with-an-anchor"),
    ],
)
def test_moved_item(text: str, data: Any, expected: str) -> None:
    assert parse_document(text).with_data(data).text == expected
