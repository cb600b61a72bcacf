"""Every edge case of the spec and every code of the room is somebody's claim in the tests beside this one.

An edge case is claimed by the docstring of a test, or the id of a row, that begins with its number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reconciler.controllers.codes import SELECTOR_INVALID
from reconciler.controllers.plugin_presets.codes import CODES

EDGE_CASES = range(1, 23)
_EDGE_CASE = re.compile(r"17\.(\d+)\b")


def modules() -> Iterator[ast.Module]:
    files = (path for path in Path(__file__).parent.glob("test_*.py") if path.name != Path(__file__).name)
    return (ast.parse(path.read_text()) for path in files)


def claims() -> Iterator[ast.FunctionDef]:
    nodes = (node for module in modules() for node in module.body)
    return (node for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def texts(node: ast.AST) -> Iterator[str]:
    constants = (item.value for item in ast.walk(node) if isinstance(item, ast.Constant))
    yield from (constant for constant in constants if isinstance(constant, str))


@cache
def claimed() -> frozenset[int]:
    """Return the numbers of the edge cases that tests claim."""
    docstrings = (ast.get_docstring(function_def) or "" for function_def in claims())
    ids = (
        text
        for function_def in claims()
        for call in ast.walk(function_def)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "id"
        for text in texts(keyword.value)
    )
    generator_type = (_EDGE_CASE.match(text) for text in (*docstrings, *ids))
    return frozenset(int(match[1]) for match in generator_type if match)


@cache
def named() -> frozenset[str]:
    """Return every text of the tests."""
    return frozenset(text for module in modules() for text in texts(module))


@pytest.mark.parametrize("number", EDGE_CASES)
def test_an_edge_case_is_tested(number: int) -> None:
    assert number in claimed()


def test_there_are_no_other_edge_cases() -> None:
    assert claimed() == set(EDGE_CASES)


@pytest.mark.parametrize("code", sorted({*(finding_code.name for finding_code in CODES), SELECTOR_INVALID.name}))
def test_a_code_is_tested(code: str) -> None:
    assert code in named()
