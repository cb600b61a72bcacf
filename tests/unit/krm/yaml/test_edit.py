"""Tests of edits: one change of the data and the expected text. Each result is parsed again and edited back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.krm.yaml import Document, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data

Change = Callable[[Any], Any]


def parse_document(text: str) -> Document:
    return parse_yaml(text).documents[0]


def set_value(value: Any, *path: Any) -> Change:
    """Return a change that sets or adds the value at `path`."""

    def change(data: Any) -> None:
        for segment in path[:-1]:
            data = data[segment]
        data[path[-1]] = value

    return change


def delete_value(*path: Any) -> Change:
    def change(data: Any) -> None:
        for segment in path[:-1]:
            data = data[segment]
        del data[path[-1]]

    return change


def insert_item(index: int, value: Any, *path: Any) -> Change:
    def change(data: Any) -> None:
        for segment in path:
            data = data[segment]
        data.insert(index, value)

    return change


def insert_after(sibling: str, key: str, value: Any) -> Change:
    def change(data: Any) -> None:
        items = list(data.items())
        items.insert([name for name, _ in items].index(sibling) + 1, (key, value))
        data.clear()
        data.update(items)

    return change


def combine(*changes: Change) -> Change:
    def change(data: Any) -> None:
        for item in changes:
            item(data)

    return change


def check_edit(text: str, change: Change, expected: str) -> None:
    before = parse_document(text)
    data = copy.deepcopy(before.data)
    change(data)

    after = before.with_data(data)

    assert after.text == expected
    assert is_equal_data(after.data, data)
    assert is_equal_data(parse_document(after.text).data, data)
    assert is_equal_data(after.with_data(before.data).data, before.data)


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        pytest.param("a: 1 # c\nb: 2\n", set_value(5, "a"), "a: 5 # c\nb: 2\n", id="number"),
        pytest.param("a: x\n", set_value("y z", "a"), "a: y z\n", id="plain-stays-plain"),
        pytest.param("a: x\n", set_value("on", "a"), 'a: "on"\n', id="plain-is-quoted-when-it-must"),
        pytest.param("a: 'x'\n", set_value("y", "a"), "a: 'y'\n", id="single-quotes-stay"),
        pytest.param("a: 'x'\n", set_value("it's", "a"), "a: 'it''s'\n", id="single-quotes-are-doubled"),
        pytest.param("a: 'x'\n", set_value("\x01", "a"), 'a: "\\x01"\n', id="single-quotes-give-way-to-escapes"),
        pytest.param('a: "x"\n', set_value('y"', "a"), 'a: "y\\""\n', id="double-quotes-stay"),
        pytest.param('a: "1"\n', set_value(1, "a"), "a: 1\n", id="a-number-loses-the-quotes"),
        pytest.param("a: 1\n", set_value("1", "a"), 'a: "1"\n', id="a-text-of-digits-gains-them"),
        pytest.param("a: 1\n", set_value(True, "a"), "a: true\n", id="one-is-not-true"),
        pytest.param("a: 1\n", set_value(1.0, "a"), "a: 1.0\n", id="one-is-not-one-point-zero"),
        pytest.param(
            "a: 0644 # octal\nb: x\n", set_value("z", "b"), "a: 0644 # octal\nb: z\n", id="octal-stays-as-written"
        ),
        pytest.param("a: x # c\n", set_value(None, "a"), "a: null # c\n", id="null"),
        pytest.param(
            "a:   # c\nb: 1\n", set_value("x", "a"), "a: x   # c\nb: 1\n", id="null-becomes-text-before-its-comment"
        ),
        pytest.param("a:\nb: 1\n", set_value("x", "a"), "a: x\nb: 1\n", id="empty-becomes-text"),
        pytest.param("a: ~\n", set_value({"b": 1}, "a"), "a:\n  b: 1\n", id="null-becomes-a-mapping"),
        pytest.param(
            "a: x # c\nb: 1\n",
            set_value("y\nz\n", "a"),
            "a: | # c\n  y\n  z\nb: 1\n",
            id="text-of-lines-becomes-a-block",
        ),
        pytest.param("a: 'x'\n", set_value("y\nz\n", "a"), 'a: "y\\nz\\n"\n', id="quoted-text-of-lines-stays-quoted"),
        pytest.param(
            "a: | # c\n  x\nb: 1\n", set_value("y\nz\n", "a"), "a: | # c\n  y\n  z\nb: 1\n", id="literal-stays"
        ),
        pytest.param(
            "a: |\n  x\nb: 1\n", set_value("y", "a"), "a: |-\n  y\nb: 1\n", id="literal-without-last-line-end"
        ),
        pytest.param(
            "a: |\n  x\n\n\nb: 1\n",
            set_value(3, "a"),
            "a: 3\n\n\nb: 1\n",
            id="literal-becomes-a-number-blank-lines-stay",
        ),
        pytest.param(
            "a: |+\n  x\n\nb: 1\n", set_value("y\n\n\n", "a"), "a: |+\n  y\n\n\nb: 1\n", id="kept-line-ends-are-content"
        ),
        pytest.param("a: >-\n  x\n  y\n", set_value("y\nz", "a"), "a: >-\n  y\n\n  z\n", id="folded-stays"),
        pytest.param("a: x\n  y\n  z # c\nb: 1\n", set_value("q", "a"), "a: q # c\nb: 1\n", id="plain-over-lines"),
        pytest.param("a:\n  x # c\nb: 1\n", set_value("z", "a"), "a:\n  z # c\nb: 1\n", id="on-the-line-below-its-key"),
        pytest.param("a: x", set_value("z", "a"), "a: z", id="no-line-end-at-the-end"),
        pytest.param("a: x\r\nb: y\r\n", set_value("1\n2\n", "a"), "a: |\r\n  1\r\n  2\r\nb: y\r\n", id="crlf"),
        pytest.param(
            "\u00fc: \U0001f600 # \u2603\nb: 1\n", set_value("x", "\u00fc"), "\u00fc: x # \u2603\nb: 1\n", id="emoji"
        ),
        pytest.param("a: !t x\n", set_value("z", "a"), "a: !t z\n", id="a-foreign-tag-stays"),
        pytest.param("a: !t x\n", set_value(1, "a"), "a: 1\n", id="a-foreign-tag-goes-when-it-would-lie"),
        pytest.param("a: !!str 1\n", set_value("2", "a"), 'a: "2"\n', id="a-core-tag-goes"),
        pytest.param("a: &x 1\n", set_value(2, "a"), "a: &x 2\n", id="an-anchor-stays"),
        pytest.param("x # c\n", lambda data: None, "x # c\n", id="nothing"),
        pytest.param("- a # 1\n- b # 2\n", set_value("c", 1), "- a # 1\n- c # 2\n", id="item"),
        pytest.param("-\n- b\n", set_value("c", 0), "- c\n- b\n", id="empty-item"),
        pytest.param("{a: 1, b: x} # c\n", set_value("y, z", "b"), '{a: 1, b: "y, z"} # c\n', id="in-a-flow-mapping"),
        pytest.param("{a, b: }\n", set_value(1, "a"), "{a: 1, b: }\n", id="flow-key-without-value"),
        pytest.param("{a, b: }\n", set_value(1, "b"), "{a, b: 1}\n", id="flow-key-with-empty-value"),
        pytest.param("a : 1\n", set_value(2, "a"), "a : 2\n", id="blank-before-the-colon"),
        pytest.param("? a\n: b\n", set_value("c", "a"), "? a\n: c\n", id="question-mark"),
        pytest.param("80: x\n", set_value("z", "80"), "80: z\n", id="number-as-key"),
    ],
)
def test_values(text: str, change: Change, expected: str) -> None:
    check_edit(text, change, expected)


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        pytest.param("a: 1\nb: 2\n", set_value(3, "c"), "a: 1\nb: 2\nc: 3\n", id="add-at-the-end"),
        pytest.param("a: 1\nb: 2", set_value(3, "c"), "a: 1\nb: 2\nc: 3", id="add-without-a-last-line-end"),
        pytest.param(
            "a: 1 # c\nb: 2\n", insert_after("a", "x", 3), "a: 1 # c\nx: 3\nb: 2\n", id="add-behind-its-sibling"
        ),
        pytest.param(
            "a: 1\n# head of b\nb: 2\n",
            insert_after("a", "x", 3),
            "a: 1\nx: 3\n# head of b\nb: 2\n",
            id="a-head-stays-with-its-key",
        ),
        pytest.param(
            "a:\n  b: 1\n  # foot\nc: 2\n",
            insert_after("a", "x", 3),
            "a:\n  b: 1\n  # foot\nx: 3\nc: 2\n",
            id="a-foot-too",
        ),
        pytest.param(
            "a: {b: 1}\n",
            set_value({"c": [1, {"d": 2}]}, "x"),
            "a: {b: 1}\nx:\n  c:\n  - 1\n  - d: 2\n",
            id="add-a-tree",
        ),
        pytest.param(
            "a:\n    - 1\nb:\n    c: 1\n",
            set_value({"d": [2]}, "x"),
            "a:\n    - 1\nb:\n    c: 1\nx:\n    d:\n        - 2\n",
            id="add-in-the-documents-indentation",
        ),
        pytest.param(
            "a:\n  b: 1\n\nc: 2\n",
            set_value(3, "a", "x"),
            "a:\n  b: 1\n  x: 3\n\nc: 2\n",
            id="add-before-the-blank-line",
        ),
        pytest.param(
            "a: |\n  x\n\nb: 1\n", insert_after("a", "x", 2), "a: |\n  x\nx: 2\n\nb: 1\n", id="add-behind-a-literal"
        ),
        pytest.param(
            "a: |+\n  x\n\nb: 1\n",
            insert_after("a", "x", 2),
            "a: |+\n  x\n\nx: 2\nb: 1\n",
            id="add-behind-kept-line-ends",
        ),
        pytest.param("a: |\n  x", set_value(2, "b"), "a: |-\n  x\nb: 2\n", id="add-behind-a-literal-without-line-end"),
        pytest.param(
            "a: 1\nb: {}\nc: 2\n", set_value(3, "b", "x"), "a: 1\nb:\n  x: 3\nc: 2\n", id="an-empty-mapping-opens"
        ),
        pytest.param("b: {} # c\n", set_value(3, "b", "x"), "b: # c\n  x: 3\n", id="its-comment-stays-with-the-key"),
        pytest.param("b: []\n", insert_item(0, {"x": 1}, "b"), "b:\n- x: 1\n", id="an-empty-list-opens"),
        pytest.param("- {}\n- 1\n", set_value(2, 0, "x"), "- x: 2\n- 1\n", id="an-empty-item-opens"),
        pytest.param("- {} # c\n", set_value(2, 0, "x"), "- # c\n  x: 2\n", id="an-empty-item-with-a-comment-opens"),
        pytest.param("a: {b: 1}\n", set_value(2, "a", "c"), "a: {b: 1, c: 2}\n", id="add-to-flow"),
        pytest.param(
            "a: {b: {}}\n", set_value(2, "a", "b", "c"), "a: {b: {c: 2}}\n", id="an-empty-mapping-in-flow-stays-flow"
        ),
        pytest.param(
            "a: {\n  b: 1,\n  c: 2\n}\n",
            set_value(3, "a", "d"),
            "a: {\n  b: 1,\n  c: 2,\n  d: 3\n}\n",
            id="add-to-flow-over-lines",
        ),
        pytest.param(
            "a: {\n  b: 1, # b\n  c: 2 # c\n}\n",
            set_value(3, "a", "d"),
            "a: {\n  b: 1, # b\n  c: 2, # c\n  d: 3\n}\n",
            id="add-to-flow-with-comments",
        ),
        pytest.param("a: 1\nb: 2\nc: 3\n", delete_value("b"), "a: 1\nc: 3\n", id="remove"),
        pytest.param(
            "a: 1\n# head\n# more\nb: 2 # c\nc: 3\n", delete_value("b"), "a: 1\nc: 3\n", id="remove-with-its-head"
        ),
        pytest.param(
            "a: 1\n# apart\n\n# head\nb: 2\n", delete_value("b"), "a: 1\n# apart\n\n", id="a-comment-apart-stays"
        ),
        pytest.param("# licence\na: 1\nb: 2\n", delete_value("a"), "# licence\nb: 2\n", id="the-licence-stays"),
        pytest.param(
            "a: 1\nb: 2\nc: 3\n", combine(delete_value("a"), delete_value("b")), "c: 3\n", id="remove-the-first-two"
        ),
        pytest.param("a: 1\nb: 2", delete_value("b"), "a: 1", id="remove-the-last-line"),
        pytest.param(
            "a:\n  b: 1\n  c:\n  - 1\n  - 2\nd: 3\n", delete_value("a", "c"), "a:\n  b: 1\nd: 3\n", id="remove-a-tree"
        ),
        pytest.param(
            "a: # c\n  b: 1\nd: 3\n", delete_value("a", "b"), "a: {} # c\nd: 3\n", id="the-last-key-leaves-braces"
        ),
        pytest.param("- a: 1\n  b: 2\n", delete_value(0, "a"), "- b: 2\n", id="remove-beside-the-dash"),
        pytest.param(
            "- a: 1\n  # head\n  b: 2\n",
            delete_value(0, "a"),
            "-\n  # head\n  b: 2\n",
            id="remove-beside-the-dash-keep-the-head",
        ),
        pytest.param("- a: 1\n- b\n", delete_value(0, "a"), "- {}\n- b\n", id="empty-beside-the-dash"),
        pytest.param(
            "x: {\n  a: 1, # a\n  b: 2, # b\n  c: 3 # c\n}\n",
            delete_value("x", "b"),
            "x: {\n  a: 1, # a\n  c: 3 # c\n}\n",
            id="remove-in-flow-with-comments",
        ),
        pytest.param(
            "x: {\n  a: 1, # a\n  b: 2, # b\n  c: 3 # c\n}\n",
            delete_value("x", "c"),
            "x: {\n  a: 1, # a\n  b: 2, # b\n}\n",
            id="remove-last-in-flow-with-comments",
        ),
        pytest.param(
            "x: {\n  a: 1, # a\n  b: 2, # b\n  c: 3 # c\n}\n",
            combine(delete_value("x", "a"), delete_value("x", "b")),
            "x: {\n  c: 3 # c\n}\n",
            id="remove-first-two-in-flow-with-comments",
        ),
        pytest.param("{a: 1, b: 2, c: 3}\n", delete_value("a"), "{b: 2, c: 3}\n", id="remove-first-in-flow"),
        pytest.param("{a: 1, b: 2, c: 3}\n", delete_value("c"), "{a: 1, b: 2}\n", id="remove-last-in-flow"),
        pytest.param("{a: 1} # c\n", delete_value("a"), "{} # c\n", id="remove-all-in-flow"),
        pytest.param(
            "{a: 1, b: 2}\n",
            combine(delete_value("b"), set_value(3, "c")),
            "{a: 1, c: 3}\n",
            id="remove-and-add-in-flow",
        ),
        pytest.param(
            "a: 1\nb: 2\n", combine(delete_value("b"), set_value(3, "c")), "a: 1\nc: 3\n", id="remove-and-add"
        ),
        pytest.param("- [a: 1, b]\n", set_value(2, 0, 0, "c"), "- [{a: 1, c: 2}, b]\n", id="a-pair-gains-braces"),
        pytest.param(
            "a:\r\n- 1\r\nb: 2\r\n", combine(set_value(3, "c"), delete_value("a")), "b: 2\r\nc: 3\r\n", id="crlf"
        ),
        pytest.param("a: x\nb:\n  c: 1\n", set_value("z", "b"), "a: x\nb: z\n", id="a-mapping-becomes-text"),
        pytest.param(
            "a: # c\n- 1\nb: 2\n", set_value({"x": 1}, "a"), "a: # c\n  x: 1\nb: 2\n", id="a-list-becomes-a-mapping"
        ),
        pytest.param("a: {x: 1} # c\nb: 2\n", set_value([1], "a"), "a: # c\n- 1\nb: 2\n", id="flow-becomes-a-list"),
    ],
)
def test_mappings(text: str, change: Change, expected: str) -> None:
    check_edit(text, change, expected)


NAMED = """env:
# first
- name: a # A
  value: 1
# second
- name: b # B
  value: 2
"""


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        pytest.param("- a # 1\n- b # 2\n", insert_item(2, "c"), "- a # 1\n- b # 2\n- c\n", id="append"),
        pytest.param("- a # 1\n- b # 2\n", insert_item(1, "c"), "- a # 1\n- c\n- b # 2\n", id="in-the-middle"),
        pytest.param(
            "x:\n  # head\n  - a # 1\n  - b\n",
            insert_item(0, "c", "x"),
            "x:\n  - c\n  # head\n  - a # 1\n  - b\n",
            id="in-front-above-the-head",
        ),
        pytest.param("- - a\n  - b\n", insert_item(0, "c", 0), "- - c\n  - a\n  - b\n", id="in-front-beside-a-dash"),
        pytest.param("- a # 1\n- b # 2\n- c # 3\n", delete_value(1), "- a # 1\n- c # 3\n", id="remove"),
        pytest.param("- - a\n  - b\n", delete_value(0, 0), "- - b\n", id="remove-beside-a-dash"),
        pytest.param("x: # c\n- a\nb: 1\n", delete_value("x", 0), "x: [] # c\nb: 1\n", id="remove-all"),
        pytest.param(
            NAMED, delete_value("env", 0), "env:\n# second\n- name: b # B\n  value: 2\n", id="heads-go-with-their-item"
        ),
        pytest.param(
            NAMED,
            insert_item(0, {"name": "z", "value": 0}, "env"),
            "env:\n- name: z\n  value: 0\n" + NAMED[5:],
            id="equal-items-meet",
        ),
        pytest.param(
            NAMED,
            combine(delete_value("env", 0), set_value(5, "env", 0, "value")),
            "env:\n# second\n- name: b # B\n  value: 5\n",
            id="then-items-of-one-name",
        ),
        pytest.param(
            NAMED, set_value("c", "env", 1, "name"), NAMED.replace("name: b", "name: c"), id="then-items-at-one-place"
        ),
        pytest.param(
            "# licence\n- a\n- b\n", insert_item(0, "c"), "# licence\n- c\n- a\n- b\n", id="in-front-below-the-licence"
        ),
        pytest.param("[a, b]\n", insert_item(1, "c"), "[a, c, b]\n", id="flow-in-the-middle"),
        pytest.param("[a, b]\n", insert_item(0, {"c": 1}), "[{c: 1}, a, b]\n", id="flow-in-front"),
        pytest.param("[a, b, c]\n", delete_value(1), "[a, c]\n", id="flow-remove"),
        pytest.param(
            "x: [\n  a,\n  b,\n]\n", insert_item(2, "c", "x"), "x: [\n  a,\n  b,\n  c,\n]\n", id="flow-over-lines"
        ),
        pytest.param(
            "x:\n  - a\n", insert_item(1, ["b", "c"], "x"), "x:\n  - a\n  - - b\n    - c\n", id="a-list-in-a-list"
        ),
        pytest.param("x:\n- a\n", insert_item(1, "b\nc\n", "x"), "x:\n- a\n- |\n  b\n  c\n", id="lines-in-a-list"),
        pytest.param(
            "x:\n- a # c\n", set_value("b\nc\n", "x", 0), "x:\n- | # c\n  b\n  c\n", id="an-item-becomes-lines"
        ),
        pytest.param("- a: 1\n  b: 2\n- c\n", set_value("x", 0), "- x\n- c\n", id="a-mapping-becomes-text"),
        pytest.param(
            "- a # c\n- c\n", set_value({"x": [1]}, 0), "- # c\n  x:\n  - 1\n- c\n", id="text-becomes-a-mapping"
        ),
        pytest.param(
            "-\n  - a\n- # c\n  x: 1\n",
            combine(set_value("b", 0, 0), set_value(2, 1, "x")),
            "-\n  - b\n- # c\n  x: 2\n",
            id="dashes-on-lines-of-their-own",
        ),
    ],
)
def test_lists(text: str, change: Change, expected: str) -> None:
    check_edit(text, change, expected)


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        pytest.param(
            "a: &x {b: 1}\nc: *x\n",
            set_value(2, "c", "b"),
            "a: &x {b: 1}\nc:\n  b: 2\n",
            id="a-change-behind-an-alias-expands-it",
        ),
        pytest.param(
            "a: &x {b: 1}\nc: *x\n",
            set_value({"b": 2}, "a"),
            "a: &x {b: 2}\nc:\n  b: 1\n",
            id="a-change-of-the-anchor-expands-its-users",
        ),
        pytest.param(
            "a: &x {b: 1}\nc: *x\n",
            combine(set_value({"b": 2}, "a"), set_value({"b": 2}, "c")),
            "a: &x {b: 2}\nc: *x\n",
            id="a-change-of-both-leaves-the-alias",
        ),
        pytest.param(
            "a: &x 1\nc: *x\nd: 2\n", delete_value("a"), "c: 1\nd: 2\n", id="an-anchor-that-goes-is-written-out"
        ),
        pytest.param(
            "a: &x 1\nc: [*x, *x] # c\n", set_value(2, "c", 1), "a: &x 1\nc: [*x, 2] # c\n", id="one-use-of-several"
        ),
        pytest.param(
            "x: &x\n  a: 1\n  b: 2\ny:\n  <<: *x # m\n  b: 3\n",
            set_value(5, "y", "a"),
            "x: &x\n  a: 1\n  b: 2\ny:\n  <<: *x # m\n  b: 3\n  a: 5\n",
            id="a-merged-key-is-overridden",
        ),
        pytest.param(
            "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 3\n",
            delete_value("y", "a"),
            "x: &x\n  a: 1\ny:\n  b: 3\n",
            id="a-merged-key-goes-with-its-merge",
        ),
        pytest.param(
            "x: &x\n  a: 1\n  c: 2\ny:\n  <<: *x\n  b: 3\n",
            delete_value("y", "a"),
            "x: &x\n  a: 1\n  c: 2\ny:\n  b: 3\n  c: 2\n",
            id="and-leaves-the-others-written-out",
        ),
        pytest.param(
            "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 3\n",
            set_value(4, "y", "b"),
            "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 4\n",
            id="an-own-key-beside-a-merge",
        ),
        pytest.param(
            "x: &x\n  a: 1\ny:\n  <<: *x\n",
            combine(set_value(2, "x", "a")),
            "x: &x\n  a: 2\ny:\n  <<: *x\n  a: 1\n",
            id="a-change-of-what-is-merged-keeps-the-other",
        ),
    ],
)
def test_aliases(text: str, change: Change, expected: str) -> None:
    """Edit a text that contains several values through aliases. The other values must not change."""
    data = copy.deepcopy(parse_document(text).data)
    # Copies must not share the objects that the parser shares.
    data = {key: copy.deepcopy(value) for key, value in data.items()} if isinstance(data, dict) else data
    if isinstance(data.get("c"), list):
        data["c"] = list(data["c"])
    change(data)

    after = parse_document(text).with_data(data)

    assert after.text == expected
    assert is_equal_data(parse_document(after.text).data, data)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            set_value("on", "a"), '{\n  "a": "on",\n  "b": [\n    1\n  ]\n}\n', id="strings-keep-double-quotes"
        ),
        pytest.param(
            set_value({"x": None}, "c"), '{\n  "a": "x",\n  "b": [\n    1\n  ],\n  "c": {"x": null}\n}\n', id="add"
        ),
        pytest.param(delete_value("b"), '{\n  "a": "x"\n}\n', id="no-comma-is-left-over"),
        pytest.param(insert_item(1, True, "b"), '{\n  "a": "x",\n  "b": [\n    1,\n    true\n  ]\n}\n', id="append"),
        pytest.param(delete_value("b", 0), '{\n  "a": "x",\n  "b": []\n}\n', id="empty"),
    ],
)
def test_json_stays_json(change: Change, expected: str) -> None:
    check_edit('{\n  "a": "x",\n  "b": [\n    1\n  ]\n}\n', change, expected)


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        pytest.param("# head\na: 1\n", [1, 2], "# head\n- 1\n- 2\n", id="mapping-to-list"),
        pytest.param("a: 1\n# foot\n", "x\ny\n", "|\n  x\n  y\n# foot\n", id="mapping-to-lines"),
        pytest.param("a: 1\n", {}, "{}\n", id="mapping-to-nothing"),
        pytest.param("# head\n{} # c\n", {"a": 1}, "# head\na: 1 # c\n", id="nothing-to-mapping"),
        pytest.param("--- # c\na: 1\n", {"b": 2}, "b: 2\n", id="all-keys-new"),
    ],
)
def test_whole_document(text: str, data: Any, expected: str) -> None:
    after = parse_document(text).with_data(data)

    assert after.text == expected
    assert is_equal_data(parse_document(after.text).data, data)
