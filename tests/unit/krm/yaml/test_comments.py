"""Tests of line comments: their path, and how they are set. Setters and merges depend on both."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.yaml import YamlError, parse_yaml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1 # c\n", {("a",): "# c"}, id="beside-a-scalar"),
        pytest.param("a: 'x # y' # c\n", {("a",): "# c"}, id="not-in-quotes"),
        pytest.param("a: x#y # c\n", {("a",): "# c"}, id="not-inside-a-word"),
        pytest.param("a:   # c\nb: 1\n", {("a",): "# c"}, id="beside-nothing"),
        pytest.param("a: # c\n  b: 1\n", {("a",): "# c"}, id="above-a-mapping"),
        pytest.param("a: # c\n- 1\n", {("a",): "# c"}, id="above-a-compact-list"),
        pytest.param("a: &x # c\n  b: 1\n", {("a",): "# c"}, id="behind-an-anchor"),
        pytest.param("a: # c\n  x\n", {}, id="above-a-scalar-on-its-own-line"),
        pytest.param("a: {b: 1} # c\n", {("a",): "# c"}, id="behind-a-flow-mapping"),
        pytest.param("a: [x, [y]] # c\n", {("a",): "# c"}, id="behind-the-outermost-bracket"),
        pytest.param("a: [] # c\nb: {} # d\n", {("a",): "# c", ("b",): "# d"}, id="behind-empty-collections"),
        pytest.param(
            "a: [\n  x, # 0\n  y # 1\n] # c\n", {("a", 0): "# 0", ("a", 1): "# 1", ("a",): "# c"}, id="flow-over-lines"
        ),
        pytest.param(
            "a: [ # no\n  [x # 0\n  ], # 1\n]\n", {("a", 0, 0): "# 0", ("a", 0): "# 1"}, id="bracket-on-its-own-line"
        ),
        pytest.param(
            "a: {b: 1, # b\n    c: 2} # a\n", {("a", "b"): "# b", ("a",): "# a"}, id="flow-mapping-over-lines"
        ),
        pytest.param("- a # c\n- b: 1 # d\n", {(0,): "# c", (1, "b"): "# d"}, id="items"),
        pytest.param("- # c\n  a: 1\n- # d\n  - 2\n", {(0,): "# c", (1,): "# d"}, id="beside-a-dash"),
        pytest.param("- - # c\n    - a\n", {(0, 0): "# c"}, id="beside-two-dashes"),
        pytest.param("- # c\n- a\n", {(0,): "# c"}, id="beside-a-dash-without-item"),
        pytest.param("a: | # c\n  x # y\nb: >- # d\n  z\n", {("a",): "# c", ("b",): "# d"}, id="block-scalars"),
        pytest.param("a: |\n  x\n# c\nb: 1\n", {}, id="below-a-block-scalar"),
        pytest.param("a: x\n  y # c\n", {("a",): "# c"}, id="behind-text-over-lines"),
        pytest.param("# h\na: 1\n  # f\n# g\n\nb: 2\n", {}, id="lines-of-their-own"),
        pytest.param("a: &x 1 # c\nb: *x # d\n", {("a",): "# c", ("b",): "# d"}, id="alias"),
        pytest.param("a: 1 # c  \r\nb: 2\r\n", {("a",): "# c"}, id="trailing-blanks-and-crlf"),
        pytest.param("a: 1\t# c\n", {("a",): "# c"}, id="tab-before"),
        pytest.param("{a: 1} # c\n", {(): "# c"}, id="the-whole-document"),
        pytest.param("x # c\n", {(): "# c"}, id="a-scalar-document"),
        pytest.param("--- # c\na: 1\n", {}, id="beside-the-separator"),
        pytest.param("? a # c\n: b # d\n", {("a",): "# d"}, id="question-mark"),
        pytest.param("80: x # c\n", {("80",): "# c"}, id="number-as-key"),
        pytest.param("a: 1 #\nb: 2 # \n", {("a",): "#", ("b",): "#"}, id="empty-comments"),
        pytest.param("a: 1 # \u2603 \U0001f600\n", {("a",): "# \u2603 \U0001f600"}, id="emoji"),
        pytest.param("a: 1 # c # d\n", {("a",): "# c # d"}, id="a-hash-inside"),
        pytest.param("a: &x {b: 1}\nc: # d\n  <<: *x # e\n", {("c",): "# d", ("c", "<<"): "# e"}, id="merge-key"),
    ],
)
def test_comments(text: str, expected: dict[Any, str]) -> None:
    document = parse_yaml(text).documents[0]

    assert document.comments() == expected
    assert all(document.comment(path) == comment for path, comment in expected.items())


@pytest.mark.parametrize(
    ("text", "path", "comment", "expected"),
    [
        pytest.param("a: 1\nb: 2\n", ("a",), "# c", "a: 1 # c\nb: 2\n", id="set"),
        pytest.param("a: 1   # old\nb: 2\n", ("a",), "# c", "a: 1   # c\nb: 2\n", id="replace-keeps-the-column"),
        pytest.param("a: 1   # old\nb: 2\n", ("a",), None, "a: 1\nb: 2\n", id="remove"),
        pytest.param(
            "metadata:\n  name: x\n",
            ("metadata",),
            "# kpt-merge: default/x",
            "metadata: # kpt-merge: default/x\n  name: x\n",
            id="mapping",
        ),
        pytest.param(
            "metadata: {name: x}\n",
            ("metadata",),
            "# kpt-merge: default/x",
            "metadata: {name: x} # kpt-merge: default/x\n",
            id="flow-mapping",
        ),
        pytest.param("a:\n- x\n", ("a",), "# c", "a: # c\n- x\n", id="list"),
        pytest.param("a:\n- x\n", ("a", 0), "# c", "a:\n- x # c\n", id="item"),
        pytest.param("a:\n-\n  x: 1\n", ("a", 0), "# c", "a:\n- # c\n  x: 1\n", id="item-below-its-dash"),
        pytest.param("a: &x\n  b: 1\n", ("a",), "# c", "a: &x # c\n  b: 1\n", id="behind-an-anchor"),
        pytest.param("a: |\n  x\n", ("a",), "# c", "a: | # c\n  x\n", id="block-scalar"),
        pytest.param("a:\nb: 1\n", ("a",), "# c", "a: # c\nb: 1\n", id="nothing"),
        pytest.param("a: [\n  x,\n  y\n]\n", ("a", 0), "# c", "a: [\n  x, # c\n  y\n]\n", id="behind-the-comma"),
        pytest.param("a: x\r\nb: 1\r\n", ("a",), "# c", "a: x # c\r\nb: 1\r\n", id="crlf"),
        pytest.param("a: x", ("a",), "# c", "a: x # c", id="no-line-end"),
        pytest.param("a: x\n  y\n", ("a",), "# c", "a: x\n  y # c\n", id="text-over-lines"),
        pytest.param("a: 1 \n", ("a",), "# c", "a: 1 # c \n", id="trailing-blank"),
    ],
)
def test_with_comment(text: str, path: tuple[Any, ...], comment: str | None, expected: str) -> None:
    document = parse_yaml(text).documents[0]

    edited = document.with_comment(path, comment)

    assert edited.text == expected
    assert edited.comment(path) == comment
    assert edited.data == document.data
    assert edited.with_comment(path, comment) is edited


@pytest.mark.parametrize(
    ("text", "path", "comment"),
    [
        pytest.param("a: 1\n", ("b",), "# c", id="no-such-key"),
        pytest.param("a: [x]\n", ("a", 1), "# c", id="no-such-item"),
        pytest.param("a: [x]\n", ("a", 0), "# c", id="inside-a-flow-list-on-one-line"),
        pytest.param("- a: 1\n", (0,), "# c", id="a-mapping-beside-its-dash"),
        pytest.param("a: 1\n", (), "# c", id="a-whole-block-document"),
        pytest.param("a: 1\n", ("a",), "c", id="no-hash"),
        pytest.param("a: 1\n", ("a",), "# c\nb: 2", id="two-lines"),
        pytest.param("a: 1\n", ("a",), "# c\u2028b: 2", id="an-odd-line-end"),
        pytest.param("a: 1\n", ("a",), "# c\x00", id="a-control-character"),
        pytest.param("a: 1\n", ("a", "b"), "# c", id="below-a-scalar"),
    ],
)
def test_comment_without_position_is_refused(text: str, path: tuple[Any, ...], comment: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text).documents[0].with_comment(path, comment)

    assert caught.value.code == "YamlComment"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param((), 4, id="the-document"),
        pytest.param(("a",), 4, id="key"),
        pytest.param(("a", "b"), 6, id="nested-key"),
        pytest.param(("a", "b", 1), 8, id="item"),
        pytest.param(("a", "b", 1, "d"), 9, id="key-in-an-item"),
        pytest.param(("a", "x", "y"), 4, id="absent-nearest-ancestor"),
        pytest.param(("a", "b", 7), 6, id="absent-item"),
        pytest.param(("e", "f"), 10, id="behind-an-alias"),
        pytest.param(("g", "c"), 12, id="merged-key"),
        pytest.param(("g", "h"), 13, id="own-key-beside-a-merge"),
    ],
)
def test_find_line(path: tuple[Any, ...], line: int) -> None:
    text = "z: 1\n---\n# head\na: &a\n  # head\n  b:\n  - x\n  - c: 1\n    d: 2\ne: *a\ng:\n  <<: {c: 1}\n  h: 2\n"

    assert parse_yaml(text).documents[1].find_line(path) == line
