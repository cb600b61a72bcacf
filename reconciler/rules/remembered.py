"""Remembering what was worked out, by what it was made of, from one pass to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Same:
    """A value as a key by its identity, for what has no hash; equal ones that are not the same are different keys."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
