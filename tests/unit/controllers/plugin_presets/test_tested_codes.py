"""Tests that each finding code of the plugin preset controller appears in a test of this folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes


def parse_modules() -> Iterator[ast.Module]:
    files = (path for path in Path(__file__).parent.glob("test_*.py") if path.name != Path(__file__).name)
    return (ast.parse(path.read_text()) for path in files)


def list_texts(node: ast.AST) -> Iterator[str]:
    constants = (item.value for item in ast.walk(node) if isinstance(item, ast.Constant))
    yield from (constant for constant in constants if isinstance(constant, str))


@cache
def list_tested_texts() -> frozenset[str]:
    """Return all string constants of the tests."""
    return frozenset(text for module in parse_modules() for text in list_texts(module))


@pytest.mark.parametrize("code", sorted({*PluginCodes.by_name, ControllerCodes.SELECTOR_INVALID.name}))
def test_code_is_tested(code: str) -> None:
    assert code in list_tested_texts()
