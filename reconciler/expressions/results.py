"""The result of an evaluation: a copy of its own, paid for, so that nobody changes an input through it."""

from __future__ import annotations

from typing import Any

from reconciler.expressions.budget import CONTAINER_BYTES, ELEMENT_BYTES, ENTRY_BYTES, Budget
from reconciler.expressions.errors import Fault
from reconciler.expressions.values import DEEPEST_VALUE, TYPE_NAMES, Optional, key_value, too_deep, type_name


def copied(budget: Budget, value: Any, depth: int = 0) -> Any:
    """Return a deep copy; what a value shares with itself is paid for as often as it shows (`[a, a]` has two)."""
    if depth > DEEPEST_VALUE:
        raise too_deep()
    kind = type(value)
    if kind is list:
        budget.spend(len(value))
        budget.allocate(CONTAINER_BYTES + ELEMENT_BYTES * len(value))
        return [copied(budget, element, depth + 1) for element in value]
    if kind is dict:
        budget.spend(len(value))
        budget.allocate(CONTAINER_BYTES + ENTRY_BYTES * len(value))
        result = {key_value(key): copied(budget, element, depth + 1) for key, element in value.items()}
        if len(result) < len(value):
            raise Fault("CelNoOverload", "a result cannot be a map that has both a boolean key and the number 0 or 1")
        return result
    if kind is Optional:
        return Optional(value.present, copied(budget, value.value, depth + 1))
    if kind is str or kind is bytes:
        budget.allocate(len(value))
    elif kind not in TYPE_NAMES:
        type_name(value)
    return value
