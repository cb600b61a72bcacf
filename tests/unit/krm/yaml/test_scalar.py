"""Tests of formatted scalars: every YAML parser reads the same value."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from reconciler.krm.yaml import YamlError, emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.krm.yaml.emit import format_block_scalar, format_scalar
from tests.support.examples import examples

AWKWARD_WORDS = """y n yes No ON off true False null ~ Null 1 0 -1 +1 0644 0o644 0x1F 0b11 1_000 08
09 1e3 1E3 +.5 .5 5. 1.0 .inf
-.INF .nan 12:30 12:30:45 1:1 190:20:30.15 2024-01-01 2024-1-1
2001-12-14t21:59:43.10-05:00 = << - ? : -- --- ... -a ?a :a
a: a:b a#b # #a &a *a !a !!str |a >a %a @a `a [a] {a} , a,b 'a' "a" it's \\ \\n 1.2.3 10.0.0.1 8080/tcp 1,000 0x 0b 0o
+ . .. 1. 1.e+3 e3 1e 0_ _0 .e3 -.5 +1_0 ~a nul Yes! 1__0 0b2 0o8 0x_1 +12:30 v1 1m 100m 1Gi"""
AWKWARD = AWKWARD_WORDS.split()
SPACED = [
    "",
    " ",
    " a",
    "a ",
    "a  b",
    "a: b",
    "a #b",
    "a\tb",
    "\ta",
    "- a",
    "? a",
    "a:\tb",
    "\x85",
    "a\u2028b",
    "\ufeff",
    "\ufeffa",
    "\U0001f600",
    "\x7f",
    "\x00",
    "a\x1bb",
    "\xa0",
    "2024-01-01 10:00:00",
    "a\\",
    "\u00fc",
    "\ud7ff",
    "\uffff",
]
LINES = [
    "a\nb",
    "a\n",
    "a\n\n",
    "\na",
    "\n",
    "\n\n",
    " a\nb",
    "a\n b",
    "a \nb",
    "a\n\nb",
    "a\n\tb",
    "\ta\nb",
    "a\r\nb",
    "a\rb",
    "# a\nb",
    "---\na",
    "a\n---\n",
    "a\n...",
    "a\n ",
    "a\n \nb",
    "- a\n- b\n",
    "a\n\n\n\n",
    "a: b\nc: d\n",
    "%a\nb",
]


def read_yaml_1_1(text: str) -> Any:
    return yaml.safe_load(text)


def read_yaml_1_2(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def read_own_yaml(text: str) -> Any:
    return parse_yaml(text).documents[0].data


READERS = [
    pytest.param(read_yaml_1_1, id="yaml-1.1"),
    pytest.param(read_yaml_1_2, id="yaml-1.2"),
    pytest.param(read_own_yaml, id="ours"),
]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", [pytest.param(text, id=repr(text)) for text in [*AWKWARD, *SPACED, *LINES]])
def test_strings_stay_strings_for_every_parser(read: Any, value: str) -> None:
    data = {"key": value, "list": [value, {"in": value}], value: 1}

    assert read(emit(data)) == data


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", [pytest.param(text, id=repr(text)) for text in [*AWKWARD, *SPACED, *LINES]])
def test_strings_in_flow_collections(read: Any, value: str) -> None:
    plain, single, double = (format_scalar(value, flow=True, style=style) for style in ("", "'", '"'))

    assert read(f"a: [{plain}, {{{plain}: {single}}}, {double}]\n") == {"a": [value, {value: value}, value]}


NUMBERS = [0, -1, 420, 2**64, 1.0, -0.5, 1e16, 1e-7, 1.5e300, -2e-300, math.inf, -math.inf, None, True, False]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", [pytest.param(value, id=repr(value)) for value in NUMBERS])
def test_other_types_keep_their_type(read: Any, value: Any) -> None:
    assert is_equal_data(read(emit({"a": value, "b": [value]})), {"a": value, "b": [value]})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("nginx:1.2", "nginx:1.2", id="image"),
        pytest.param("--flag=x", "--flag=x", id="flag"),
        pytest.param("a b (c)", "a b (c)", id="sentence"),
        pytest.param("/etc/x", "/etc/x", id="path"),
        pytest.param("10.0.0.1", "10.0.0.1", id="address"),
        pytest.param("1.2.3", "1.2.3", id="version"),
        pytest.param("100m", "100m", id="quantity"),
        pytest.param("on", '"on"', id="1.1-boolean-is-quoted"),
        pytest.param("1e3", '"1e3"', id="1.2-number-is-quoted"),
        pytest.param("*.example.com", '"*.example.com"', id="wildcard-is-quoted"),
        pytest.param("caf\u00e9", "caf\u00e9", id="letters-of-other-languages"),
    ],
)
def test_quotes_are_used_only_where_needed(value: str, expected: str) -> None:
    assert format_scalar(value, flow=False) == expected


@pytest.mark.parametrize("value", [object(), b"x", {1, 2}, (1,), {1: 2}, {None: 1}, "\ud800", {"\ud800": 1}])
def test_value_without_yaml_form_is_refused(value: Any) -> None:
    with pytest.raises(YamlError) as caught:
        emit({"a": [value]})

    assert caught.value.code == "YamlValue"


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        pytest.param("a\nb\n", "|", ("|", ["a", "b"]), id="literal"),
        pytest.param("a\nb", "|", ("|-", ["a", "b"]), id="no-last-line-end"),
        pytest.param("a\n\n", "|", ("|+", ["a", ""]), id="several-last-line-ends"),
        pytest.param("a\nb\n", ">", (">", ["a", "", "b"]), id="folded"),
        pytest.param("a\n b\n", ">", ("|", ["a", " b"]), id="folding-gives-way-to-indentation"),
        pytest.param(" a", "|", None, id="blank-first"),
        pytest.param("a \nb", "|", None, id="blank-last"),
        pytest.param("\n", "|", None, id="only-a-line-end"),
        pytest.param("a\x85b", "|", None, id="odd-line-end"),
    ],
)
def test_format_block_scalar(text: str, style: str, expected: Any) -> None:
    assert format_block_scalar(text, style) == expected


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.sampled_from(["", "'", '"', "|", ">"]))
def test_any_text_in_any_style(text: str, style: str) -> None:
    source = {"'": "a: 'x'\n", '"': 'a: "x"\n', "|": "a: |\n  x\n", ">": "a: >\n  x\n", "": "a: x\n"}[style]

    edited = parse_yaml(source + "b: 1\n").documents[0].with_data({"a": text, "b": 1})

    assert read_yaml_1_1(edited.text) == read_own_yaml(edited.text) == {"a": text, "b": 1}
