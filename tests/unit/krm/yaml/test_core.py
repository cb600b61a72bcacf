"""Tests of the core schema of YAML 1.2: scalars, and documents as data."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.krm.yaml import YamlError, YamlLimits, read_core_yaml
from reconciler.krm.yaml.file import resolve_core_scalar


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(pytest.param(text, True, id=f"true-{text}") for text in ("true", "True", "TRUE")),
        *(pytest.param(text, False, id=f"false-{text}") for text in ("false", "False", "FALSE")),
        *(pytest.param(text, text, id=f"string-{text}") for text in ("yes", "No", "on", "OFF", "y", "tRUE", "nULL")),
        *(pytest.param(text, None, id=f"null-{text or 'empty'}") for text in ("", "~", "null", "Null", "NULL")),
        pytest.param("0644", 644, id="leading-zeros-are-decimal"),
        pytest.param("08", 8, id="no-octal-digit-either"),
        pytest.param("0o644", 420, id="octal"),
        pytest.param("-0o644", "-0o644", id="no-sign-before-octal"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("0b101", "0b101", id="no-binary"),
        pytest.param("1_000", "1_000", id="no-underscores"),
        pytest.param("+12", 12, id="plus"),
        pytest.param("-0", 0, id="minus-zero"),
        pytest.param("18446744073709551616", 2**64, id="beyond-64-bits"),
        pytest.param("9" * 5_000, "9" * 5_000, id="beyond-reason-is-text"),
        pytest.param("1.10", 1.1, id="version-of-two-parts"),
        pytest.param("1.2.3", "1.2.3", id="version-of-three-parts"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("1.", 1.0, id="point-last"),
        pytest.param("-.5", -0.5, id="point-first"),
        pytest.param("1e400", "1e400", id="too-large-a-float"),
        pytest.param(".inf", math.inf, id="infinity"),
        pytest.param("-.Inf", -math.inf, id="minus-infinity"),
        pytest.param("12:30:45", "12:30:45", id="no-base-60"),
        pytest.param("2024-01-01", "2024-01-01", id="no-date"),
        pytest.param("1\u0660", "1\u0660", id="digit-of-another-script"),
        pytest.param("1\n", "1\n", id="line-end-behind"),
    ],
)
def test_plain_scalars(text: str, expected: Any) -> None:
    value = resolve_core_scalar(text)

    assert (type(value), value) == (type(expected), expected)


def test_nan() -> None:
    assert math.isnan(resolve_core_scalar(".nan"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("# only a comment\n", None, id="only-a-comment"),
        pytest.param("---\nyes\n", "yes", id="behind-a-marker"),
        pytest.param("a: no\nb: 'no'\nc: [0o10, \"1\"]\n", {"a": "no", "b": "no", "c": [8, "1"]}, id="collections"),
        pytest.param("{yes: 1, 1: 2, 010: 3}", {"yes": 1, "1": 2, "10": 3}, id="keys-are-texts"),
        pytest.param("x: &a {k: off}\ny: *a", {"x": {"k": "off"}, "y": {"k": "off"}}, id="alias"),
        pytest.param("[!!int '010', !!str 010, !x yes]", [10, "010", "yes"], id="tags"),
        pytest.param("|\n  1\n", "1\n", id="block-scalars-are-texts"),
    ],
)
def test_documents(text: str, expected: Any) -> None:
    assert read_core_yaml(text) == expected


def read_data_or_code(text: str) -> Any:
    try:
        return read_core_yaml(text)
    except YamlError as error:
        return error.code


@given(st.text("aefotruAEx019._:/-#", min_size=1, max_size=8))
@example("1.0")
@example("0x1f")
@example("true")
@example("a:")
def test_single_word_has_the_same_value_after_a_comment(word: str) -> None:
    """Single words have a fast path that does not use the YAML parser."""
    assert repr(read_data_or_code(word)) == repr(read_data_or_code(f"# a comment\n{word}"))


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param("a: }", "YamlSyntax", 1, id="no-yaml"),
        pytest.param("!!bool yes", "YamlTag", 1, id="tag-of-another-type"),
        pytest.param("a: 1\na: 2\n", "YamlDuplicateKey", 2, id="key-twice"),
        pytest.param("yes: 1\ntrue: 2\n", "YamlDuplicateKey", 2, id="keys-that-kubernetes-takes-for-one"),
        pytest.param("a: 1\n---\nb: 2\n", "YamlDocuments", 3, id="two-documents"),
        pytest.param("a: [[[1]]]", "YamlTooDeep", 1, id="too-deep"),
    ],
)
def test_invalid_core_yaml_is_refused_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        read_core_yaml(text, YamlLimits(depth=3))

    assert (caught.value.code, caught.value.line) == (code, line)
