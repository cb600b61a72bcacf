"""The fields of a resource as rows of a tree, with the JSON pointer of each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from reconciler.krm.json_pointer import format_pointer
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import format_value

_MAX_ROWS = 2_000


@dataclass(frozen=True)
class FieldRow:
    """One field of a resource.

    Attributes:
        depth: The number of fields that contain this field.
        name: The key of the field, or `[index]` for an item of a list.
        value: The value as text. "" if the value is a mapping or a list with items.
    """

    depth: int
    name: str
    pointer: str
    value: str = ""


def list_field_rows(data: Any) -> tuple[FieldRow, ...]:
    """Return at most 2,000 rows for the fields of a resource, in their order. Secrets in `data` must be masked."""
    return tuple(islice(_iterate_rows(data, ()), _MAX_ROWS))


def _iterate_rows(data: Any, path: tuple[str | int, ...]) -> Iterator[FieldRow]:
    for key, value in _list_items(data):
        child = (*path, key)
        name = f"[{key}]" if isinstance(key, int) else key
        is_leaf = not (isinstance(value, dict | list) and value)
        yield FieldRow(len(path), name, format_pointer(child), format_value(value) if is_leaf else "")
        yield from _iterate_rows(value, child)


def _list_items(data: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(data, dict):
        return [(str(key), value) for key, value in data.items()]
    return enumerate(data) if isinstance(data, list) else ()
