"""The values of CEL in Python: its types, and the few that Python has no plain value for.

null, bool, int, double, string, bytes, list and map are None, bool, int, float, str, bytes, list and dict; exactly
those classes, no subclasses, so that one look at a value's class tells its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from reconciler.expressions.errors import Fault
from reconciler.expressions.timestamps import Duration, Timestamp

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
DEEPEST_VALUE: Final = 128
"""How deep lists and maps may stand in one another where we walk through them."""


class Uint(int):
    """An unsigned 64-bit integer; equal to the int of the same size, also as a key."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Type:
    """A type as a value: what `type(x)` returns and what `int` or `google.protobuf.Timestamp` denotes."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent; `value` is None then."""

    present: bool
    value: Any = None


NONE: Final = Optional(present=False)


class Omit(Enum):
    """The class of `OMIT`."""

    OMIT = "omit()"


OMIT: Final = Omit.OMIT
"""What `omit()` returns: the caller drops the key or item it stands for (openchoreo 5.5)."""

MISSING: Final = object()
"""Stands for a key that a map has not."""


class BoolKey(Enum):
    """A boolean key as maps store it: Python takes True for 1, and CEL does not."""

    FALSE = False
    TRUE = True


def stored_key(key: Any) -> Any:
    """Return a key as maps store it."""
    return BoolKey(key) if type(key) is bool else key


def key_value(stored: Any) -> Any:
    """Return the CEL value of a stored key."""
    return stored.value if type(stored) is BoolKey else stored


def key_text(stored: Any) -> str:
    """Return a key as it is written in an expression, for messages."""
    value = key_value(stored)
    return str(value).lower() if type(value) is bool else str(value)


NUMBERS: Final = frozenset({int, Uint, float})
KEYS: Final = frozenset({bool, int, Uint, str})
"""What a map written in an expression may have as keys."""

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
    Type: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    Omit: "omit",
}

TYPES: Final = {name: Type(name) for name in TYPE_NAMES.values() if name != "omit"}


def type_name(value: object) -> str:
    """Return the CEL name of the value's type; values from outside that CEL does not know are a Fault."""
    name = TYPE_NAMES.get(type(value))
    if name is None:
        raise Fault("CelNoOverload", f"a Python value of class {type(value).__name__} is no CEL value")
    return name


def no_overload(what: str, *arguments: object) -> Fault:
    """Return the fault for an operator or function that does not take arguments of these types."""
    return Fault("CelNoOverload", f"no such overload: {what}({', '.join(type_name(value) for value in arguments)})")


def no_operator(operator: str, left: object, right: object) -> Fault:
    """Return the fault for a binary operator between values of these types."""
    hint = ""
    if operator == "+" and str in (type(left), type(right)):
        hint = "; convert with string()"
    elif type(left) in NUMBERS and type(right) in NUMBERS:
        hint = "; convert with int(), uint() or double()"
    return Fault("CelNoOverload", f"no such overload: {type_name(left)} {operator} {type_name(right)}{hint}")


def signed(number: int) -> int:
    """Return `number`, or fault when it is outside of the range of int."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise Fault("CelArithmetic", f"{number_text(number)} is outside of the range of int")


def unsigned(number: int) -> Uint:
    """Return `number` as a uint, or fault when it is outside of the range of uint."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise Fault("CelArithmetic", f"{number_text(number)} is outside of the range of uint")


def number_text(number: float) -> str:
    """Return a number for a message; one that is too long to be shown is only named."""
    return str(number) if abs(number) < 10**40 else "the number"


def too_deep() -> Fault:
    """Return the fault for a value that is nested too deeply to be walked through."""
    return Fault("CelTooDeep", f"a value is nested more than {DEEPEST_VALUE} deep")
