"""Tests of YAML parsing: data, refused texts with their position, and limits for hostile files."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.yaml import YamlError, YamlLimits, parse_yaml


def parse_data(text: str) -> Any:
    return parse_yaml(text).documents[0].data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("80: x\ntrue: y\n", {"80": "x", "true": "y"}, id="keys-become-strings"),
        pytest.param("on: x\n", {"true": "x"}, id="a-key-is-resolved-first"),
        pytest.param("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}, id="alias"),
        pytest.param("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}, id="the-latest-anchor-counts"),
        pytest.param("a: &k b\n*k : c\n", {"a": "b", "b": "c"}, id="alias-as-key"),
        pytest.param(
            "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\n",
            {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}},
            id="merge-key-own-wins",
        ),
        pytest.param(
            "- &x {a: 1}\n- &y {a: 2, b: 2}\n- <<: [*x, *y]\n",
            [{"a": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}],
            id="merge-list-first-wins",
        ),
        pytest.param("'<<': 1\nb: <<\n", {"<<": 1, "b": "<<"}, id="quoted-or-as-a-value-it-merges-nothing"),
        pytest.param("a: {\n  b: [\n    1\n  ]\n}\n", {"a": {"b": [1]}}, id="flow-over-lines"),
        pytest.param("a: [\n1\n]\n", {"a": [1]}, id="closing-bracket-at-the-keys-column"),
        pytest.param("a:\n- b\n", {"a": ["b"]}, id="compact-sequence"),
        pytest.param("a: |\n  x", {"a": "x"}, id="block-scalar-without-a-last-line-end"),
        pytest.param("scalar", "scalar", id="scalar-document"),
        pytest.param("--- ~\n", None, id="an-explicit-null-is-a-document"),
        pytest.param('{"a": [1, 2.5, null, true, "\\u00fc"]}', {"a": [1, 2.5, None, True, "\u00fc"]}, id="json"),
        pytest.param("? a\n: b\n", {"a": "b"}, id="question-mark"),
        pytest.param("a: \U0001f600\n", {"a": "\U0001f600"}, id="beyond-the-basic-plane"),
    ],
)
def test_data(text: str, expected: Any) -> None:
    assert parse_data(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        pytest.param("a: b: c\n", "YamlSyntax", 1, 5, id="two-colons"),
        pytest.param("a: 1\n---\n\tb: 1\n", "YamlSyntax", 3, 1, id="a-tab-in-the-second-document"),
        pytest.param("a: 1\nb: [\n", "YamlSyntax", 3, 1, id="never-closed"),
        pytest.param("a: 1\nb: x\x07\n", "YamlSyntax", 2, 5, id="control-character"),
        pytest.param("a: 1\nb: \ud800\n", "YamlSyntax", 2, 4, id="lone-surrogate"),
        pytest.param("a: *x\n", "YamlAliases", 1, 4, id="alias-to-nothing"),
        pytest.param("a: &x 1\n---\nb: *x\n", "YamlAliases", 3, 4, id="anchors-end-with-their-document"),
        pytest.param("a: &x\n- *x\n", "YamlAliases", 2, 3, id="alias-inside-its-own-anchor"),
        pytest.param("a: 1\nb: 2\na: 3\n", "YamlDuplicateKey", 3, 1, id="duplicate-key"),
        pytest.param("1: a\n'1': b\n", "YamlDuplicateKey", 2, 1, id="duplicate-once-they-are-strings"),
        pytest.param("x: {<<: {}, <<: {}}\n", "YamlDuplicateKey", 1, 13, id="duplicate-merge-key"),
        pytest.param("<<: 1\n", "YamlMerge", 1, 5, id="merge-of-a-number"),
        pytest.param("<<: [{a: 1}, x]\n", "YamlMerge", 1, 5, id="merge-of-a-list-with-text"),
        pytest.param("~: a\n", "YamlKey", 1, 1, id="null-key"),
        pytest.param("? [a]\n: b\n", "YamlKey", 1, 3, id="list-as-key"),
        pytest.param("? {a: 1}\n: b\n", "YamlKey", 1, 3, id="mapping-as-key"),
        pytest.param("{{ .Values.x }}\n", "YamlKey", 1, 2, id="a-template"),
        pytest.param(b"a: 1\nb: \xff\n", "YamlEncoding", 2, 1, id="not-utf-8"),
        pytest.param("a: 1".encode("utf-16"), "YamlEncoding", 1, 1, id="utf-16"),
        pytest.param("a: 1\nb\nc: 2\n", "YamlSyntax", 3, 1, id="a-key-without-colon"),
    ],
)
def test_invalid_yaml_is_refused_with_its_position(text: str | bytes, code: str, line: int, column: int) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)

    assert (caught.value.code, caught.value.line, caught.value.column) == (code, line, column)
    assert str(caught.value).startswith(f"line {line}, column {column}: ")


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("[" * 1_000_000, "YamlTooDeep", id="a-million-brackets"),
        pytest.param("{a: " * 200_000, "YamlTooDeep", id="many-braces"),
        pytest.param("- " * 500_000, "YamlTooDeep", id="many-dashes-on-a-line"),
        pytest.param("? " * 500_000, "YamlTooDeep", id="many-question-marks"),
        pytest.param("".join(" " * depth + "a:\n" for depth in range(1_000)), "YamlTooDeep", id="a-staircase"),
        pytest.param(BOMB, "YamlAliases", id="billion-laughs"),
        pytest.param(CHAIN, "YamlTooDeep", id="depth-through-aliases"),
        pytest.param("a: &a 1\nb: [" + "*a, " * 1_001 + "]", "YamlAliases", id="many-aliases"),
        pytest.param("---\n" * 10_000, "YamlDocuments", id="many-empty-documents"),
        pytest.param("a: 1\n---\n" * 2_001, "YamlDocuments", id="many-documents"),
        pytest.param("a: 1\n...\n" * 2_001, "YamlDocuments", id="many-document-ends"),
        pytest.param("#" * (4 * 1024 * 1024 + 1), "YamlTooLarge", id="large"),
    ],
)
def test_limits(text: str, code: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)

    assert caught.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100 + "]" * 100, id="a-hundred-levels"),
        pytest.param("a: '" + "[" * 100_000 + "'\n", id="brackets-in-quotes"),
        pytest.param("# " + "{" * 100_000 + "\na: 1\n", id="brackets-in-a-comment"),
        pytest.param("a: |\n" + "  [[[[[[[[[[{{{{{\n" * 10_000, id="brackets-in-a-block-scalar"),
        pytest.param("a:\n" + "- [x]\n" * 10_000, id="many-shallow-lists"),
        pytest.param("# " + "- " * 100_000 + "\na: 1\n", id="dashes-in-a-comment"),
        pytest.param("a: &a 1\nb: [" + "*a, " * 1_000 + "]", id="a-thousand-aliases"),
        pytest.param("a: 1\n---\n" * 2_000, id="two-thousand-documents"),
    ],
)
def test_text_within_limits_is_read(text: str) -> None:
    assert parse_yaml(text).to_bytes() == text.encode()


def test_limits_can_be_lowered() -> None:
    with pytest.raises(YamlError, match="at most 2 levels"):
        parse_yaml("a: {b: {c: 1}}", YamlLimits(depth=2))


def test_alias_limit_applies_to_the_whole_file() -> None:
    document = "a: &a 1\nb: *a\n---\n"

    with pytest.raises(YamlError, match="at most 3 aliases"):
        parse_yaml(document * 4, YamlLimits(aliases=3))


def test_aliases_are_counted_in_every_file() -> None:
    text, limits = "a: &x 1\nb: [*x, *x]\n", YamlLimits(aliases=2)

    assert [parse_yaml(text, limits).documents[0].data for _ in range(2)] == [{"a": 1, "b": [1, 1]}] * 2
    with pytest.raises(YamlError, match="at most 1 aliases"):
        parse_yaml(text, YamlLimits(aliases=1))


def test_cached_text_is_checked_against_lower_limits() -> None:
    text = "a: [[1]]\n"

    assert parse_data(text) == {"a": [[1]]}
    with pytest.raises(YamlError, match="at most 2 levels"):
        parse_yaml(text, YamlLimits(depth=2))
