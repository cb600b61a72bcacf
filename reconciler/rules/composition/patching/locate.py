"""Where a path leads in an object: all places, before anything is changed (openchoreo 8.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Code
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import (
    PATCH_PATH_NOT_FOUND,
    PATH_AMBIGUOUS_CONTAINER,
    PATH_INDEX_OUT_OF_RANGE,
    PATH_NOT_ARRAY,
    PATH_NOT_OBJECT,
    PATH_TOO_MANY,
)
from reconciler.rules.composition.faults import FaultError, fault_of
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.paths import End, Every, Filter, Index, Key, Numeric, PatchPath, Step
from reconciler.rules.composition.spelling import spell
from reconciler.rules.fields import shown

Op = Literal["add", "replace", "remove", "merge"]
Location = tuple[str | int, ...]

MAX_LOCATIONS = 10_000
# what a place on the way costs in characters, more than an item that is looked at
_PLACE = 16
_MAKES_PARENTS = ("add", "merge")


def locate(
    document: Any, path: PatchPath, op: Op, allowance: Allowance, at: Path, *, skip_missing: bool = False
) -> tuple[Location, ...]:
    """Return every place that a path leads to, in document order; nothing is changed (openchoreo 8.2).

    A place need not exist: `add` and `merge` make missing parents, a `-` is the number of items, and what `remove` does
    not find is none. Raises FaultError where the path leads nowhere, unless `skip_missing` and it is merely not there.
    """
    walk = _Walk(path, op, allowance, at, skip_missing)
    start = _start(document, path)
    spots = [start]
    for number, step in enumerate(path.steps[len(start.location) :], len(start.location) + 1):
        is_last = number == len(path.steps)
        spots = walk.on(spots, step, is_last=is_last)
    return tuple(spot.location for spot in spots)


def _start(document: Any, path: PatchPath) -> _Spot:
    """Return how far the keys of a path lead that are there, the last step aside: the most of most paths."""
    names: list[str] = []
    for step in path.steps[:-1]:
        if not (isinstance(step, Key) and isinstance(document, dict)):
            break
        below = document.get(step.name)
        if below is None:
            break
        names.append(step.name)
        document = below
    return _Spot(tuple(names), document)


class _Spot(NamedTuple):
    """A place on the way, and what is there: ABSENT where it is yet to be made."""

    location: Location
    value: Any

    @property
    def is_missing(self) -> bool:
        """Whether nothing is here: null is nothing, too."""
        return self.value is ABSENT or self.value is None

    def below(self, step: str | int, value: Any) -> _Spot:
        return _Spot((*self.location, step), value)

    def __str__(self) -> str:
        return format_pointer(self.location) or "the object"


@dataclass(frozen=True)
class _Walk:
    """One path on its way through one object."""

    path: PatchPath
    op: Op
    allowance: Allowance
    at: Path
    skip_missing: bool

    def on(self, spots: list[_Spot], step: Step, *, is_last: bool) -> list[_Spot]:
        """Return where one step leads from all the places so far."""
        found: list[_Spot] = []
        for spot in spots:
            for one in self._from(spot, step, is_last=is_last):
                if len(found) == MAX_LOCATIONS:
                    raise self._stop(PATH_TOO_MANY, f"must lead to at most {MAX_LOCATIONS:,} places")
                found.append(one)
        self.allowance.spend(_PLACE * len(found), self.at)
        if spots and not found and isinstance(step, Every | Filter) and not self.skip_missing:
            raise self._stop(PATCH_PATH_NOT_FOUND, f"must find an item in {spots[0]}, and none is chosen")
        return found

    def _from(self, spot: _Spot, step: Step, *, is_last: bool) -> Iterator[_Spot]:
        match step:
            case Key(name):
                return self._key(spot, name, is_last=is_last)
            case Numeric(name, number):
                return self._numeric(spot, name, number, is_last=is_last)
            case Index(number):
                return self._index(spot, number, is_last=is_last)
            case End():
                return iter((spot.below(0 if spot.is_missing else len(self._list(spot, or_none=True)), ABSENT),))
            case Every():
                return (spot.below(number, item) for number, item in self._items(spot))
            case Filter():
                return (spot.below(number, item) for number, item in self._items(spot) if _meets(item, step))

    def _items(self, spot: _Spot) -> Iterator[tuple[int, Any]]:
        items = self._list(spot)
        self.allowance.spend(len(items), self.at)
        return enumerate(items)

    def _key(self, spot: _Spot, name: str, *, is_last: bool) -> Iterator[_Spot]:
        if not spot.is_missing and not isinstance(spot.value, dict):
            raise self._stop(PATH_NOT_OBJECT, f"must find a map at {spot}, which is {_kind(spot.value)}")
        value = ABSENT if spot.is_missing else spot.value.get(name, ABSENT)
        if self.op in _MAKES_PARENTS or value is not ABSENT or not (is_last or spot.is_missing):
            yield spot.below(name, value)
        elif self.op == "replace" and not self.skip_missing:
            raise self._stop(PATCH_PATH_NOT_FOUND, f"must lead to what exists, and {spot.below(name, None)} does not")

    def _numeric(self, spot: _Spot, name: str, number: int, *, is_last: bool) -> Iterator[_Spot]:
        if isinstance(spot.value, list):
            return self._index(spot, number, is_last=is_last)
        if spot.is_missing and self.op in _MAKES_PARENTS:
            raise self._stop(
                PATH_AMBIGUOUS_CONTAINER,
                f"must say what {spot}, which is missing, is to be: ['{name}'] makes a map, - a list",
            )
        return self._key(spot, name, is_last=is_last)

    def _index(self, spot: _Spot, number: int, *, is_last: bool) -> Iterator[_Spot]:
        items = self._list(spot)
        if number < len(items):
            yield spot.below(number, items[number])
        elif number == len(items) and is_last and self.op == "add":
            yield spot.below(number, ABSENT)
        else:
            raise self._stop(
                PATH_INDEX_OUT_OF_RANGE, f"must lead to one of the {len(items)} items of {spot}, not to {shown(number)}"
            )

    def _list(self, spot: _Spot, *, or_none: bool = False) -> list[Any]:
        if isinstance(spot.value, list):
            return spot.value
        what = "a list, or nothing," if or_none else "a list"
        raise self._stop(PATH_NOT_ARRAY, f"must find {what} at {spot}, which is {_kind(spot.value)}")

    def _stop(self, code: Code, message: str) -> FaultError:
        return FaultError(fault_of(code, self.at, f"{message}: {shown(self.path.text)}"))


def _meets(item: Any, step: Filter) -> bool:
    for field in step.fields:
        if not isinstance(item, dict) or field not in item:
            return False
        item = item[field]
    if isinstance(item, dict | list):
        return False
    if step.is_quoted:
        return ("" if item is None else spell(item)) == step.literal
    # true is no number here, though it is one in Python
    return item == step.literal and isinstance(item, bool) == isinstance(step.literal, bool)


def _kind(value: Any) -> str:
    match value:
        case dict():
            return "a map"
        case list():
            return "a list"
        case None:
            return "null"
        case _ if value is ABSENT:
            return "missing"
        case _:
            return "a single value"
