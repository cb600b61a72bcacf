"""Conformance tests of the CEL specification without protobuf messages. Known gaps are listed."""

from __future__ import annotations

import base64
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler.cel import CelEnvironment, CelProgram, CelType, ExpressionError, ExpressionLimits, Uint
from reconciler.cel.errors import EvaluationError
from tests.support.cel_programs import compile_without_check

TESTS = Path(__file__).resolve().parents[3] / "../shared/data/cel/tests.json"

pytestmark = pytest.mark.skipif(not TESTS.exists(), reason="the conformance tests are not beside the project")

LIMITS = ExpressionLimits(characters=100_000, nesting=20)

NOT_OURS = {
    "network_ext": "the extension for IP addresses is not supported",
    "block_ext": "`cel.block` is for optimizers, and is not supported",
}
"""Files that are left out as a whole."""

KNOWN_GAPS = dict.fromkeys(
    (
        "parse/bytes_literals/triple_single_quoted_unescaped_punctuation",
        "parse/bytes_literals/triple_double_quoted_unescaped_punctuation",
    ),
    "the test expects a backslash that its expression does not contain; the reference implementations fail too",
)
"""Single tests (file/section/name) that fail, with the reason."""


def test_every_test_passes_except_known_gaps() -> None:
    failed = {format_test_name(test) for test in _list_tests() if not is_passing(test)}

    assert failed == set(KNOWN_GAPS)


def test_conformance_tests_exist() -> None:
    assert len(_list_tests()) > 900


@cache
def _list_tests() -> list[dict[str, Any]]:
    return [test for test in json.loads(TESTS.read_text(encoding="utf-8")) if not find_skip_reason(test)]


def find_skip_reason(test: dict[str, Any]) -> str:
    if test["check_only"]:
        return "the test checks only a type, and there is no type checker"
    return NOT_OURS.get(test["file"], "")


def format_test_name(test: dict[str, Any]) -> str:
    return f"{test['file']}/{test['section']}/{test['name']}"


def is_passing(test: dict[str, Any]) -> bool:
    kind, expected = test["exp"][:2]
    try:
        bindings = {name: _read_value(value) for name, value in test["binds"].items()}
        result = _compile_program(test).evaluate(bindings)
    except (ExpressionError, EvaluationError):
        return bool(kind == "error")
    return kind != "error" and _is_same(result, _read_value(expected))


def _compile_program(test: dict[str, Any]) -> CelProgram:
    """Compile the expression of a test. Without the static check, names can be unknown."""
    declared = {*test["env"], *test["binds"]}
    if not test["disable_check"]:
        return CelEnvironment(declared, limits=LIMITS, container=test["container"]).compile(test["expr"])
    return compile_without_check(test["expr"], declared, LIMITS, test["container"])


def _read_value(typed: list[Any]) -> Any:
    match typed:
        case ["null"]:
            return None
        case ["uint", number]:
            return Uint(number)
        case ["double", {"float": text}]:
            return float(text)
        case ["double", number]:
            return float(number)
        case ["bytes", {"base64": text}]:
            return base64.b64decode(text)
        case ["list", elements]:
            return [_read_value(element) for element in elements]
        case ["map", entries]:
            return {_read_value(key): _read_value(value) for key, value in entries}
        case ["type", name]:
            return CelType(name)
        case ["bool" | "int" | "string", value]:
            return value
    raise AssertionError(typed)


def _is_same(result: Any, expected: Any) -> bool:
    """Compare values and types: 1, 1u, 1.0 and true are four values."""
    if type(result) is not type(expected):
        return False
    if isinstance(result, list):
        return len(result) == len(expected) and all(map(_is_same, result, expected))
    if isinstance(result, dict):
        pairs = [[(type(key), key) for key in sorted(entries, key=str)] for entries in (result, expected)]
        return pairs[0] == pairs[1] and all(_is_same(result[key], expected[key]) for key in result)
    if isinstance(result, float) and math.isnan(expected):
        return math.isnan(result)
    return bool(result == expected)
