"""Differences between two documents as leaves: the smallest fields that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

LeafPath: TypeAlias = tuple[str | int, ...]


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()
"""The value of a field that does not exist."""


def find_differences(first: Any, second: Any) -> dict[LeafPath, tuple[Any, Any]]:
    """Return the different leaves of two documents, with both values.

    Lists of equal length are compared by index. Lists of different length differ as a whole, because a list index has
    no identity.
    """
    return dict(_iterate(first, second, ()))


def _iterate(first: Any, second: Any, path: LeafPath) -> Iterator[tuple[LeafPath, tuple[Any, Any]]]:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in (*first, *(key for key in second if key not in first)):
            yield from _iterate(first.get(key, ABSENT), second.get(key, ABSENT), (*path, key))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _iterate(one, other, (*path, index))
    elif not _is_equal(first, second):
        yield path, (first, second)


def _is_equal(first: Any, second: Any) -> bool:
    """Return whether two values are equal in JSON. In Python, `True == 1`, but in JSON, true and 1 are different.

    The arguments are two scalars, two lists of different length, or two values of different types.
    """
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    are_numbers = isinstance(first, int | float) and isinstance(second, int | float)
    return (are_numbers or type(first) is type(second)) and bool(first == second)
