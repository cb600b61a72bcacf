"""Edits: fields in the order in which functions visit them, and comments put where there is a place for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.krm.yaml import Document, Path, YamlError
from reconciler.packages.functions.function import Item, Result
from reconciler.packages.functions.limits import Budget


class EditError(ValueError):
    """A field cannot be given its value or its comment; the message says why."""


def edit_each(
    items: Sequence[Item], edit: Callable[[Item], tuple[Item, Sequence[Result]]]
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


def commented(item: Item, comments: Mapping[Path, str], budget: Budget) -> tuple[Item, Mapping[Path, str]]:
    """Return the item with other line comments ("# …" included), all at once; and by path why one has no place.

    The caller has charged the comments; parsing is charged here. Raises LimitError.
    """
    if not comments:
        return item, {}
    document = item.document.with_comments(comments, {}, budget.parse)
    faults = {path: _fault(document, path, comments[path], budget) for path in comments}
    changed = replace(item, data=document.data, base=document)
    return changed, {path: fault for path, fault in faults.items() if fault}


def all_commented(item: Item, comments: Mapping[Path, str], budget: Budget) -> Item:
    """Return the item with other line comments; raises EditError where one has no place, LimitError."""
    changed, faults = commented(item, comments, budget)
    if faults:
        raise EditError(next(iter(faults.values())))
    return changed


def _fault(document: Document, path: Path, comment: str, budget: Budget) -> str:
    if document.comment(path) == comment:
        return ""
    budget.parse(len(document.text))
    try:
        document.with_comment(path, comment)
    except YamlError as error:
        return error.message
    return ""
