"""Edits: fields in the order in which functions visit them, and comments put where there is a place for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reconciler.krm.yaml import Path, YamlError
from reconciler.packages.functions.function import Item, Result


class EditError(ValueError):
    """A field cannot be given its value or its comment; the message says why."""


def edit_each(
    items: Sequence[Item], edit: Callable[[Item], tuple[Item, list[Result]]]
) -> tuple[tuple[Item, ...], tuple[Result, ...]]:
    """Return every item as `edit` leaves it, and all that it said."""
    edited = [edit(item) for item in items]
    return tuple(item for item, _ in edited), tuple(result for _, said in edited for result in said)


def visited_fields(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield scalars, and the lists that mappings hold, by path: the lists of a mapping before what lies in it."""
    if isinstance(value, dict):
        yield from (((*path, key), inner) for key, inner in value.items() if isinstance(inner, list))
        for key, inner in value.items():
            yield from visited_fields(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from visited_fields(inner, (*path, index))
    else:
        yield path, value


def commented(item: Item, path: Path, comment: str) -> Item:
    """Return the item with another line comment ("# …" included) at a path; raises EditError where it has no place."""
    try:
        return item.with_comment(path, comment)
    except YamlError as error:
        raise EditError(error.message) from error
