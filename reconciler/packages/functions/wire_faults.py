"""What is wrong with a document that a function returned, before anything is read from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from reconciler.packages.functions.limits import MAX_LEVELS


def items_fault(returned: Any) -> str:
    """Return why the items of a returned document cannot be written to files, or ""."""
    entries = returned.get("items") if isinstance(returned, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return "the function must return a resource list whose items are mappings"
    return _fault(entries)


def _fault(entries: list[Any]) -> str:
    """Return why returned items cannot be written to a file, or ""."""
    level: list[Any] = entries
    for _ in range(MAX_LEVELS):
        keys = [key for value in level if isinstance(value, dict) for key in value]
        if not all(isinstance(key, str) for key in keys):
            return "the keys of returned mappings must be strings"
        if any(isinstance(value, float) and not isfinite(value) for value in level):
            return "returned numbers must be finite"
        level = [inner for value in level for inner in _inside(value)]
    return f"returned items must not have more than {MAX_LEVELS} levels" if level else ""


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
