"""Tests of documents: equal data changes no text, and every edit produces the requested data."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reconciler.krm.yaml import Document, YamlError, emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data


def parse_document(text: str) -> Document:
    return parse_yaml(text).documents[0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("b: 1\na: {d: [1, 2.0, x], c: null}\n", id="mapping"),
        pytest.param("- 0644\n- .nan\n- -0.0\n", id="numbers"),
        pytest.param("a: &x {b: 1}\nc: *x\n", id="aliases"),
    ],
)
def test_equal_data_gives_the_same_document(text: str) -> None:
    before = parse_document(text)

    assert before.with_data(copy.deepcopy(before.data)) is before


def test_order_of_existing_keys_is_not_data() -> None:
    before = parse_document("a: 1\nb: 2\n")

    assert before.with_data({"b": 2, "a": 1}) is before


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("? a\n: b\nc: 1 # c\n", {"c": 1}, id="a-key-with-a-question-mark-goes"),
        pytest.param("# head\n? a\n:\n  b: 1\nc: 1\n", {"a": {}, "c": 1}, id="below-a-question-mark"),
        pytest.param("a: {b: 1, # b\n  c: 2\n}\n", {"a": {"c": 2}}, id="flow-items-with-comments"),
        pytest.param("--- {a: 1}\n", {"b": [1]}, id="a-root-beside-its-separator"),
        pytest.param("--- !t\na: 1\n", {}, id="a-tagged-root"),
        pytest.param("a: &x !!str 1\nb: *x\n", {"a": 2, "b": "1"}, id="a-core-tag-beside-an-anchor"),
        pytest.param("a: 0644\n? b\n: 12:30\n", {"a": 420}, id="octal-where-ruamel-reads-decimal"),
        pytest.param("on: 1\n? b\n: 2\n", {"true": 1}, id="a-key-that-ruamel-reads-otherwise"),
        pytest.param("a: 1\x85b: 2\n", {"b": 3}, id="odd-line-ends"),
    ],
)
def test_edit_that_needs_a_complete_rewrite_has_the_requested_data(text: str, data: Any) -> None:
    edited = parse_document(text).with_data(data)

    assert is_equal_data(edited.data, data)
    assert is_equal_data(parse_document(edited.text).data, data)


def test_rewrite_with_ruamel_keeps_comments() -> None:
    edited = parse_document("# head\n? a\n: b\nc: 1 # c\n# foot\n").with_data({"c": 1})

    assert edited.text == "# head\nc: 1 # c\n# foot\n"


def test_complete_rewrite_keeps_the_head_comment_and_the_line() -> None:
    # ruamel.yaml treats 1 and true as the same key.
    before = parse_yaml("x: 1\n---\n# licence\n? a\n: 1\n1: x\ntrue: x\n").documents[1]

    edited = before.with_data({"1": "x", "true": "x"})

    assert (edited.text, edited.line) == ('# licence\n"1": x\n"true": x\n', before.line)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param({"a": object()}, "YamlValue", id="object"),
        pytest.param({"a": (1,)}, "YamlValue", id="tuple"),
        pytest.param({"a": 1, 2: 3}, "YamlValue", id="number-as-key"),
        pytest.param({"a": {"b": "\ud800"}}, "YamlValue", id="surrogate"),
    ],
)
def test_data_without_yaml_form_is_refused(data: Any, code: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_document("a: 1\n").with_data(data)

    assert caught.value.code == code


def test_too_deep_data_is_refused() -> None:
    data: Any = 1
    for _ in range(101):
        data = {"a": data}

    with pytest.raises(YamlError) as caught:
        parse_document("a: 1\n").with_data(data)

    assert caught.value.code == "YamlTooDeep"


def test_new_document() -> None:
    fresh = Document.from_data({"b": [1, {"x": "on"}], "a": {}})

    assert fresh.text == 'b:\n- 1\n- x: "on"\na: {}\n'
    assert (fresh.data, fresh.line) == ({"b": [1, {"x": "on"}], "a": {}}, 1)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"a": [], "b": {}, "c": None, "d": ""}, 'a: []\nb: {}\nc: null\nd: ""\n', id="empty-values"),
        pytest.param(
            {"a": {"b": {"c": [1, [2, 3], {"d": 4, "e": [5]}]}}},
            "a:\n  b:\n    c:\n    - 1\n    - - 2\n      - 3\n    - d: 4\n      e:\n      - 5\n",
            id="nested",
        ),
        pytest.param({"a": "x\n\n  y\n", "b": ["p\nq"]}, "a: |\n  x\n\n    y\nb:\n- |-\n  p\n  q\n", id="lines"),
        pytest.param([{"a": "x\ny\n"}], "- a: |\n    x\n    y\n", id="lines-in-an-item"),
        pytest.param("x\ny\n", "|\n  x\n  y\n", id="lines-alone"),
        pytest.param([], "[]\n", id="empty-list"),
        pytest.param(None, "null\n", id="null"),
        pytest.param({"y": 1, "80": 2, "": 3, "a b": 4}, '"y": 1\n"80": 2\n"": 3\na b: 4\n', id="keys"),
    ],
)
def test_emit(data: Any, expected: str) -> None:
    assert emit(data) == expected
    assert is_equal_data(parse_document(expected).data, data)


def test_key_that_is_too_long_for_one_line() -> None:
    data = {"k" * 3_000: {"a": [1]}, "l" * 3_000: [1], "m" * 3_000: 1, "n" * 3_000: "x\ny\n"}

    assert is_equal_data(parse_document(emit(data)).data, data)


@pytest.mark.parametrize(
    ("text", "number", "alone"),
    [
        pytest.param("# licence\na: 1 # one\n", 0, "# licence\na: 1 # one\n", id="the-whole-file"),
        pytest.param("a: 1", 0, "a: 1\n", id="an-end-that-was-missing"),
        pytest.param("a: 1\n---\n# second\nb: 'x'\n---\nc: 3\n", 1, "# second\nb: 'x'\n", id="out-of-the-middle"),
        pytest.param("a: 1\n\n  \n---\nb: 2\n", 0, "a: 1\n", id="without-blank-lines-at-its-end"),
        pytest.param("a: 1  \n\n", 0, "a: 1  \n", id="with-blanks-of-its-last-line"),
        pytest.param("a: |+\n  x\n\n---\nb: 2\n", 0, "a: |+\n  x\n\n", id="but-with-those-that-are-content"),
        pytest.param("a: |\n  x \n  y", 0, "a: |\n  x \n  y", id="a-block-scalar-without-an-end-gets-none"),
        pytest.param("a: 1\r\nb: 2\r\n\r\n", 0, "a: 1\r\nb: 2\r\n", id="its-own-line-ends"),
        pytest.param("a: 1\r\nb: 2", 0, "a: 1\r\nb: 2\r\n", id="its-own-line-ends-at-the-end"),
        pytest.param("x: 1\n--- {a: 1,\n  b: 2}\n", 1, "{a: 1,\n  b: 2}\n", id="beside-its-separator"),
        pytest.param("%YAML 1.2\n# c\n---\na: 1\n", 0, "# c\na: 1\n", id="without-directives"),
        pytest.param("--- &x\na: 1\n", 0, "&x\na: 1\n", id="an-anchor-beside-its-separator"),
        pytest.param("a: &x {b: 1}\nc: *x\n---\nd: 1\n", 0, "a: &x {b: 1}\nc: *x\n", id="aliases"),
    ],
)
def test_document_without_its_file(text: str, number: int, alone: str) -> None:
    documents = parse_yaml(text).documents[number]

    only_document = documents.as_only_document()

    assert only_document.text == alone
    assert is_equal_data(parse_yaml(alone).documents[0].data, documents.data)
    assert only_document.as_only_document() == only_document


def test_document_keeps_the_directives_that_it_needs() -> None:
    text = "%TAG !k! tag:yaml.org,2002:\n---\na: !k!str 1\n"

    assert parse_document(text).as_only_document().text == text
