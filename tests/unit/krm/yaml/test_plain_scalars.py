"""Tests of the resolution of plain scalars, tags and keys."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.krm.yaml.resolve import convert_key_to_text, resolve_plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(pytest.param(text, True, id=f"true-{text}") for text in ("true", "True", "TRUE", "yes", "Yes", "on", "ON")),
        *(pytest.param(text, False, id=f"false-{text}") for text in ("false", "no", "NO", "off", "Off")),
        *(pytest.param(text, text, id=f"string-{text}") for text in ("y", "Y", "n", "N", "tRUE", "oN", "nULL")),
        *(pytest.param(text, None, id=f"null-{text or 'empty'}") for text in ("", "~", "null", "Null", "NULL")),
        pytest.param("0644", 420, id="legacy-octal"),
        pytest.param("0o644", 420, id="octal"),
        pytest.param("-0644", -420, id="negative-octal"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("1_000", 1000, id="underscore"),
        pytest.param("0_7", 7, id="underscore-in-octal"),
        pytest.param("1__0_", 10, id="underscores-anywhere"),
        pytest.param("_1", "_1", id="underscore-first-is-text"),
        pytest.param("+12", 12, id="plus"),
        pytest.param("0", 0, id="zero"),
        pytest.param("08", 8.0, id="no-octal-digit-is-a-float-for-go"),
        pytest.param("18446744073709551616", 2**64, id="beyond-64-bits"),
        pytest.param("9" * 5_000, "9" * 5_000, id="beyond-reason-is-text"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("1.", 1.0, id="point-last"),
        pytest.param(".5", 0.5, id="point-first"),
        pytest.param("+.5", 0.5, id="sign-and-point"),
        pytest.param("._5", "._5", id="point-and-underscore"),
        pytest.param("1e400", "1e400", id="too-large-a-float"),
        pytest.param(".inf", math.inf, id="infinity"),
        pytest.param("-.Inf", -math.inf, id="minus-infinity"),
        pytest.param("12:30", "12:30", id="no-base-60"),
        pytest.param("12:30:45", "12:30:45", id="no-base-60-at-all"),
        pytest.param("2024-01-01", "2024-01-01", id="no-date"),
        pytest.param("=", "=", id="equals-sign"),
        pytest.param("<<", "<<", id="merge-sign"),
        pytest.param("1.2.3", "1.2.3", id="version"),
        pytest.param("0x", "0x", id="hexadecimal-without-digits"),
        pytest.param("1\u0660", "1\u0660", id="digit-of-another-script"),
        pytest.param("-", "-", id="sign-alone"),
        pytest.param("1\n", "1\n", id="line-end-behind"),
    ],
)
def test_plain_scalars(text: str, expected: Any) -> None:
    value = resolve_plain(text)

    assert (type(value), value) == (type(expected), expected)


def test_nan() -> None:
    assert math.isnan(resolve_plain(".NaN"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("!!str 12", "12", id="str"),
        pytest.param("!!int '0644'", 420, id="int-in-quotes"),
        pytest.param("!!float 1", 1.0, id="float-of-an-int"),
        pytest.param("!!bool 'yes'", True, id="bool-in-quotes"),
        pytest.param("!!null ''", None, id="null-in-quotes"),
        pytest.param("!!str", "", id="empty-str"),
        pytest.param("!!binary aGkK", "hi\n", id="binary-is-decoded"),
        pytest.param("!!timestamp 2024-01-01", "2024-01-01", id="timestamp-is-text"),
        pytest.param("! 12", "12", id="non-specific"),
        pytest.param("!vault 12", "12", id="unknown-tag-on-a-scalar-is-text"),
        pytest.param("!t {a: 12}", {"a": 12}, id="unknown-tag-on-a-mapping-is-ignored"),
        pytest.param("!!set {a, b}", {"a": None, "b": None}, id="set-is-its-mapping"),
    ],
)
def test_tags(text: str, expected: Any) -> None:
    value = parse_yaml(f"v: {text}\n").documents[0].data["v"]

    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    "text", ["!!int x", "!!float x", "!!bool 1", "!!null x", "!!int 1.5", "!!binary '*'", "!!binary /w=="]
)
def test_tags_that_contradict_their_text(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(f"a: 1\nv: {text}\n")

    assert (caught.value.code, caught.value.line, caught.value.column) == ("YamlTag", 2, 4)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(80, "80", id="integer"),
        pytest.param(True, "true", id="boolean"),
        pytest.param(1.5, "1.5", id="float"),
        pytest.param(1000.0, "1000", id="whole-float"),
        pytest.param(1e6, "1e+06", id="six-digits-turn-to-an-exponent"),
        pytest.param(123456.0, "123456", id="less-than-a-million"),
        pytest.param(0.0001, "0.0001", id="four-zeros"),
        pytest.param(0.00001, "1e-05", id="five-zeros-turn-to-an-exponent"),
        pytest.param(0.1, "0.1", id="shortest-for-32-bits"),
        pytest.param(-2.25, "-2.25", id="negative"),
        pytest.param(0.0, "0", id="zero"),
        pytest.param(3.4028234663852886e38, "3.4028235e+38", id="the-largest-of-32-bits"),
        pytest.param(1e300, ".inf", id="too-large-for-32-bits"),
        pytest.param(-math.inf, "-.inf", id="minus-infinity"),
        pytest.param(math.nan, ".nan", id="nan"),
    ],
)
def test_keys_have_the_spelling_of_kubernetes(value: Any, expected: str) -> None:
    assert convert_key_to_text(value) == expected
