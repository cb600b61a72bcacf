"""The operators between two values, and the two before one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.equality import compare, equal, find
from reconciler.expressions.errors import Fault
from reconciler.expressions.timestamps import Duration, Timestamp, point, span
from reconciler.expressions.values import KEYS, MISSING, Uint, no_operator, no_overload, signed, type_name, unsigned

Operator = Callable[[Budget, Any, Any], Any]


def add(budget: Budget, left: Any, right: Any) -> Any:
    """`left + right`."""
    if type(left) is str and type(right) is str:
        # before the text is made
        budget.allocate(sum(len(part) if part.isascii() else 4 * len(part) for part in (left, right)))
        return left + right
    match left, right:
        case list(), list():
            budget.make_list(len(left) + len(right))
            return left + right
        case bytes(), bytes():
            budget.allocate(len(left) + len(right))
            return left + right
        case float(), float():
            return left + right
        case Timestamp(), Duration():
            return point(left.nanoseconds + right.nanoseconds)
        case Duration(), Timestamp():
            return point(left.nanoseconds + right.nanoseconds)
        case Duration(), Duration():
            return span(left.nanoseconds + right.nanoseconds)
    return _whole(left, right, "+")(left + right)


def subtract(budget: Budget, left: Any, right: Any) -> Any:
    """`left - right`."""
    match left, right:
        case float(), float():
            return left - right
        case Timestamp(), Timestamp():
            return span(left.nanoseconds - right.nanoseconds)
        case Timestamp(), Duration():
            return point(left.nanoseconds - right.nanoseconds)
        case Duration(), Duration():
            return span(left.nanoseconds - right.nanoseconds)
    return _whole(left, right, "-")(left - right)


def multiply(budget: Budget, left: Any, right: Any) -> Any:
    """`left * right`."""
    if type(left) is float and type(right) is float:
        return left * right
    return _whole(left, right, "*")(left * right)


def divide(budget: Budget, left: Any, right: Any) -> Any:
    """`left / right`; whole numbers toward zero."""
    if type(left) is float and type(right) is float:
        return _divide_doubles(left, right)
    checked = _whole(left, right, "/")
    if right == 0:
        raise Fault("CelArithmetic", "division by zero")
    quotient = abs(left) // abs(right)
    return checked(quotient if (left < 0) is (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(budget: Budget, left: Any, right: Any) -> Any:
    """`left % right`; whole numbers only, with the sign of `left`."""
    checked = _whole(left, right, "%")
    if right == 0:
        raise Fault("CelArithmetic", "division by zero")
    rest = abs(left) % abs(right)
    return checked(-rest if left < 0 else rest)


def _whole(left: Any, right: Any, operator: str) -> Callable[[int], int]:
    """Return the range check of two ints or two uints; anything else is a fault."""
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return signed
        if kind is Uint:
            return unsigned
    raise no_operator(operator, left, right)


def less(budget: Budget, left: Any, right: Any) -> bool:
    """`left < right`."""
    return compare(budget, "<", left, right) == -1


def less_equal(budget: Budget, left: Any, right: Any) -> bool:
    """`left <= right`."""
    return compare(budget, "<=", left, right) in (-1, 0)


def greater(budget: Budget, left: Any, right: Any) -> bool:
    """`left > right`."""
    return compare(budget, ">", left, right) == 1


def greater_equal(budget: Budget, left: Any, right: Any) -> bool:
    """`left >= right`."""
    return compare(budget, ">=", left, right) in (0, 1)


def unequal(budget: Budget, left: Any, right: Any) -> bool:
    """`left != right`."""
    return not equal(budget, left, right)


def contains(budget: Budget, left: Any, right: Any) -> bool:
    """`left in right`: an element of a list, a key of a map."""
    if type(right) is dict:
        if type(left) is not float and type(left) not in KEYS:
            raise no_operator("in", left, right)
        return find(budget, right, left) is not MISSING
    if type(right) is not list:
        raise no_operator("in", left, right)
    for element in right:
        budget.spend(1)
        if equal(budget, left, element):
            return True
    return False


def negate(value: Any) -> Any:
    """`-value`."""
    if type(value) is int:
        return signed(-value)
    if type(value) is float:
        return -value
    raise no_overload("-", value)


def invert(value: Any) -> bool:
    """`!value`."""
    if type(value) is bool:
        return not value
    raise no_overload("!", value)


OPERATORS: dict[str, Operator] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "==": equal,
    "!=": unequal,
    "<": less,
    "<=": less_equal,
    ">": greater,
    ">=": greater_equal,
    "in": contains,
}

SIGNS: dict[str, Callable[[Any], Any]] = {"-": negate, "!": invert}


def not_bool(where: str, value: Any) -> Fault:
    """Return the fault for a value that had to be a bool."""
    return Fault("CelNoOverload", f"{where} needs a bool, not a value of type {type_name(value)}")
