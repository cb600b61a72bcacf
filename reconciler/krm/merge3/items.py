"""Items: lists of scalars merged by what was put in and taken out, where that does not meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple


class _Change(NamedTuple):
    """What a side has instead of the items from `start` to `end` of the origin."""

    start: int
    end: int
    items: tuple[tuple[str, Any], ...]


def merge_items(local: Any, origin: Any, updated: Any) -> list[Any] | None:
    """Return the origin with the changes of both sides; None where both change one place, or not all is scalars."""
    if not all(_is_of_scalars(side) for side in (local, origin, updated)):
        return None
    base, ours, theirs = map(_typed, (origin, local, updated))
    found = dict.fromkeys((*_changes(base, ours), *_changes(base, theirs)))
    changes = sorted(found, key=lambda one: (one.start, one.end))
    if any(_meet(one, other) for one, other in pairwise(changes)):
        return None
    for one in reversed(changes):
        base[one.start : one.end] = one.items
    return [value for _, value in base]


def _is_of_scalars(side: Any) -> bool:
    return isinstance(side, list) and not any(isinstance(item, dict | list) for item in side)


def _typed(items: list[Any]) -> list[tuple[str, Any]]:
    # 1 and True are equal, and not the same
    return [(type(item).__name__, item) for item in items]


def _changes(base: Sequence[tuple[str, Any]], side: Sequence[tuple[str, Any]]) -> Iterator[_Change]:
    for what, start, end, first, last in SequenceMatcher(None, base, side, autojunk=False).get_opcodes():
        if what != "equal":
            yield _Change(start, end, tuple(side[first:last]))


def _meet(one: _Change, other: _Change) -> bool:
    """Tell whether two changes are of one place: of the same items, or both put something in at the same point."""
    is_same_point = one.start == other.start and bool(one.items and other.items)
    return other.start < one.end or is_same_point
