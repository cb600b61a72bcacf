"""Caches for values that the next pass can use again.

The key of a value contains all data from which the value is calculated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Generic, TypeVar

from reconciler.lazy_dataclasses import dataclass

Value = TypeVar("Value")


class KeyedCache(Generic[Value]):
    """Cache of the values that the previous pass or the current pass requested. Other values are removed.

    A key contains all data from which the value is calculated. Keys may compare objects by `id`. Therefore, the cache
    keeps the keys in memory, because Python can give the ID of a deleted object to a new object.
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
        """Return the value for a key. Create the value if neither this pass nor the previous pass requested it."""
        if key not in self._current:
            self._current[key] = self._previous[key] if key in self._previous else create()
        return self._current[key]


def are_identical(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return whether two sequences contain the same objects. The objects are compared by identity, which is fast."""
    return len(first) == len(second) and all(map(is_, first, second))


@dataclass(frozen=True, eq=False)
class IdentityKey:
    """Key that compares an object by identity. Two keys are equal only if they contain the same object."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class IdentityCache(Generic[Value]):
    """Cache of values by the identity of the objects from which the values are calculated.

    This cache is faster than `KeyedCache`, because it neither compares nor hashes the objects. If no code requests a
    value during a whole pass, the value is removed.
    """

    def __init__(self) -> None:
        self._previous: dict[tuple[int, ...], tuple[tuple[object, ...], Value]] = {}
        self._current: dict[tuple[int, ...], tuple[tuple[object, ...], Value]] = {}

    def end_pass(self) -> None:
        """End the current pass and start the next one."""
        self._previous, self._current = self._current, {}

    def get_or_create(self, parts: tuple[object, ...], create: Callable[[], Value]) -> Value:
        """Return the value for these objects. Create it if neither this pass nor the previous pass requested it."""
        key = tuple(map(id, parts))
        entry = self._current.get(key) or self._previous.get(key)
        if entry is None:
            # Keep the objects in memory with the value, because Python can give the ID of a deleted object to a new
            # object.
            entry = (parts, create())
        self._current[key] = entry
        return entry[1]
