"""Functions on lists, and functions that treat lists as sets."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.errors import EvaluationError
from reconciler.cel.library.signatures import INT, LIST, FunctionTable, create_overload
from reconciler.cel.operators import ORDERED_TYPES, compare_values, is_equal
from reconciler.cel.values import (
    EMPTY_OPTIONAL,
    MAX_VALUE_DEPTH,
    NUMBER_TYPES,
    CelOptional,
    create_too_deep_error,
    get_type_name,
)
from reconciler.krm.numbers import format_count


def make_range(budget: ExpressionBudget, count: int) -> list[int]:
    """Evaluate `lists.range(count)`: the numbers from 0 to count - 1."""
    if count < 0:
        raise EvaluationError("CelArgument", f"lists.range() requires a non-negative number, not {count}")
    budget.make_list(5 * count)  # An element needs 40 bytes: a pointer (8 bytes) and an int (32 bytes).
    return list(range(count))


def slice_list(budget: ExpressionBudget, elements: list[Any], start: int, end: int) -> list[Any]:
    """Evaluate `list.slice(start, end)`. The element at `end` is excluded."""
    if not 0 <= start <= end <= len(elements):
        raise EvaluationError(
            "CelIndex",
            f"slice() from {start} to {end} is outside of the list, which has {format_count(len(elements), 'element')}",
        )
    budget.make_list(end - start)
    return elements[start:end]


def reverse(budget: ExpressionBudget, elements: list[Any]) -> list[Any]:
    """Evaluate `list.reverse()`: the elements in reverse order."""
    budget.make_list(len(elements))
    return elements[::-1]


def first(budget: ExpressionBudget, elements: list[Any]) -> CelOptional:
    """Evaluate `list.first()`: an optional with the first element. The optional is empty if the list is empty."""
    return CelOptional(is_present=True, value=elements[0]) if elements else EMPTY_OPTIONAL


def last(budget: ExpressionBudget, elements: list[Any]) -> CelOptional:
    """Evaluate `list.last()`: an optional with the last element. The optional is empty if the list is empty."""
    return CelOptional(is_present=True, value=elements[-1]) if elements else EMPTY_OPTIONAL


def flatten(budget: ExpressionBudget, elements: list[Any], depth: int = 1) -> list[Any]:
    """Evaluate `list.flatten(depth)`: nested lists are replaced by their elements. `depth` is the number of levels."""
    if depth < 0:
        raise EvaluationError("CelArgument", f"flatten() requires a non-negative depth, not {depth}")
    flat: list[Any] = []
    _flatten(budget, elements, depth, flat, MAX_VALUE_DEPTH)
    return flat


def _flatten(budget: ExpressionBudget, elements: list[Any], depth: int, flat: list[Any], remaining_levels: int) -> None:
    if remaining_levels == 0:
        raise create_too_deep_error()
    budget.make_list(len(elements))
    for element in elements:
        budget.spend(1)
        if depth and type(element) is list:
            _flatten(budget, element, depth - 1, flat, remaining_levels - 1)
        else:
            flat.append(element)


def distinct(budget: ExpressionBudget, elements: list[Any]) -> list[Any]:
    """Evaluate `list.distinct()`: the list without duplicates. The first of several equal elements is kept."""
    budget.make_list(len(elements))
    budget.spend(len(elements))
    texts: set[str] = set()
    other_elements: list[Any] = []
    distinct_elements: list[Any] = []
    for element in elements:
        if type(element) is str:
            if element in texts:
                continue
            texts.add(element)
        else:
            if _contains_element(budget, other_elements, element):
                continue
            other_elements.append(element)
        distinct_elements.append(element)
    return distinct_elements


def _contains_element(budget: ExpressionBudget, elements: list[Any], value: Any) -> bool:
    for element in elements:
        budget.spend(1)
        if is_equal(budget, element, value):
            return True
    return False


def sort(budget: ExpressionBudget, elements: list[Any]) -> list[Any]:
    """Evaluate `list.sort()`. All elements must have the same type, and the type must have an order."""
    return sort_by_keys(budget, elements, elements)


def sort_by_keys(budget: ExpressionBudget, elements: list[Any], keys: list[Any]) -> list[Any]:
    """Return the elements in the order of their keys. Elements with equal keys keep their order."""
    budget.make_list(2 * len(elements))
    for key in keys:
        budget.spend(1)
        if type(key) not in ORDERED_TYPES and type(key) not in NUMBER_TYPES:
            raise EvaluationError("CelNoOverload", f"values of type {get_type_name(key)} have no order")
        if type(key) is not type(keys[0]):
            raise EvaluationError(
                "CelNoOverload", f"cannot sort {get_type_name(keys[0])} and {get_type_name(key)} in one list"
            )
    order = cmp_to_key(lambda left, right: _compare_for_sort(budget, left, right))
    return [element for _, element in sorted(zip(keys, elements, strict=True), key=lambda pair: order(pair[0]))]


def _compare_for_sort(budget: ExpressionBudget, left: Any, right: Any) -> int:
    budget.spend(1)
    result = compare_values(budget, "<", left, right)
    if result is None:
        raise EvaluationError("CelArgument", "a list that contains NaN cannot be sorted")
    return result


METHODS: FunctionTable = {
    "slice": (create_overload(slice_list, LIST, INT, INT),),
    "reverse": (create_overload(reverse, LIST),),
    "first": (create_overload(first, LIST),),
    "last": (create_overload(last, LIST),),
    "flatten": (create_overload(flatten, LIST), create_overload(flatten, LIST, INT)),
    "distinct": (create_overload(distinct, LIST),),
    "sort": (create_overload(sort, LIST),),
}

FUNCTIONS: FunctionTable = {"lists.range": (create_overload(make_range, INT),)}


def contains(budget: ExpressionBudget, elements: list[Any], values: list[Any]) -> bool:
    """Evaluate `sets.contains(elements, values)`: whether `elements` contains each element of `values`."""
    return all(_contains_element(budget, elements, value) for value in values)


def equivalent(budget: ExpressionBudget, left: list[Any], right: list[Any]) -> bool:
    """Evaluate `sets.equivalent(left, right)`: whether each list contains all elements of the other list."""
    return contains(budget, left, right) and contains(budget, right, left)


def intersects(budget: ExpressionBudget, left: list[Any], right: list[Any]) -> bool:
    """Evaluate `sets.intersects(left, right)`: whether the lists have a common element."""
    return any(_contains_element(budget, right, value) for value in left)


SET_FUNCTIONS: FunctionTable = {
    "sets.contains": (create_overload(contains, LIST, LIST),),
    "sets.equivalent": (create_overload(equivalent, LIST, LIST),),
    "sets.intersects": (create_overload(intersects, LIST, LIST),),
}
