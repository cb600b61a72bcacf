"""Caches from one pass to the next, keyed by everything that a value is calculated from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Generic, TypeVar

Value = TypeVar("Value")


class KeyedCache(Generic[Value]):
    """Values that the previous pass and the current pass requested.

    A value that a whole pass did not request is removed. A key names everything that the value is calculated from. The
    cache holds the keys, so that Python cannot reuse the id of an object in a key.
    """

    def __init__(self) -> None:
        self._previous: dict[Hashable, Value] = {}
        self._current: dict[Hashable, Value] = {}

    def __len__(self) -> int:
        return len(self._previous.keys() | self._current.keys())

    def end_pass(self) -> None:
        """End the current pass and start the next one."""
        self._previous, self._current = self._current, {}

    def get_or_create(self, key: Hashable, create: Callable[[], Value]) -> Value:
        """Return the value for a key; create it if neither this pass nor the previous one requested it."""
        if key not in self._current:
            self._current[key] = self._previous[key] if key in self._previous else create()
        return self._current[key]


def are_identical(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return whether two sequences contain the identical objects. The comparison is cheap at any length."""
    return len(first) == len(second) and all(map(is_, first, second))


@dataclass(frozen=True, eq=False)
class IdentityKey:
    """Key for a value without a hash: equal only to a key of the identical object."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class IdentityCache(Generic[Value]):
    """Values keyed by the identity of the objects that they are calculated from.

    It is cheaper than `KeyedCache`, because it neither compares nor hashes the objects. A value that a whole pass did
    not request is removed.
    """

    def __init__(self) -> None:
        self._previous: dict[tuple[int, ...], tuple[tuple[object, ...], Value]] = {}
        self._current: dict[tuple[int, ...], tuple[tuple[object, ...], Value]] = {}

    def end_pass(self) -> None:
        """End the current pass and start the next one."""
        self._previous, self._current = self._current, {}

    def get_or_create(self, parts: tuple[object, ...], create: Callable[[], Value]) -> Value:
        """Return the value for these objects; create it unless this or the previous pass requested it."""
        key = tuple(map(id, parts))
        entry = self._current.get(key) or self._previous.get(key)
        if entry is None:
            # The entry holds its parts, so that Python cannot reuse their ids.
            entry = (parts, create())
        self._current[key] = entry
        return entry[1]
