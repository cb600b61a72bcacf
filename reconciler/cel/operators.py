"""Operators of CEL: equality, order, field access, index access, arithmetic and logic."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import Any

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.errors import EvaluationError
from reconciler.cel.timestamps import Duration, Timestamp, create_duration, create_timestamp
from reconciler.cel.values import (
    EMPTY_OPTIONAL,
    KEY_TYPES,
    MAX_VALUE_DEPTH,
    MISSING,
    NUMBER_TYPES,
    CelOptional,
    Uint,
    check_int_range,
    convert_to_uint,
    create_no_operator_error,
    create_no_overload_error,
    create_too_deep_error,
    decode_map_key,
    encode_map_key,
    format_map_key,
    format_number,
    get_type_name,
)

ORDERED_TYPES = frozenset({bool, str, bytes, Timestamp, Duration})
"""Types whose values have an order. Values of two different types have no order."""


def is_equal(budget: ExpressionBudget, left: Any, right: Any, depth: int = 0) -> bool:
    """Evaluate `left == right`.

    Values of different types are not equal. Numbers are an exception: 1, 1u and 1.0 are equal.
    """
    kind = type(left)
    if kind is not type(right):
        return kind in NUMBER_TYPES and type(right) in NUMBER_TYPES and _are_equal_numbers(left, right)
    if kind is str or kind is bytes:
        budget.scan(min(len(left), len(right)))
    elif kind is list or kind is dict:
        if depth == MAX_VALUE_DEPTH:
            raise create_too_deep_error()
        if len(left) != len(right):
            return False
        budget.spend(1 + len(left))
        return (_are_equal_lists if kind is list else _are_equal_maps)(budget, left, right, depth + 1)
    elif kind is CelOptional:
        return left.is_present is right.is_present and is_equal(budget, left.value, right.value, depth + 1)
    return bool(left == right)


def _are_equal_lists(budget: ExpressionBudget, left: list[Any], right: list[Any], depth: int) -> bool:
    return all(map(is_equal, repeat(budget), left, right, repeat(depth)))


def _are_equal_maps(budget: ExpressionBudget, left: dict[Any, Any], right: dict[Any, Any], depth: int) -> bool:
    for key, value in left.items():
        other = find_entry(budget, right, key)
        if other is MISSING or not is_equal(budget, value, other, depth):
            return False
    return True


def find_entry(budget: ExpressionBudget, entries: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key in a map. Return MISSING if the map does not contain the key.

    Numbers of different types are the same key if they are equal, e.g. 1, 1u and 1.0.
    """
    value = entries.get(encode_map_key(key), MISSING)
    if type(key) is str or key not in (0, 1):
        return value
    if type(key) is bool:
        if value is not MISSING:
            return value
        value = entries.get(key, MISSING)
    if value is MISSING:
        return MISSING
    # Compare the types of the keys too, because a map from the caller can have the key True, and True == 1 in Python.
    budget.spend(len(entries))
    stored_key = next(stored for stored in entries if type(stored) is not str and stored == key)
    return value if (type(stored_key) is bool) is (type(key) is bool) else MISSING


def _are_equal_numbers(left: Any, right: Any) -> bool:
    if type(left) is float or type(right) is float:
        left, right = convert_to_double(left), convert_to_double(right)
    return bool(left == right)


def convert_to_double(number: Any) -> float:
    """Return the double that is nearest to a number. CEL compares numbers of different types as doubles."""
    try:
        return float(number)
    except OverflowError:
        # A CEL int has 64 bits and fits into a double. Only a Python int that the caller binds to a variable can be too
        # large.
        raise EvaluationError("CelArithmetic", "an integer is outside of the range of double") from None


def compare_values(budget: ExpressionBudget, operator: str, left: Any, right: Any) -> int | None:
    """Compare two values.

    Args:
        operator: The operator in the expression, for the error message.

    Returns:
        -1, 0 or 1 if `left` is less than, equal to or greater than `right`. None if one value is NaN.

    Raises:
        EvaluationError: The types of the values have no order, or the types differ.
    """
    kind, other = type(left), type(right)
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        if kind is not other and float in (kind, other):
            left, right = convert_to_double(left), convert_to_double(right)
    elif kind is not other or kind not in ORDERED_TYPES:
        raise create_no_operator_error(operator, left, right)
    if kind is str or kind is bytes:
        budget.scan(min(len(left), len(right)))
    if left < right:
        return -1
    return 0 if left == right else 1 if left > right else None


_TYPE_RANKS = {type(None): 0, bool: 1, int: 2, Uint: 2, float: 2, str: 3, bytes: 4}


def sort_keys(budget: ExpressionBudget, entries: dict[Any, Any]) -> list[Any]:
    """Return the keys of a map in a deterministic order: bools, then numbers, then strings by code point."""
    budget.spend(len(entries))
    if len(entries) == 1:
        return [decode_map_key(key) for key in entries]
    try:
        return sorted(entries)
    except TypeError:
        return sorted(map(decode_map_key, entries), key=_rank_key)


def _rank_key(key: Any) -> tuple[int, Any]:
    rank = _TYPE_RANKS.get(type(key))
    if rank is None:
        raise EvaluationError("CelNoOverload", f"a {get_type_name(key)} cannot be the key of a map")
    return rank, 0 if key is None else key


def read_field(value: Any, name: str) -> Any:
    """Evaluate `value.name`. If the value is an optional, the result is an optional."""
    if type(value) is dict:
        entry = value.get(name, MISSING)
        if entry is MISSING:
            raise create_no_such_key_error(name)
        return entry
    if type(value) is CelOptional:
        return read_optional_field(value, name)
    raise _create_no_field_error(value, name)


def read_optional_field(value: Any, name: str) -> CelOptional:
    """Evaluate `value.?name`. The result is an empty optional if the field does not exist."""
    entry = find_optional_field(value, name)
    return EMPTY_OPTIONAL if entry is MISSING else CelOptional(is_present=True, value=entry)


def find_optional_field(value: Any, name: str) -> Any:
    """Return the value of the optional `value.?name`. Return `MISSING` if the optional is empty."""
    if type(value) is CelOptional:
        return find_optional_field(value.value, name) if value.is_present else MISSING
    if type(value) is not dict:
        raise _create_no_field_error(value, name)
    return value.get(name, MISSING)


def has_field(value: Any, name: str) -> bool:
    """Evaluate `has(value.name)`: whether the field exists."""
    if type(value) is dict:
        return name in value
    return find_optional_field(value, name) is not MISSING


def read_index(budget: ExpressionBudget, value: Any, index: Any) -> Any:
    """Evaluate `value[index]` for a list or map. If the value is an optional, the result is an optional."""
    kind = type(value)
    if kind is dict:
        entry = find_entry(budget, value, _check_key(index))
        if entry is MISSING:
            raise create_no_such_key_error(index)
        return entry
    if kind is list:
        position = _check_position(index)
        if 0 <= position < len(value):
            return value[position]
        raise EvaluationError(
            "CelIndex", f"index out of bounds: {format_number(position)}; number of elements: {len(value)}"
        )
    if kind is CelOptional:
        return read_optional_index(budget, value, index)
    raise EvaluationError("CelNoOverload", f"a value of type {get_type_name(value)} cannot be indexed")


def read_optional_index(budget: ExpressionBudget, value: Any, index: Any) -> CelOptional:
    """Evaluate `value[?index]`. The result is an empty optional if the element or entry does not exist."""
    if type(value) is CelOptional:
        return read_optional_index(budget, value.value, index) if value.is_present else EMPTY_OPTIONAL
    try:
        return CelOptional(is_present=True, value=read_index(budget, value, index))
    except EvaluationError as fault:
        if fault.code in ("CelIndex", "CelNoSuchKey"):
            return EMPTY_OPTIONAL
        raise


def create_no_such_key_error(key: Any) -> EvaluationError:
    """Create the error for a key that a map does not contain."""
    key_text = format_number(key) if type(key) in NUMBER_TYPES else format_map_key(key)
    return EvaluationError("CelNoSuchKey", f"no such key: {key_text if len(key_text) <= 100 else key_text[:100] + '…'}")


def _create_no_field_error(value: Any, name: str) -> EvaluationError:
    return EvaluationError("CelNoOverload", f"a value of type {get_type_name(value)} has no field '{name}'")


def _check_key(index: Any) -> Any:
    if type(index) in KEY_TYPES or type(index) is float:
        return index
    raise EvaluationError("CelNoOverload", f"a value of type {get_type_name(index)} is not a valid map key")


def _check_position(index: Any) -> int:
    if type(index) in NUMBER_TYPES and index == index // 1:
        return int(index)
    raise EvaluationError(
        "CelNoOverload", f"a list index must be an integer, not a value of type {get_type_name(index)}"
    )


BinaryOperator = Callable[[ExpressionBudget, Any, Any], Any]


def add(budget: ExpressionBudget, left: Any, right: Any) -> Any:
    """Evaluate `left + right`."""
    if type(left) is str and type(right) is str:
        # Subtract the size from the budget first, so that a string that exceeds the budget is not created.
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
            return create_timestamp(left.nanoseconds + right.nanoseconds)
        case Duration(), Timestamp():
            return create_timestamp(left.nanoseconds + right.nanoseconds)
        case Duration(), Duration():
            return create_duration(left.nanoseconds + right.nanoseconds)
    return _find_range_check(left, right, "+")(left + right)


def subtract(budget: ExpressionBudget, left: Any, right: Any) -> Any:
    """Evaluate `left - right`."""
    match left, right:
        case float(), float():
            return left - right
        case Timestamp(), Timestamp():
            return create_duration(left.nanoseconds - right.nanoseconds)
        case Timestamp(), Duration():
            return create_timestamp(left.nanoseconds - right.nanoseconds)
        case Duration(), Duration():
            return create_duration(left.nanoseconds - right.nanoseconds)
    return _find_range_check(left, right, "-")(left - right)


def multiply(budget: ExpressionBudget, left: Any, right: Any) -> Any:
    """Evaluate `left * right`."""
    if type(left) is float and type(right) is float:
        return left * right
    return _find_range_check(left, right, "*")(left * right)


def divide(budget: ExpressionBudget, left: Any, right: Any) -> Any:
    """Evaluate `left / right`. The quotient of two integers is rounded toward zero."""
    if type(left) is float and type(right) is float:
        return _divide_doubles(left, right)
    checked = _find_range_check(left, right, "/")
    if right == 0:
        raise EvaluationError("CelArithmetic", "division by zero")
    quotient = abs(left) // abs(right)
    return checked(quotient if (left < 0) is (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(budget: ExpressionBudget, left: Any, right: Any) -> Any:
    """Evaluate `left % right` for integers. The result has the sign of `left`."""
    checked = _find_range_check(left, right, "%")
    if right == 0:
        raise EvaluationError("CelArithmetic", "division by zero")
    absolute_remainder = abs(left) % abs(right)
    return checked(-absolute_remainder if left < 0 else absolute_remainder)


def _find_range_check(left: Any, right: Any, operator: str) -> Callable[[int], int]:
    """Return the function that checks the range of an int result or of a uint result.

    Raise `EvaluationError` unless both operands are ints or both are uints.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return check_int_range
        if kind is Uint:
            return convert_to_uint
    raise create_no_operator_error(operator, left, right)


def less(budget: ExpressionBudget, left: Any, right: Any) -> bool:
    """Evaluate `left < right`."""
    return compare_values(budget, "<", left, right) == -1


def less_equal(budget: ExpressionBudget, left: Any, right: Any) -> bool:
    """Evaluate `left <= right`."""
    return compare_values(budget, "<=", left, right) in (-1, 0)


def greater(budget: ExpressionBudget, left: Any, right: Any) -> bool:
    """Evaluate `left > right`."""
    return compare_values(budget, ">", left, right) == 1


def greater_equal(budget: ExpressionBudget, left: Any, right: Any) -> bool:
    """Evaluate `left >= right`."""
    return compare_values(budget, ">=", left, right) in (0, 1)


def unequal(budget: ExpressionBudget, left: Any, right: Any) -> bool:
    """Evaluate `left != right`."""
    return not is_equal(budget, left, right)


def contains(budget: ExpressionBudget, left: Any, right: Any) -> bool:
    """Evaluate `left in right`: whether a list contains the element `left`, or a map contains the key `left`."""
    if type(right) is dict:
        if type(left) is not float and type(left) not in KEY_TYPES:
            raise create_no_operator_error("in", left, right)
        return find_entry(budget, right, left) is not MISSING
    if type(right) is not list:
        raise create_no_operator_error("in", left, right)
    for element in right:
        budget.spend(1)
        if is_equal(budget, left, element):
            return True
    return False


def negate(value: Any) -> Any:
    """Evaluate `-value`."""
    if type(value) is int:
        return check_int_range(-value)
    if type(value) is float:
        return -value
    raise create_no_overload_error("-", value)


def invert(value: Any) -> bool:
    """Evaluate `!value`."""
    if type(value) is bool:
        return not value
    raise create_no_overload_error("!", value)


BINARY_OPERATORS: dict[str, BinaryOperator] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "==": is_equal,
    "!=": unequal,
    "<": less,
    "<=": less_equal,
    ">": greater,
    ">=": greater_equal,
    "in": contains,
}

UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {"-": negate, "!": invert}


def create_not_bool_error(operation: str, value: Any) -> EvaluationError:
    """Create the error for an operand or condition that is not a bool."""
    return EvaluationError("CelNoOverload", f"{operation} requires a bool, not a value of type {get_type_name(value)}")
