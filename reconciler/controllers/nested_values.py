"""Functions that read nested data, and that change copies of nested data.

A changed copy contains new maps and lists only for the parents of the changed value. It shares all other values with
the original data.
"""

from __future__ import annotations

from typing import Any

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath


def get_value(data: Any, path: DataPath) -> Any:
    """Return the value at a path. Return ABSENT if the path does not exist."""
    for step in path:
        in_list = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not (in_list or (isinstance(data, dict) and step in data)):
            return ABSENT
        data = data[step]
    return data


def copy_with_value(data: Any, path: DataPath, value: Any) -> Any:
    """Return a copy of the data with a new value at a path.

    The parent of the value must exist. If the parent is a list, the new value replaces the item at the index.
    """
    if not path:
        return value
    changed = data.copy()
    step: Any = path[0]
    inside = data[step] if len(path) > 1 else None
    changed[step] = copy_with_value(inside, path[1:], value)
    return changed


def copy_without_value(data: Any, path: DataPath) -> Any:
    """Return a copy of the data without the value at a path. The value must exist."""
    container = get_value(data, path[:-1]).copy()
    del container[path[-1]]
    return copy_with_value(data, path[:-1], container)
