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
_IN_AN_ID_OF_TEXT = re.compile(r"^(\d+)-")
_IN_A_NAME = re.compile(r"^test_(\d+)_")
_IN_A_DOCSTRING = re.compile(r"^Row (\d+)\b")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    files = (one for one in Path(__file__).parent.rglob("test_*.py") if one.name != Path(__file__).name)
    return ((one, ast.parse(one.read_text())) for one in sorted(files))


def texts(node: ast.AST) -> Iterator[str]:
    constants = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    yield from (one for one in constants if isinstance(one, str))


def ids(module: ast.Module) -> Iterator[str]:
    calls = (one for one in ast.walk(module) if isinstance(one, ast.Call))
    named = (keyword.value for call in calls for keyword in call.keywords if keyword.arg in ("id", "ids"))
    yield from (text for node in named for text in texts(node))


@cache
def claimed() -> frozenset[int]:
    """Return the numbers of the edge cases that tests claim."""
    found: list[re.Match[str] | None] = []
    for path, module in modules():
        of_text = path.parts[-2:] == ("text", "test_edge_cases.py")
        found += ((_IN_AN_ID_OF_TEXT if of_text else _IN_AN_ID).search(text) for text in ids(module))
        for one in ast.walk(module):
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                found.append(_IN_A_DOCSTRING.match(ast.get_docstring(one) or ""))
                found.append(_IN_A_NAME.match(one.name) if of_text else None)
    return frozenset(int(one[1]) for one in found if one)


@cache
def named() -> frozenset[str]:
    """Return every word of the tests that could be a code."""
    words = (re.findall(r"\b[A-Z][A-Za-z]+\b", text) for _, module in modules() for text in texts(module))
    return frozenset(word for found in words for word in found)


@pytest.mark.parametrize("number", ROWS)
def test_an_edge_case_is_tested(number: int) -> None:
    assert number in claimed()


def test_there_are_no_other_edge_cases() -> None:
    assert claimed() == set(ROWS)


@pytest.mark.parametrize("code", sorted(one.name for one in CODES))
def test_a_code_is_tested(code: str) -> None:
    assert code in named()
