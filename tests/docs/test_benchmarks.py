"""Every benchmark can be imported, so that a renamed function does not break it without notice."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.__main__ import FOLDER

MODULES = sorted(
    ".".join(file.relative_to(FOLDER.parent).with_suffix("").parts)
    for file in FOLDER.rglob("*.py")
    if file.name != "__init__.py"
)


@pytest.mark.parametrize("name", MODULES)
def test_import(name: str) -> None:
    module = importlib.import_module(name)

    assert Path(str(module.__file__)).is_relative_to(FOLDER)
