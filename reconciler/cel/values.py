"""Python types of CEL values.

null, bool, int, double, string, bytes, list and map are None, bool, int, float, str, bytes, list and dict. This module
defines classes for the other CEL types. Subclasses of these types are not allowed, because the class of a value
determines its CEL type.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from reconciler.cel.errors import EvaluationError
from reconciler.cel.timestamps import Duration, Timestamp
from reconciler.lazy_dataclasses import dataclass

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
MAX_VALUE_DEPTH: Final = 128
"""The maximum nesting depth of lists and maps. A function that traverses a deeper value reports an error."""


class Uint(int):
    """An unsigned 64-bit integer. It equals an int with the same value. As map keys, both are the same key."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CelType:
    """A CEL type as a value, e.g. the result of `type(x)` or of the expression `int`."""

    name: str


@dataclass(frozen=True, slots=True)
class CelOptional:
    """A CEL optional. `value` is None if `is_present` is false."""

    is_present: bool
    value: Any = None


EMPTY_OPTIONAL: Final = CelOptional(is_present=False)


class Omit(Enum):
    """The class whose only instance is `OMIT`."""

    OMIT = "omit()"


OMIT: Final = Omit.OMIT
"""The result of `omit()`. A key or list item with this value is removed from the result."""

MISSING: Final = object()
"""The result of a lookup if the map does not contain the key."""


class BoolKey(Enum):
    """A bool key of a map.

    It replaces the Python bool, because True == 1 in Python, and true and 1 are different keys in CEL.
    """

    FALSE = False
    TRUE = True


def encode_map_key(key: Any) -> Any:
    """Convert a key of a CEL map to a key of the Python dict that stores the map. A bool becomes a `BoolKey`."""
    return BoolKey(key) if type(key) is bool else key


def decode_map_key(stored: Any) -> Any:
    """Convert a key of the Python dict that stores a CEL map to the CEL key. A `BoolKey` becomes a bool."""
    return stored.value if type(stored) is BoolKey else stored


def format_map_key(stored: Any) -> str:
    """Return a key of a map as text for messages, e.g. `true` for a bool key."""
    value = decode_map_key(stored)
    return str(value).lower() if type(value) is bool else str(value)


NUMBER_TYPES: Final = frozenset({int, Uint, float})
KEY_TYPES: Final = frozenset({bool, int, Uint, str})
"""The types of the keys that a map literal can contain."""

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
    """Return the name of the CEL type of a value. Raise `EvaluationError` if CEL does not support the Python class."""
    name = TYPE_NAMES.get(type(value))
    if name is None:
        raise EvaluationError("CelNoOverload", f"a Python value of class {type(value).__name__} is not a CEL value")
    return name


def create_no_overload_error(operation: str, *arguments: object) -> EvaluationError:
    """Create the error for a function or operator that does not accept arguments of these types."""
    return EvaluationError(
        "CelNoOverload", f"no such overload: {operation}({', '.join(get_type_name(value) for value in arguments)})"
    )


def create_no_operator_error(operator: str, left: object, right: object) -> EvaluationError:
    """Create the error for a binary operator that does not accept operands of these types."""
    hint = ""
    if operator == "+" and str in (type(left), type(right)):
        hint = "; convert with string()"
    elif type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
        hint = "; convert with int(), uint() or double()"
    return EvaluationError(
        "CelNoOverload", f"no such overload: {get_type_name(left)} {operator} {get_type_name(right)}{hint}"
    )


def check_int_range(number: int) -> int:
    """Return `number`. Raise `EvaluationError` if it does not fit into a signed 64-bit integer."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("CelArithmetic", f"{format_number(number)} is outside of the range of int")


def convert_to_uint(number: int) -> Uint:
    """Return `number` as a uint. Raise `EvaluationError` if it does not fit into an unsigned 64-bit integer."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise EvaluationError("CelArithmetic", f"{format_number(number)} is outside of the range of uint")


def format_number(number: float) -> str:
    """Return a number as text for messages. If the number has more than 40 digits, return "the number"."""
    return str(number) if abs(number) < 10**40 else "the number"


def create_too_deep_error() -> EvaluationError:
    """Create the error for a value that is nested too deeply."""
    return EvaluationError("CelTooDeep", f"a value is nested more than {MAX_VALUE_DEPTH} levels deep")
