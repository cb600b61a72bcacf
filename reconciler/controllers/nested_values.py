"""Copy-on-write edits of nested plain data.

Each function copies the containers on the path and shares all other values with the input.
"""

from __future__ import annotations

from typing import Any

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath


def get_value(data: Any, path: DataPath) -> Any:
    """Return the value at a path, or ABSENT."""
    for step in path:
        in_list = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not (in_list or (isinstance(data, dict) and step in data)):
            return ABSENT
        data = data[step]
    return data


def copy_with_value(data: Any, path: DataPath, value: Any) -> Any:
    """Return a copy with a value at a path. The parent must exist; an index in a list replaces that item."""
    if not path:
        return value
    changed = data.copy()
    step: Any = path[0]
    inside = data[step] if len(path) > 1 else None
    changed[step] = copy_with_value(inside, path[1:], value)
    return changed


def copy_with_item(data: Any, path: DataPath, value: Any) -> Any:
    """Return a copy with a value inserted into a list. The last step of the path is the index of the new item."""
    items, index = get_value(data, path[:-1]), path[-1]
    assert isinstance(index, int)
    return copy_with_value(data, path[:-1], [*items[:index], value, *items[index:]])


def copy_without_value(data: Any, path: DataPath) -> Any:
    """Return a copy without the value at a path. The value must exist."""
    container = get_value(data, path[:-1]).copy()
    del container[path[-1]]
    return copy_with_value(data, path[:-1], container)
