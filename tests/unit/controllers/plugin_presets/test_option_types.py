"""Tests of the types of option values: accepted values, refused values, and secrets in messages."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reconciler.api.greenhouse_options import (
    OPTION_TYPES,
    OptionType,
    check_default,
    check_pattern,
    check_regex,
    check_type,
)

VALUES: dict[str, tuple[Any, str]] = {
    "text": ("x", "string"),
    "empty-text": ("", "string"),
    "text-like-a-number": ("42", "string"),
    "text-like-a-boolean": ("true", "string"),
    "true": (True, "bool"),
    "false": (False, "bool"),
    "zero": (0, "int"),
    "negative": (-3, "int"),
    "beyond-64-bits": (2**70, "int"),
    "whole-float": (1.0, "int"),
    "whole-exponent": (1e21, "int"),
    "fraction": (1.5, ""),
    "nan": (math.nan, ""),
    "infinity": (math.inf, ""),
    "list": ([1], "list"),
    "empty-list": ([], "list"),
    "map": ({"a": 1}, "map"),
    "empty-map": ({}, "map"),
    "null": (None, ""),
    "vault-path": ("vault+kvv2:///team/smtp", "string secret"),
    "vault-path-in-braces": ("{{vault+kvv2:///team/smtp}}", "string secret"),
    "other-vault": ("vault+kvv1:///team/smtp", "string"),
    "vault-path-in-a-list": (["vault+kvv2:///team/smtp"], "list"),
}


@pytest.mark.parametrize("value", [pytest.param(name, id=name) for name in VALUES])
@pytest.mark.parametrize("expected", OPTION_TYPES)
def test_type_accepts_its_values(expected: OptionType, value: str) -> None:
    data, takers = VALUES[value]

    assert (check_type(expected, data) == "") == (expected in takers.split())


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        pytest.param(
            "string", 8080, "must be a string, but is 8080; put the value in quotes", id="number-for-a-string"
        ),
        pytest.param("string", ["a"], 'must be a string, but is ["a"]', id="list-for-a-string"),
        pytest.param("int", "8080", 'must be a whole number, but is "8080"', id="string-for-a-number"),
        pytest.param("int", True, "must be a whole number, but is true", id="boolean-for-a-number"),
        pytest.param("int", 1.5, "must be a whole number, but is 1.5", id="fraction-for-a-number"),
        pytest.param("bool", "yes", 'must be a boolean, but is "yes"', id="word-for-a-boolean"),
        pytest.param("map", [], "must be a map, but is []", id="list-for-a-map"),
        pytest.param("list", {}, "must be a list, but is {}", id="map-for-a-list"),
    ],
)
def test_message_of_a_type_mismatch(text: OptionType, value: Any, expected: str) -> None:
    assert check_type(text, value) == expected


@pytest.mark.parametrize("value", ["hunter2", 4711, ["hunter2"], {"hunter2": "hunter2"}, True, ""])
def test_secret_is_not_quoted(value: Any) -> None:
    text = "must come from a secret, or be a string that contains vault+kvv2:///, but is *****"

    assert check_type("secret", value) == text


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        pytest.param("secret", "", "", id="empty-secret"),
        pytest.param("secret", "hunter2", 'must be "" as the default of a secret option, but is *****', id="secret"),
        pytest.param("secret", 0, 'must be "" as the default of a secret option, but is *****', id="number-as-secret"),
        pytest.param(
            "secret",
            "vault+kvv2:///a",
            'must be "" as the default of a secret option, but is *****',
            id="vault-path-as-default",
        ),
        pytest.param("int", 64, "", id="sound"),
        pytest.param("int", "64", 'must be a whole number, but is "64"', id="of-another-type"),
    ],
)
def test_defaults_are_checked(text: OptionType, value: Any, expected: str) -> None:
    assert check_default(text, value) == expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        pytest.param("^[a-z]+$", "abc", "", id="matches"),
        pytest.param("b", "abc", "", id="matches-in-the-middle"),
        pytest.param("^b$", "abc", 'must match "^b$", and "abc" does not', id="does-not-match"),
        pytest.param("(?i)^ABC$", "abc", "", id="flags"),
        pytest.param("", "", "", id="empty-pattern"),
        pytest.param("^$", "x", 'must match "^$", and "x" does not', id="only-the-empty-string"),
        pytest.param("^a", 5, "", id="only-strings-are-matched"),
        pytest.param("(", "x", "", id="no-pattern"),
        pytest.param("^a$", "vault+kvv2:///team/smtp", "", id="the-value-of-a-vault-reference-is-unknown"),
        pytest.param("^.$", "é", "", id="characters-count-not-bytes"),
        pytest.param("^\ud800$", "\ud800", "", id="lone-surrogate-is-a-character"),
        pytest.param("^(a+)+$", "a" * 5_000 + "!", None, id="hostile-pattern-is-quick"),
    ],
)
def test_patterns_are_checked(pattern: str, value: Any, expected: str | None) -> None:
    message = check_regex(pattern, value)

    assert message == expected if expected is not None else message.startswith('must match "^(a+)+$", and "aaa')


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        pytest.param("^a+$", "", id="sound"),
        pytest.param("(", "is not a valid RE2 regular expression: missing ): (", id="not-closed"),
        pytest.param("(?=a)", "is not a valid RE2 regular expression: invalid perl operator: (?=", id="lookahead"),
        pytest.param("((a{99}){99}){99}", "is not a valid RE2 regular expression: ", id="too-large"),
    ],
)
def test_invalid_pattern_is_reported(pattern: str, message: str) -> None:
    assert check_pattern(pattern).startswith(message)
    assert bool(check_pattern(pattern)) == bool(message)
