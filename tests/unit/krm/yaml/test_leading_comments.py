"""Tests of leading comments: the value that they belong to, and how they are set together with line comments."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.yaml import Document, parse_yaml


def parse_document(text: str) -> Document:
    return parse_yaml(text).documents[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1\n# x\n# y\nb: 1\n", {("b",): ("# x", "# y")}, id="above-an-entry"),
        pytest.param("a:\n  b: 1\n  # x\n  c: 1\n", {("a", "c"): ("# x",)}, id="at-its-column"),
        pytest.param("a:\n  b: 1\n  # x\nc: 1\n", {}, id="not-the-foot-of-another"),
        pytest.param("a: 1\n# x\n\nb: 1\n", {}, id="not-above-a-blank-line"),
        pytest.param(
            "a:\n# x\n- b\n# y\n- c: 1\n  # z\n  d: 1\n",
            {("a", 0): ("# x",), ("a", 1): ("# y",), ("a", 1, "d"): ("# z",)},
            id="above-items",
        ),
        pytest.param("- - a\n  # x\n  - b\n", {(0, 1): ("# x",)}, id="above-an-item-in-an-item"),
        pytest.param("# x\na: 1\n", {(): ("# x",)}, id="above-everything"),
        pytest.param("# x\n\n# y\na: 1\n", {(): ("# x", ""), ("a",): ("# y",)}, id="below-a-licence"),
        pytest.param("\n# x\n# y\n\n\na: 1\n", {(): ("", "# x", "# y", "", "")}, id="above-blank-lines"),
        pytest.param("# x\n{a: 1,\n# y\nb: 1}\n", {(): ("# x",)}, id="not-in-flow-style"),
        pytest.param("# x\n'a'\n", {(): ("# x",)}, id="above-a-scalar"),
        pytest.param("--- # x\na: 1\n", {}, id="not-beside-the-separator"),
        pytest.param("a: |\n  # x\n  y\nb: 1\n", {}, id="not-in-text"),
        pytest.param("a: 1\r\n# x \r\nb: 1\r\n", {("b",): ("# x",)}, id="crlf"),
        pytest.param(
            "a: &x {}\n# m\nb:\n  c: 1\n  # n\n  <<: *x\n", {("b",): ("# m",), ("b", "<<"): ("# n",)}, id="merge-key"
        ),
        pytest.param("a: 1\nb: 1\n", {}, id="none"),
    ],
)
def test_leading_comments(text: str, expected: dict[Any, tuple[str, ...]]) -> None:
    assert parse_document(text).leading_comments() == expected


@pytest.mark.parametrize(
    ("text", "beside", "above", "expected"),
    [
        pytest.param("a: 1\nb: 1\n", {}, {("b",): ("# x", "# y")}, "a: 1\n# x\n# y\nb: 1\n", id="put-above"),
        pytest.param("a: 1\n# x\nb: 1\n", {}, {("b",): ("# y",)}, "a: 1\n# y\nb: 1\n", id="changed-above"),
        pytest.param("a: 1\n# x\nb: 1\n", {}, {("b",): ()}, "a: 1\nb: 1\n", id="taken-from-above"),
        pytest.param("a:\n  - b\n", {}, {("a", 0): ("# x",)}, "a:\n  # x\n  - b\n", id="at-the-column-of-an-item"),
        pytest.param("a: 1\n", {}, {(): ("# x", "")}, "# x\n\na: 1\n", id="a-licence"),
        pytest.param("# w\n\n# v\na: 1\n", {}, {(): ("# x", "")}, "# x\n\n# v\na: 1\n", id="another-licence"),
        pytest.param("a: 1\r\nb: 1\r\n", {}, {("b",): ("# x",)}, "a: 1\r\n# x\r\nb: 1\r\n", id="in-its-line-ends"),
        pytest.param(
            "a: 1\nb: 1 # y\n",
            {("a",): "# x", ("b",): None},
            {("b",): ("# z",)},
            "a: 1 # x\n# z\nb: 1\n",
            id="all-at-once",
        ),
        pytest.param(
            "a: {b: 1}\nc: 1\n", {("c",): "# x"}, {("a", "b"): ("# y",)}, "a: {b: 1}\nc: 1 # x\n", id="no-line-above"
        ),
        pytest.param(
            "a: {b: 1, c: 1}\nd: 1\n",
            {("a", "b"): "# x", ("d",): "# y"},
            {},
            "a: {b: 1, c: 1}\nd: 1 # y\n",
            id="no-space-at-the-end-of-the-line",
        ),
        pytest.param("a: 1\n", {("b",): "# x"}, {("c",): ("# y",)}, "a: 1\n", id="nowhere"),
    ],
)
def test_with_comments(
    text: str, beside: dict[Any, str | None], above: dict[Any, tuple[str, ...]], expected: str
) -> None:
    assert parse_document(text).with_comments(beside, above).text == expected


def test_empty_comments_change_nothing() -> None:
    document = parse_document("a: 1 # x\n")

    assert document.with_comments({}, {}) is document
