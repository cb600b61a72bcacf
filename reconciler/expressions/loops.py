"""The macros that walk through a list or map, compiled: from closures of their parts to a closure of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.expressions.budget import CONTAINER_BYTES, ELEMENT_BYTES, ENTRY_BYTES, Budget
from reconciler.expressions.equality import sorted_keys
from reconciler.expressions.errors import Exhausted, Fault
from reconciler.expressions.library.lists import sort_by_keys
from reconciler.expressions.operators import not_bool
from reconciler.expressions.syntax import LoopKind
from reconciler.expressions.values import OMIT, key_text, no_overload, stored_key, type_name

Frame = list[Any]
"""The state of one evaluation: the budget, then a slot for each variable."""

Code = Callable[[Frame], Any]
"""A compiled expression."""

Link = Callable[[Frame, Any], Any]
"""A compiled step of an access path: takes the value before it."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a loop goes round: its variables' slots, the steps of one round, its name and place for faults."""

    name: str
    slots: tuple[int, ...]
    cost: int
    at: int

    def over(self, frame: Frame, value: Any) -> Iterator[Any]:
        """Bind the variables to each element, or key in sorted order, and yield the first variable's value."""
        budget: Budget = frame[0]
        spend, cost, slots = budget.spend, self.cost, self.slots
        if len(slots) == 1:
            slot = slots[0]
            for element in self._members(budget, value):
                spend(cost)
                frame[slot] = element
                yield element
        else:
            first, second = slots
            for key, element in self._pairs(budget, value):
                spend(cost)
                frame[first], frame[second] = key, element
                yield key

    def _members(self, budget: Budget, value: Any) -> list[Any]:
        if type(value) is list:
            return value
        if type(value) is dict:
            return sorted_keys(budget, value)
        raise self._no_range(value)

    def _pairs(self, budget: Budget, value: Any) -> Iterator[tuple[Any, Any]]:
        if type(value) is list:
            return enumerate(value)
        if type(value) is dict:
            return ((key, value[stored_key(key)]) for key in sorted_keys(budget, value))
        raise self._no_range(value)

    def _no_range(self, value: Any) -> Fault:
        message = f"{self.name}() walks through a list or map, not a value of type {type_name(value)}"
        return Fault("CelNoOverload", message)

    def is_true(self, verdict: Any) -> bool:
        """Return a verdict that must be a bool."""
        if verdict is True or verdict is False:
            return bool(verdict)
        raise not_bool(f"{self.name}()", verdict)


def loop(kind: LoopKind, rounds: Rounds, condition: Code | None, body: Code) -> Link:
    """Return the compiled loop."""
    if kind in ("all", "exists"):
        return _quantifier(rounds, body, decisive=kind == "exists")
    if kind == "exists_one":
        return _exactly_one(rounds, body)
    if kind == "filter":
        return _filter(rounds, body)
    selected = _selected(rounds, condition)
    if kind == "map":
        return _map(selected, body)
    if kind == "sortBy":
        return _sort_by(selected, body)
    return _transform_map(selected, body) if kind == "transformMap" else _transform_entries(rounds, selected, body)


def _selected(rounds: Rounds, condition: Code | None) -> Callable[[Frame, Any], Iterator[Any]]:
    if condition is None:
        return rounds.over

    def selected(frame: Frame, value: Any) -> Iterator[Any]:
        for first in rounds.over(frame, value):
            if rounds.is_true(condition(frame)):
                yield first

    return selected


def _quantifier(rounds: Rounds, body: Code, *, decisive: bool) -> Link:
    """`exists` (true decides) and `all` (false decides): an element that decides outweighs faults at others."""

    def quantifier(frame: Frame, value: Any) -> bool:
        fault: Fault | None = None
        for _ in rounds.over(frame, value):
            try:
                if rounds.is_true(body(frame)) is decisive:
                    return decisive
            except Exhausted:
                raise
            except Fault as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return not decisive

    return quantifier


def _exactly_one(rounds: Rounds, body: Code) -> Link:
    def exactly_one(frame: Frame, value: Any) -> bool:
        found = 0
        for _ in rounds.over(frame, value):
            found += rounds.is_true(body(frame))
        return found == 1

    return exactly_one


def _filter(rounds: Rounds, body: Code) -> Link:
    def filtered(frame: Frame, value: Any) -> list[Any]:
        kept = [element for element in rounds.over(frame, value) if rounds.is_true(body(frame))]
        frame[0].allocate(CONTAINER_BYTES + ELEMENT_BYTES * len(kept))
        return kept

    return filtered


def _map(selected: Link, body: Code) -> Link:
    def mapped(frame: Frame, value: Any) -> list[Any]:
        allocate = frame[0].allocate
        allocate(CONTAINER_BYTES)
        results = []
        for _ in selected(frame, value):
            result = body(frame)
            if result is not OMIT:
                allocate(ELEMENT_BYTES)
                results.append(result)
        return results

    return mapped


def _sort_by(selected: Link, body: Code) -> Link:
    def sorted_by(frame: Frame, value: Any) -> list[Any]:
        if type(value) is not list:
            raise no_overload("sortBy", value)
        elements, keys = [], []
        for element in selected(frame, value):
            frame[0].allocate(2 * ELEMENT_BYTES)
            elements.append(element)
            keys.append(body(frame))
        return sort_by_keys(frame[0], elements, keys)

    return sorted_by


def _transform_map(selected: Link, body: Code) -> Link:
    def transformed(frame: Frame, value: Any) -> dict[Any, Any]:
        allocate = frame[0].allocate
        allocate(CONTAINER_BYTES)
        results = {}
        for key in selected(frame, value):
            result = body(frame)
            if result is not OMIT:
                allocate(ENTRY_BYTES)
                results[stored_key(key)] = result
        return results

    return transformed


def _transform_entries(rounds: Rounds, selected: Link, body: Code) -> Link:
    def transformed(frame: Frame, value: Any) -> dict[Any, Any]:
        frame[0].allocate(CONTAINER_BYTES)
        results: dict[Any, Any] = {}
        for _ in selected(frame, value):
            entries = body(frame)
            if type(entries) is not dict:
                message = f"{rounds.name}() needs a map for each element, not a value of type {type_name(entries)}"
                raise Fault("CelNoOverload", message)
            for key, result in entries.items():
                add_entry(frame[0], results, key, result)
        return results

    return transformed


def add_entry(budget: Budget, entries: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a map in the making; a key that is there already is a fault."""
    budget.allocate(ENTRY_BYTES)
    stored = stored_key(key)
    if stored in entries:
        shown = key_text(stored)
        raise Fault("CelDuplicateKey", f"the map has the key {shown if len(shown) <= 60 else shown[:60] + '…'} twice")
    entries[stored] = value
