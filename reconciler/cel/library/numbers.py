"""Functions of the CEL extension `math`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.errors import EvaluationError
from reconciler.cel.library.signatures import DOUBLE, INT, LIST, NUMBER, UINT, FunctionTable, Overload, create_overload
from reconciler.cel.operators import compare_values
from reconciler.cel.values import NUMBER_TYPES, UINT_MAX, Uint, check_int_range, create_no_overload_error


def greatest(budget: ExpressionBudget, *numbers: Any) -> Any:
    """Evaluate `math.greatest(a, b, ...)`: the greatest number, or the first of several equal greatest numbers."""
    return _find_extreme(budget, ">", 1, numbers)


def least(budget: ExpressionBudget, *numbers: Any) -> Any:
    """Evaluate `math.least(a, b, ...)`: the least number, or the first of several equal least numbers."""
    return _find_extreme(budget, "<", -1, numbers)


def greatest_in_list(budget: ExpressionBudget, numbers: list[Any]) -> Any:
    """Evaluate `math.greatest([a, b, ...])`: the greatest number in the list."""
    return _find_extreme(budget, ">", 1, _check_numbers("math.greatest", numbers))


def least_in_list(budget: ExpressionBudget, numbers: list[Any]) -> Any:
    """Evaluate `math.least([a, b, ...])`: the least number in the list."""
    return _find_extreme(budget, "<", -1, _check_numbers("math.least", numbers))


def _check_numbers(name: str, numbers: list[Any]) -> tuple[Any, ...]:
    if not numbers:
        raise EvaluationError("CelArgument", f"{name}() requires at least one number, but the list is empty")
    if not all(type(number) in NUMBER_TYPES for number in numbers):
        raise create_no_overload_error(name, numbers)
    return tuple(numbers)


def _find_extreme(budget: ExpressionBudget, operator: str, expected_order: int, numbers: tuple[Any, ...]) -> Any:
    budget.spend(len(numbers))
    result = numbers[0]
    for number in numbers[1:]:
        if compare_values(budget, operator, number, result) == expected_order:
            result = number
    return result


def _create_rounding(function: Callable[[float], int]) -> Callable[[ExpressionBudget, float], float]:
    """Convert a rounding function to a CEL function that keeps infinity, NaN and the sign of zero."""

    def rounded(budget: ExpressionBudget, number: float) -> float:
        return math.copysign(float(function(number)), number) if math.isfinite(number) else number

    return rounded


def _round_half_away_from_zero(number: float) -> int:
    whole = math.trunc(number)
    return whole if abs(number - whole) < 0.5 else whole + (1 if number > 0 else -1)


def absolute(budget: ExpressionBudget, number: Any) -> Any:
    """Evaluate `math.abs(x)`."""
    if type(number) is int:
        return check_int_range(abs(number))
    return Uint(number) if type(number) is Uint else abs(number)


def sign(budget: ExpressionBudget, number: Any) -> Any:
    """Evaluate `math.sign(x)`: -1, 0 or 1, with the same type as `x`. The result is NaN if `x` is NaN."""
    if number != number:
        return number
    return type(number)((number > 0) - (number < 0))


def square_root(budget: ExpressionBudget, number: Any) -> float:
    """Evaluate `math.sqrt(x)`. The result for a negative number is NaN."""
    return math.sqrt(number) if number >= 0 else math.nan


def is_nan(budget: ExpressionBudget, number: float) -> bool:
    """Evaluate `math.isNaN(x)`."""
    return math.isnan(number)


def is_infinite(budget: ExpressionBudget, number: float) -> bool:
    """Evaluate `math.isInf(x)`."""
    return math.isinf(number)


def is_finite(budget: ExpressionBudget, number: float) -> bool:
    """Evaluate `math.isFinite(x)`."""
    return math.isfinite(number)


def _wrap(kind: type[int], bits: int) -> int:
    """Return the low 64 bits of an integer, as a CEL int in two's complement or as a CEL uint."""
    low = bits & UINT_MAX
    if kind is Uint:
        return Uint(low)
    return low - 2**64 if low >= 2**63 else low


def bit_and(budget: ExpressionBudget, left: int, right: int) -> int:
    """Evaluate `math.bitAnd(a, b)`."""
    return _wrap(type(left), int(left) & int(right))


def bit_or(budget: ExpressionBudget, left: int, right: int) -> int:
    """Evaluate `math.bitOr(a, b)`."""
    return _wrap(type(left), int(left) | int(right))


def bit_xor(budget: ExpressionBudget, left: int, right: int) -> int:
    """Evaluate `math.bitXor(a, b)`."""
    return _wrap(type(left), int(left) ^ int(right))


def bit_not(budget: ExpressionBudget, number: int) -> int:
    """Evaluate `math.bitNot(a)`."""
    return _wrap(type(number), ~int(number))


def shift_left(budget: ExpressionBudget, number: int, bit_count: int) -> int:
    """Evaluate `math.bitShiftLeft(a, places)`. The result has 64 bits. Higher bits are discarded."""
    return _wrap(type(number), int(number) << _check_places(bit_count))


def shift_right(budget: ExpressionBudget, number: int, bit_count: int) -> int:
    """Evaluate `math.bitShiftRight(a, places)`. The new high bits are zeros, even if `a` is negative."""
    return _wrap(type(number), (int(number) & UINT_MAX) >> _check_places(bit_count))


def _check_places(places: int) -> int:
    if places < 0:
        raise EvaluationError("CelArgument", f"a shift requires a non-negative number of places, not {places}")
    return min(places, 64)


def _create_integer_overloads(function: Callable[..., Any]) -> tuple[Overload, ...]:
    return create_overload(function, INT, INT), create_overload(function, UINT, UINT)


_INTEGER_TYPES = frozenset({int, Uint})

FUNCTIONS: FunctionTable = {
    "math.greatest": (create_overload(greatest_in_list, LIST), create_overload(greatest, NUMBER, repeated=True)),
    "math.least": (create_overload(least_in_list, LIST), create_overload(least, NUMBER, repeated=True)),
    "math.ceil": (create_overload(_create_rounding(math.ceil), DOUBLE),),
    "math.floor": (create_overload(_create_rounding(math.floor), DOUBLE),),
    "math.round": (create_overload(_create_rounding(_round_half_away_from_zero), DOUBLE),),
    "math.trunc": (create_overload(_create_rounding(math.trunc), DOUBLE),),
    "math.abs": (create_overload(absolute, NUMBER),),
    "math.sign": (create_overload(sign, NUMBER),),
    "math.sqrt": (create_overload(square_root, NUMBER),),
    "math.isNaN": (create_overload(is_nan, DOUBLE),),
    "math.isInf": (create_overload(is_infinite, DOUBLE),),
    "math.isFinite": (create_overload(is_finite, DOUBLE),),
    "math.bitAnd": _create_integer_overloads(bit_and),
    "math.bitOr": _create_integer_overloads(bit_or),
    "math.bitXor": _create_integer_overloads(bit_xor),
    "math.bitNot": (create_overload(bit_not, _INTEGER_TYPES),),
    "math.bitShiftLeft": (create_overload(shift_left, _INTEGER_TYPES, INT),),
    "math.bitShiftRight": (create_overload(shift_right, _INTEGER_TYPES, INT),),
}
