"""Compilation of the macros that iterate over a list or map, such as `all`, `map` and `filter`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reconciler.cel.budget import CONTAINER_BYTES, ELEMENT_BYTES, ENTRY_BYTES, ExpressionBudget
from reconciler.cel.errors import BudgetExceededError, EvaluationError
from reconciler.cel.library.lists import sort_by_keys
from reconciler.cel.operators import create_not_bool_error, sort_keys
from reconciler.cel.syntax import LoopKind
from reconciler.cel.values import OMIT, create_no_overload_error, encode_map_key, format_map_key, get_type_name
from reconciler.lazy_dataclasses import dataclass

Frame = list[Any]
"""State of one evaluation. The first slot contains the budget, and each other slot contains one variable."""

CompiledExpression = Callable[[Frame], Any]
"""A closure that evaluates an expression with the variables in a frame."""

CompiledStep = Callable[[Frame, Any], Any]
"""A closure for one access, e.g. for `.b` in `a.b`. The second argument is the value before the access."""


@dataclass(frozen=True, slots=True)
class LoopIteration:
    """The iteration of a macro over a list or map.

    Attributes:
        name: Name of the macro, for messages.
        slots: Indexes of the one or two variables of the macro in the frame.
        cost: Number of steps of one iteration.
    """

    name: str
    slots: tuple[int, ...]
    cost: int

    def iterate(self, frame: Frame, value: Any) -> Iterator[Any]:
        """Set the variables of the macro for each list element, or for each map key in sorted order.

        Yields:
            The value of the first variable.
        """
        budget: ExpressionBudget = frame[0]
        spend, cost, slots = budget.spend, self.cost, self.slots
        if len(slots) == 1:
            slot = slots[0]
            for element in self._iterate_members(budget, value):
                spend(cost)
                frame[slot] = element
                yield element
        else:
            first, second = slots
            for key, element in self._iterate_pairs(budget, value):
                spend(cost)
                frame[first], frame[second] = key, element
                yield key

    def _iterate_members(self, budget: ExpressionBudget, value: Any) -> list[Any]:
        if type(value) is list:
            return value
        if type(value) is dict:
            return sort_keys(budget, value)
        raise self._create_range_error(value)

    def _iterate_pairs(self, budget: ExpressionBudget, value: Any) -> Iterator[tuple[Any, Any]]:
        if type(value) is list:
            return enumerate(value)
        if type(value) is dict:
            return ((key, value[encode_map_key(key)]) for key in sort_keys(budget, value))
        raise self._create_range_error(value)

    def _create_range_error(self, value: Any) -> EvaluationError:
        message = f"{self.name}() requires a list or map, not a value of type {get_type_name(value)}"
        return EvaluationError("CelNoOverload", message)

    def check_bool(self, condition_result: Any) -> bool:
        """Return the result of a condition. Raise `EvaluationError` if the result is not a bool."""
        if condition_result is True or condition_result is False:
            return bool(condition_result)
        raise create_not_bool_error(f"{self.name}()", condition_result)


def compile_loop_step(
    kind: LoopKind, iteration: LoopIteration, condition: CompiledExpression | None, body: CompiledExpression
) -> CompiledStep:
    """Compile a macro that iterates over a list or map."""
    if kind in ("all", "exists"):
        return _compile_quantifier(iteration, body, decisive=kind == "exists")
    if kind == "exists_one":
        return _compile_exists_one(iteration, body)
    if kind == "filter":
        return _compile_filter(iteration, body)
    selection = _compile_selection(iteration, condition)
    if kind == "map":
        return _compile_map(selection, body)
    if kind == "sortBy":
        return _compile_sort_by(selection, body)
    return (
        _compile_transform_map(selection, body)
        if kind == "transformMap"
        else _compile_transform_entries(iteration, selection, body)
    )


def _compile_selection(
    iteration: LoopIteration, condition: CompiledExpression | None
) -> Callable[[Frame, Any], Iterator[Any]]:
    if condition is None:
        return iteration.iterate

    def apply_step(frame: Frame, value: Any) -> Iterator[Any]:
        for first in iteration.iterate(frame, value):
            if iteration.check_bool(condition(frame)):
                yield first

    return apply_step


def _compile_quantifier(iteration: LoopIteration, body: CompiledExpression, *, decisive: bool) -> CompiledStep:
    """Compile the macro `exists` or `all`.

    An element that determines the result (true for `exists`, false for `all`) overrides the errors of other elements.
    """

    def apply_step(frame: Frame, value: Any) -> bool:
        first_error: EvaluationError | None = None
        for _ in iteration.iterate(frame, value):
            try:
                if iteration.check_bool(body(frame)) is decisive:
                    return decisive
            except BudgetExceededError:
                raise
            except EvaluationError as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return not decisive

    return apply_step


def _compile_exists_one(iteration: LoopIteration, body: CompiledExpression) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> bool:
        count = 0
        for _ in iteration.iterate(frame, value):
            count += iteration.check_bool(body(frame))
        return count == 1

    return apply_step


def _compile_filter(iteration: LoopIteration, body: CompiledExpression) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> list[Any]:
        elements = [element for element in iteration.iterate(frame, value) if iteration.check_bool(body(frame))]
        frame[0].allocate(CONTAINER_BYTES + ELEMENT_BYTES * len(elements))
        return elements

    return apply_step


def _compile_map(selection: CompiledStep, body: CompiledExpression) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> list[Any]:
        allocate = frame[0].allocate
        allocate(CONTAINER_BYTES)
        results = []
        for _ in selection(frame, value):
            result = body(frame)
            if result is not OMIT:
                allocate(ELEMENT_BYTES)
                results.append(result)
        return results

    return apply_step


def _compile_sort_by(selection: CompiledStep, body: CompiledExpression) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> list[Any]:
        if type(value) is not list:
            raise create_no_overload_error("sortBy", value)
        elements, keys = [], []
        for element in selection(frame, value):
            frame[0].allocate(2 * ELEMENT_BYTES)
            elements.append(element)
            keys.append(body(frame))
        return sort_by_keys(frame[0], elements, keys)

    return apply_step


def _compile_transform_map(selection: CompiledStep, body: CompiledExpression) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> dict[Any, Any]:
        allocate = frame[0].allocate
        allocate(CONTAINER_BYTES)
        results = {}
        for key in selection(frame, value):
            result = body(frame)
            if result is not OMIT:
                allocate(ENTRY_BYTES)
                results[encode_map_key(key)] = result
        return results

    return apply_step


def _compile_transform_entries(
    iteration: LoopIteration, selection: CompiledStep, body: CompiledExpression
) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> dict[Any, Any]:
        frame[0].allocate(CONTAINER_BYTES)
        results: dict[Any, Any] = {}
        for _ in selection(frame, value):
            entries = body(frame)
            if type(entries) is not dict:
                message = (
                    f"{iteration.name}() requires a map for each element, not a value of type {get_type_name(entries)}"
                )
                raise EvaluationError("CelNoOverload", message)
            for key, result in entries.items():
                add_entry(frame[0], results, key, result)
        return results

    return apply_step


def add_entry(budget: ExpressionBudget, entries: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a map that the evaluation creates. Raise `EvaluationError` if the map contains the key."""
    budget.allocate(ENTRY_BYTES)
    stored = encode_map_key(key)
    if stored in entries:
        key_text = format_map_key(stored)
        raise EvaluationError(
            "CelDuplicateKey", f"the map has the key {key_text if len(key_text) <= 60 else key_text[:60] + '…'} twice"
        )
    entries[stored] = value
