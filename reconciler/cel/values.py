"""Values of CEL in Python: the types, and classes for types that Python does not have.

null, bool, int, double, string, bytes, list and map are None, bool, int, float, str, bytes, list and dict. Subclasses
are not allowed, so that the class of a value determines its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from reconciler.cel.errors import EvaluationError
from reconciler.cel.timestamps import Duration, Timestamp

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
MAX_VALUE_DEPTH: Final = 128
"""Maximum nesting of lists and maps in functions that traverse them."""


class Uint(int):
    """An unsigned 64-bit integer. It equals the int of the same value, also as a key."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CelType:
    """A type as a value: the result of `type(x)`, and the meaning of `int` or `google.protobuf.Timestamp`."""

    name: str


@dataclass(frozen=True, slots=True)
class CelOptional:
    """A value that may be absent. `value` is then None."""

    is_present: bool
    value: Any = None


EMPTY_OPTIONAL: Final = CelOptional(is_present=False)


class Omit(Enum):
    """The class of `OMIT`."""

    OMIT = "omit()"


OMIT: Final = Omit.OMIT
"""The result of `omit()`. The caller removes the key or item that has this value."""

MISSING: Final = object()
"""Marks a key that a map does not contain."""


class BoolKey(Enum):
    """A boolean key as stored in maps. In Python, True equals 1; in CEL it does not."""

    FALSE = False
    TRUE = True


def encode_map_key(key: Any) -> Any:
    """Return a key as stored in maps."""
    return BoolKey(key) if type(key) is bool else key


def decode_map_key(stored: Any) -> Any:
    """Return the CEL value of a stored key."""
    return stored.value if type(stored) is BoolKey else stored


def format_map_key(stored: Any) -> str:
    """Return a stored key as it is written in an expression, for messages."""
    value = decode_map_key(stored)
    return str(value).lower() if type(value) is bool else str(value)


NUMBER_TYPES: Final = frozenset({int, Uint, float})
KEY_TYPES: Final = frozenset({bool, int, Uint, str})
"""Types that a key of a map literal can have."""

TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    CelType: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    CelOptional: "optional_type",
    Omit: "omit",
}

CEL_TYPES: Final = {name: CelType(name) for name in TYPE_NAMES.values() if name != "omit"}


def get_type_name(value: object) -> str:
    """Return the CEL name of the value's type. Raise `EvaluationError` for a Python class that CEL does not support."""
    name = TYPE_NAMES.get(type(value))
    if name is None:
        raise EvaluationError("CelNoOverload", f"a Python value of class {type(value).__name__} is not a CEL value")
    return name


def create_no_overload_error(operation: str, *arguments: object) -> EvaluationError:
    """Return the error for an operator or function that does not accept arguments of these types."""
    return EvaluationError(
        "CelNoOverload", f"no such overload: {operation}({', '.join(get_type_name(value) for value in arguments)})"
    )


def create_no_operator_error(operator: str, left: object, right: object) -> EvaluationError:
    """Return the error for a binary operator between values of these types."""
    hint = ""
    if operator == "+" and str in (type(left), type(right)):
        hint = "; convert with string()"
    elif type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
        hint = "; convert with int(), uint() or double()"
    return EvaluationError(
        "CelNoOverload", f"no such overload: {get_type_name(left)} {operator} {get_type_name(right)}{hint}"
    )


def check_int_range(number: int) -> int:
    """Return `number`. Raise `EvaluationError` if it is outside of the range of int."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("CelArithmetic", f"{format_number(number)} is outside of the range of int")


def convert_to_uint(number: int) -> Uint:
    """Return `number` as a uint. Raise `EvaluationError` if it is outside of the range of uint."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise EvaluationError("CelArithmetic", f"{format_number(number)} is outside of the range of uint")


def format_number(number: float) -> str:
    """Return a number for a message. A very long number is replaced by "the number"."""
    return str(number) if abs(number) < 10**40 else "the number"


def create_too_deep_error() -> EvaluationError:
    """Return the error for a value that is nested too deeply."""
    return EvaluationError("CelTooDeep", f"a value is nested more than {MAX_VALUE_DEPTH} deep")
