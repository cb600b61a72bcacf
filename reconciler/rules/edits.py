"""Edits of plain data: the way down is copied, and everything beside it is shared, so that it stays the same object."""

from __future__ import annotations

from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path


def value_at(data: Any, path: Path) -> Any:
    """Return the value at a path, or ABSENT."""
    for step in path:
        in_list = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not (in_list or (isinstance(data, dict) and step in data)):
            return ABSENT
        data = data[step]
    return data


def with_value(data: Any, path: Path, value: Any) -> Any:
    """Return the data with a value at a path, whose parent must exist; a list takes it in the place of an item."""
    if not path:
        return value
    changed = data.copy()
    step: Any = path[0]
    inside = data[step] if len(path) > 1 else None
    changed[step] = with_value(inside, path[1:], value)
    return changed


def with_item(data: Any, path: Path, value: Any) -> Any:
    """Return the data with a value inserted into a list before the index that the path ends with."""
    items, index = value_at(data, path[:-1]), path[-1]
    assert isinstance(index, int)
    return with_value(data, path[:-1], [*items[:index], value, *items[index:]])


def without(data: Any, path: Path) -> Any:
    """Return the data without what is at a path, which must exist."""
    kept = value_at(data, path[:-1]).copy()
    del kept[path[-1]]
    return with_value(data, path[:-1], kept)
