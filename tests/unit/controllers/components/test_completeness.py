"""Every edge case of the spec and every code of the room is somebody's claim in the tests of composition.

An edge case (openchoreo 17) is claimed by the id of a row, the name of a test or the first words of its docstring:
`row-7-…` or, in the room of text, `7-…`; `test_7_…`; `Row 7`. A code is claimed by a test that names it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reconciler.controllers.components.codes import CODES

ROWS = range(1, 57)
_IN_AN_ID = re.compile(r"(?:^|-)row-(\d+)\b")
_IN_A_DOCSTRING = re.compile(r"^Row (\d+)\b")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    files = (path for path in Path(__file__).parent.rglob("test_*.py") if path.name != Path(__file__).name)
    return ((path, ast.parse(path.read_text())) for path in sorted(files))


def texts(node: ast.AST) -> Iterator[str]:
    constants = (item.value for item in ast.walk(node) if isinstance(item, ast.Constant))
    yield from (constant for constant in constants if isinstance(constant, str))


def ids(module: ast.Module) -> Iterator[str]:
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    named = (keyword.value for call in calls for keyword in call.keywords if keyword.arg in ("id", "ids"))
    yield from (text for node in named for text in texts(node))


@cache
def claimed() -> frozenset[int]:
    """Return the numbers of the edge cases that tests claim."""
    matches: list[re.Match[str] | None] = []
    for _, module in modules():
        matches += (_IN_AN_ID.search(text) for text in ids(module))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                matches.append(_IN_A_DOCSTRING.match(ast.get_docstring(node) or ""))
    return frozenset(int(match[1]) for match in matches if match)


@cache
def named() -> frozenset[str]:
    """Return every word of the tests that could be a code."""
    words = (re.findall(r"\b[A-Z][A-Za-z]+\b", text) for _, module in modules() for text in texts(module))
    return frozenset(word for item in words for word in item)


@pytest.mark.parametrize("number", ROWS)
def test_an_edge_case_is_tested(number: int) -> None:
    assert number in claimed()


def test_there_are_no_other_edge_cases() -> None:
    assert claimed() == set(ROWS)


@pytest.mark.parametrize("code", sorted(finding_code.name for finding_code in CODES))
def test_a_code_is_tested(code: str) -> None:
    assert code in named()
