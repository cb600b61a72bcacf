"""Tests of test coverage: each numbered edge case and each finding code of components has a test.

A test covers an edge case with a parameter id such as `row-7-…` or a docstring that starts with `Row 7`.
A test covers a finding code if it contains the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reconciler.controllers.components.codes import ComponentCodes

ROWS = range(1, 57)
_IN_AN_ID = re.compile(r"(?:^|-)row-(\d+)\b")
_IN_A_DOCSTRING = re.compile(r"^Row (\d+)\b")


def parse_test_modules() -> Iterator[tuple[Path, ast.Module]]:
    files = (path for path in Path(__file__).parent.rglob("test_*.py") if path.name != Path(__file__).name)
    return ((path, ast.parse(path.read_text())) for path in sorted(files))


def list_strings(node: ast.AST) -> Iterator[str]:
    constants = (item.value for item in ast.walk(node) if isinstance(item, ast.Constant))
    yield from (constant for constant in constants if isinstance(constant, str))


def list_parameter_ids(module: ast.Module) -> Iterator[str]:
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    named = (keyword.value for call in calls for keyword in call.keywords if keyword.arg in ("id", "ids"))
    yield from (text for node in named for text in list_strings(node))


@cache
def find_covered_edge_cases() -> frozenset[int]:
    """Return the numbers of the edge cases that tests cover."""
    matches: list[re.Match[str] | None] = []
    for _, module in parse_test_modules():
        matches += (_IN_AN_ID.search(text) for text in list_parameter_ids(module))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                matches.append(_IN_A_DOCSTRING.match(ast.get_docstring(node) or ""))
    return frozenset(int(match[1]) for match in matches if match)


@cache
def find_code_candidates() -> frozenset[str]:
    """Return all words in strings of the tests that can be a finding code."""
    words = (
        re.findall(r"\b[A-Z][A-Za-z]+\b", text) for _, module in parse_test_modules() for text in list_strings(module)
    )
    return frozenset(word for item in words for word in item)


@pytest.mark.parametrize("number", ROWS)
def test_edge_case_has_a_test(number: int) -> None:
    assert number in find_covered_edge_cases()


def test_there_are_no_other_edge_cases() -> None:
    assert find_covered_edge_cases() == set(ROWS)


@pytest.mark.parametrize("code", sorted(ComponentCodes.by_name))
def test_finding_code_has_a_test(code: str) -> None:
    assert code in find_code_candidates()
