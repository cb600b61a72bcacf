"""The functions on lists."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.equality import SORTED_ALIKE, compare, equal
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.signatures import INT, LIST, Functions, overload
from reconciler.expressions.values import DEEPEST_VALUE, NONE, NUMBERS, Optional, too_deep, type_name


def make_range(budget: Budget, count: int) -> list[int]:
    """`lists.range(count)`: 0 to count - 1."""
    if count < 0:
        raise Fault("CelArgument", f"lists.range() needs a number that is not negative, not {count}")
    budget.make_list(5 * count)  # a place and an int each
    return list(range(count))


def slice_list(budget: Budget, elements: list[Any], start: int, end: int) -> list[Any]:
    """`list.slice(start, end)`, without the element at end."""
    if not 0 <= start <= end <= len(elements):
        raise Fault("CelIndex", f"slice() from {start} to {end} is outside of the list, which has {len(elements)}")
    budget.make_list(end - start)
    return elements[start:end]


def reverse(budget: Budget, elements: list[Any]) -> list[Any]:
    """`list.reverse()`."""
    budget.make_list(len(elements))
    return elements[::-1]


def first(budget: Budget, elements: list[Any]) -> Optional:
    """`list.first()`: an optional, empty for an empty list."""
    return Optional(present=True, value=elements[0]) if elements else NONE


def last(budget: Budget, elements: list[Any]) -> Optional:
    """`list.last()`: an optional, empty for an empty list."""
    return Optional(present=True, value=elements[-1]) if elements else NONE


def flatten(budget: Budget, elements: list[Any], depth: int = 1) -> list[Any]:
    """`list.flatten(depth)`: lists in the list give way to their elements, `depth` levels deep."""
    if depth < 0:
        raise Fault("CelArgument", f"flatten() needs a depth that is not negative, not {depth}")
    flat: list[Any] = []
    _flatten(budget, elements, depth, flat, DEEPEST_VALUE)
    return flat


def _flatten(budget: Budget, elements: list[Any], depth: int, flat: list[Any], levels_left: int) -> None:
    if levels_left == 0:
        raise too_deep()
    budget.make_list(len(elements))
    for element in elements:
        budget.spend(1)
        if depth and type(element) is list:
            _flatten(budget, element, depth - 1, flat, levels_left - 1)
        else:
            flat.append(element)


def distinct(budget: Budget, elements: list[Any]) -> list[Any]:
    """`list.distinct()`: the first of equal elements stays."""
    budget.make_list(len(elements))
    budget.spend(len(elements))
    texts: set[str] = set()
    others: list[Any] = []
    kept: list[Any] = []
    for element in elements:
        if type(element) is str:
            if element in texts:
                continue
            texts.add(element)
        else:
            if _holds(budget, others, element):
                continue
            others.append(element)
        kept.append(element)
    return kept


def _holds(budget: Budget, elements: list[Any], wanted: Any) -> bool:
    for element in elements:
        budget.spend(1)
        if equal(budget, element, wanted):
            return True
    return False


def sort(budget: Budget, elements: list[Any]) -> list[Any]:
    """`list.sort()`: of values of one type that has an order."""
    return sort_by_keys(budget, elements, elements)


def sort_by_keys(budget: Budget, elements: list[Any], keys: list[Any]) -> list[Any]:
    """Return the elements in the order of their keys, equal ones in the order they had."""
    budget.make_list(2 * len(elements))
    for key in keys:
        budget.spend(1)
        if type(key) not in SORTED_ALIKE and type(key) not in NUMBERS:
            raise Fault("CelNoOverload", f"values of type {type_name(key)} have no order")
        if type(key) is not type(keys[0]):
            raise Fault("CelNoOverload", f"cannot sort {type_name(keys[0])} and {type_name(key)} in one list")
    order = cmp_to_key(lambda left, right: _ordered(budget, left, right))
    return [element for _, element in sorted(zip(keys, elements, strict=True), key=lambda pair: order(pair[0]))]


def _ordered(budget: Budget, left: Any, right: Any) -> int:
    budget.spend(1)
    result = compare(budget, "<", left, right)
    if result is None:
        raise Fault("CelArgument", "a list with NaN in it cannot be sorted")
    return result


METHODS: Functions = {
    "slice": (overload(slice_list, LIST, INT, INT),),
    "reverse": (overload(reverse, LIST),),
    "first": (overload(first, LIST),),
    "last": (overload(last, LIST),),
    "flatten": (overload(flatten, LIST), overload(flatten, LIST, INT)),
    "distinct": (overload(distinct, LIST),),
    "sort": (overload(sort, LIST),),
}

FUNCTIONS: Functions = {"lists.range": (overload(make_range, INT),)}
