"""Remembering what was worked out, by what it was made of, from one pass to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """The values that the last pass asked for, and those of this one; what a whole pass did not ask for is forgotten.

    Keys name everything that a value is made of. They hold it, too, so that no identity is ever given out twice.
    """

    def __init__(self) -> None:
        self._before: dict[Hashable, Value] = {}
        self._now: dict[Hashable, Value] = {}

    def __len__(self) -> int:
        return len(self._before.keys() | self._now.keys())

    def turn(self) -> None:
        """End a pass, and begin another."""
        self._before, self._now = self._now, {}

    def of(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value for a key, made now if neither this pass nor the one before has it."""
        if key not in self._now:
            self._now[key] = self._before[key] if key in self._before else make()
        return self._now[key]


def same_objects(one: Sequence[object], other: Sequence[object]) -> bool:
    """Return whether two sequences have the very same objects, which costs next to nothing however many they are."""
    return len(one) == len(other) and all(map(is_, one, other))


@dataclass(frozen=True, eq=False)
class Same:
    """A value as a key by its identity, for what has no hash; equal ones that are not the same are different keys."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Unmoved(Generic[Value]):
    """Values by the very objects that they were made of, from one pass to the next; what a pass did not ask for goes.

    Cheaper than `Remembered`: nothing of an object is compared or hashed but that it is the same one.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[int, ...], tuple[tuple[object, ...], Value]] = {}
        self._now: dict[tuple[int, ...], tuple[tuple[object, ...], Value]] = {}

    def turn(self) -> None:
        """End a pass, and begin another."""
        self._before, self._now = self._now, {}

    def of(self, parts: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """Return the value made of these objects, made now unless this pass or the one before has it."""
        key = tuple(map(id, parts))
        found = self._now.get(key) or self._before.get(key)
        if found is None:
            # an entry holds what it was made of, so that no id is given out twice
            found = (parts, make())
        self._now[key] = found
        return found[1]
