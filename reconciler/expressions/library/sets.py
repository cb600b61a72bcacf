"""The functions that take lists as sets."""

from __future__ import annotations

from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.equality import equal
from reconciler.expressions.library.signatures import LIST, Functions, overload


def contains(budget: Budget, elements: list[Any], wanted: list[Any]) -> bool:
    """`sets.contains(elements, wanted)`: is every wanted one among the elements."""
    return all(_among(budget, one, elements) for one in wanted)


def equivalent(budget: Budget, left: list[Any], right: list[Any]) -> bool:
    """`sets.equivalent(left, right)`: does each have every element of the other."""
    return contains(budget, left, right) and contains(budget, right, left)


def intersects(budget: Budget, left: list[Any], right: list[Any]) -> bool:
    """`sets.intersects(left, right)`: have they an element in common."""
    return any(_among(budget, one, right) for one in left)


def _among(budget: Budget, wanted: Any, elements: list[Any]) -> bool:
    for element in elements:
        budget.spend(1)
        if equal(budget, wanted, element):
            return True
    return False


FUNCTIONS: Functions = {
    "sets.contains": (overload(contains, LIST, LIST),),
    "sets.equivalent": (overload(equivalent, LIST, LIST),),
    "sets.intersects": (overload(intersects, LIST, LIST),),
}
