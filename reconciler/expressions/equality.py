"""When two values are equal, which comes first, and in which order a map is walked through."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.errors import Fault
from reconciler.expressions.timestamps import Duration, Timestamp
from reconciler.expressions.values import (
    DEEPEST_VALUE,
    MISSING,
    NUMBERS,
    Optional,
    Uint,
    key_value,
    no_operator,
    stored_key,
    too_deep,
    type_name,
)

SORTED_ALIKE = frozenset({bool, str, bytes, Timestamp, Duration})
"""Types whose values have an order among themselves and with no others."""


def equal(budget: Budget, left: Any, right: Any, depth: int = 0) -> bool:
    """Tell whether two values are equal; values of different types are not, except for numbers of the same size."""
    kind = type(left)
    if kind is not type(right):
        return kind in NUMBERS and type(right) in NUMBERS and _equal_numbers(left, right)
    if kind is str or kind is bytes:
        budget.scan(min(len(left), len(right)))
    elif kind is list or kind is dict:
        if depth == DEEPEST_VALUE:
            raise too_deep()
        if len(left) != len(right):
            return False
        budget.spend(1 + len(left))
        return (_equal_lists if kind is list else _equal_maps)(budget, left, right, depth + 1)
    elif kind is Optional:
        return left.present is right.present and equal(budget, left.value, right.value, depth + 1)
    return bool(left == right)


def _equal_lists(budget: Budget, left: list[Any], right: list[Any], depth: int) -> bool:
    return all(map(equal, repeat(budget), left, right, repeat(depth)))


def _equal_maps(budget: Budget, left: dict[Any, Any], right: dict[Any, Any], depth: int) -> bool:
    for key, value in left.items():
        other = find(budget, right, key)
        if other is MISSING or not equal(budget, value, other, depth):
            return False
    return True


def find(budget: Budget, entries: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key, MISSING when there is none; numbers find keys of the same size of any type."""
    value = entries.get(stored_key(key), MISSING)
    if type(key) is str or key not in (0, 1):
        return value
    if type(key) is bool:
        if value is not MISSING:
            return value
        value = entries.get(key, MISSING)
    if value is MISSING:
        return MISSING
    # A map from outside may have Python's own booleans as keys, which Python finds by 1 and 0.
    budget.spend(len(entries))
    found = next(stored for stored in entries if type(stored) is not str and stored == key)
    return value if (type(found) is bool) is (type(key) is bool) else MISSING


def _equal_numbers(left: Any, right: Any) -> bool:
    if type(left) is float or type(right) is float:
        left, right = as_double(left), as_double(right)
    return bool(left == right)


def as_double(number: Any) -> float:
    """Return a number as a double, the nearest there is; the standard compares numbers of different types so."""
    try:
        return float(number)
    except OverflowError:  # only a number from outside can be that large
        raise Fault("CelArithmetic", "an integer is outside of the range of double") from None


def compare(budget: Budget, operator: str, left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1 as `left` comes before, with or after `right`, None when one is not a number (NaN).

    Faults when the two have no order; `operator` is for the message.
    """
    kind, other = type(left), type(right)
    if kind in NUMBERS and other in NUMBERS:
        if kind is not other and float in (kind, other):
            left, right = as_double(left), as_double(right)
    elif kind is not other or kind not in SORTED_ALIKE:
        raise no_operator(operator, left, right)
    if kind is str or kind is bytes:
        budget.scan(min(len(left), len(right)))
    if left < right:
        return -1
    return 0 if left == right else 1 if left > right else None


_KEY_RANKS = {type(None): 0, bool: 1, int: 2, Uint: 2, float: 2, str: 3, bytes: 4}


def sorted_keys(budget: Budget, entries: dict[Any, Any]) -> list[Any]:
    """Return a map's keys sorted: bools, then numbers, then strings by code point, everywhere the same."""
    budget.spend(len(entries))
    if len(entries) == 1:
        return [key_value(key) for key in entries]
    try:
        return sorted(entries)
    except TypeError:
        return sorted(map(key_value, entries), key=_key_rank)


def _key_rank(key: Any) -> tuple[int, Any]:
    rank = _KEY_RANKS.get(type(key))
    if rank is None:
        raise Fault("CelNoOverload", f"a {type_name(key)} cannot be the key of a map")
    return rank, 0 if key is None else key
