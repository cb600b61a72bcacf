"""The functions of `math.`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.equality import compare
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.signatures import DOUBLE, INT, LIST, NUMBER, UINT, Functions, Overload, overload
from reconciler.expressions.values import NUMBERS, UINT_MAX, Uint, no_overload, signed


def greatest(budget: Budget, *numbers: Any) -> Any:
    """`math.greatest(a, b, ...)`: of equal ones the first."""
    return _extreme(budget, ">", 1, numbers)


def least(budget: Budget, *numbers: Any) -> Any:
    """`math.least(a, b, ...)`: of equal ones the first."""
    return _extreme(budget, "<", -1, numbers)


def greatest_of(budget: Budget, numbers: list[Any]) -> Any:
    """`math.greatest([a, b, ...])`."""
    return _extreme(budget, ">", 1, _numbers("math.greatest", numbers))


def least_of(budget: Budget, numbers: list[Any]) -> Any:
    """`math.least([a, b, ...])`."""
    return _extreme(budget, "<", -1, _numbers("math.least", numbers))


def _numbers(name: str, numbers: list[Any]) -> tuple[Any, ...]:
    if not numbers:
        raise Fault("CelArgument", f"{name}() needs at least one number, the list is empty")
    if not all(type(number) in NUMBERS for number in numbers):
        raise no_overload(name, numbers)
    return tuple(numbers)


def _extreme(budget: Budget, operator: str, wanted: int, numbers: tuple[Any, ...]) -> Any:
    budget.spend(len(numbers))
    result = numbers[0]
    for number in numbers[1:]:
        if compare(budget, operator, number, result) == wanted:
            result = number
    return result


def _finite(function: Callable[[float], int]) -> Callable[[Budget, float], float]:
    """Return a rounding of doubles; infinities and NaN stay, and so does the sign of zero."""

    def rounded(budget: Budget, number: float) -> float:
        return math.copysign(float(function(number)), number) if math.isfinite(number) else number

    return rounded


def _half_away_from_zero(number: float) -> int:
    whole = math.trunc(number)
    return whole if abs(number - whole) < 0.5 else whole + (1 if number > 0 else -1)


def absolute(budget: Budget, number: Any) -> Any:
    """`math.abs(x)`."""
    if type(number) is int:
        return signed(abs(number))
    return Uint(number) if type(number) is Uint else abs(number)


def sign(budget: Budget, number: Any) -> Any:
    """`math.sign(x)`: -1, 0 or 1 in the number's own type; NaN stays."""
    if number != number:
        return number
    return type(number)((number > 0) - (number < 0))


def square_root(budget: Budget, number: Any) -> float:
    """`math.sqrt(x)`; of a negative number it is NaN."""
    return math.sqrt(number) if number >= 0 else math.nan


def is_nan(budget: Budget, number: float) -> bool:
    """`math.isNaN(x)`."""
    return math.isnan(number)


def is_infinite(budget: Budget, number: float) -> bool:
    """`math.isInf(x)`."""
    return math.isinf(number)


def is_finite(budget: Budget, number: float) -> bool:
    """`math.isFinite(x)`."""
    return math.isfinite(number)


def _wrapped(kind: type[int], bits: int) -> int:
    """Return the low 64 bits as an int in two's complement or as a uint."""
    low = bits & UINT_MAX
    if kind is Uint:
        return Uint(low)
    return low - 2**64 if low >= 2**63 else low


def bit_and(budget: Budget, left: int, right: int) -> int:
    """`math.bitAnd(a, b)`."""
    return _wrapped(type(left), int(left) & int(right))


def bit_or(budget: Budget, left: int, right: int) -> int:
    """`math.bitOr(a, b)`."""
    return _wrapped(type(left), int(left) | int(right))


def bit_xor(budget: Budget, left: int, right: int) -> int:
    """`math.bitXor(a, b)`."""
    return _wrapped(type(left), int(left) ^ int(right))


def bit_not(budget: Budget, number: int) -> int:
    """`math.bitNot(a)`."""
    return _wrapped(type(number), ~int(number))


def shift_left(budget: Budget, number: int, places: int) -> int:
    """`math.bitShiftLeft(a, places)`; what is shifted out is lost."""
    return _wrapped(type(number), int(number) << _places(places))


def shift_right(budget: Budget, number: int, places: int) -> int:
    """`math.bitShiftRight(a, places)`; zeros come in from the left, also for negative numbers."""
    return _wrapped(type(number), (int(number) & UINT_MAX) >> _places(places))


def _places(places: int) -> int:
    if places < 0:
        raise Fault("CelArgument", f"a shift needs a number of places that is not negative, not {places}")
    return min(places, 64)


def _both_whole(function: Callable[..., Any]) -> tuple[Overload, ...]:
    return overload(function, INT, INT), overload(function, UINT, UINT)


_WHOLE = frozenset({int, Uint})

FUNCTIONS: Functions = {
    "math.greatest": (overload(greatest_of, LIST), overload(greatest, NUMBER, repeated=True)),
    "math.least": (overload(least_of, LIST), overload(least, NUMBER, repeated=True)),
    "math.ceil": (overload(_finite(math.ceil), DOUBLE),),
    "math.floor": (overload(_finite(math.floor), DOUBLE),),
    "math.round": (overload(_finite(_half_away_from_zero), DOUBLE),),
    "math.trunc": (overload(_finite(math.trunc), DOUBLE),),
    "math.abs": (overload(absolute, NUMBER),),
    "math.sign": (overload(sign, NUMBER),),
    "math.sqrt": (overload(square_root, NUMBER),),
    "math.isNaN": (overload(is_nan, DOUBLE),),
    "math.isInf": (overload(is_infinite, DOUBLE),),
    "math.isFinite": (overload(is_finite, DOUBLE),),
    "math.bitAnd": _both_whole(bit_and),
    "math.bitOr": _both_whole(bit_or),
    "math.bitXor": _both_whole(bit_xor),
    "math.bitNot": (overload(bit_not, _WHOLE),),
    "math.bitShiftLeft": (overload(shift_left, _WHOLE, INT),),
    "math.bitShiftRight": (overload(shift_right, _WHOLE, INT),),
}
