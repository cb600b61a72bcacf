"""`type`, `dyn`, `size` and the conversions between types."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from reconciler.expressions.budget import Budget
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.signatures import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Functions,
    overload,
)
from reconciler.expressions.timestamps import SECOND, Duration, Timestamp, parse_duration, parse_timestamp, point
from reconciler.expressions.values import TYPES, Type, Uint, signed, type_name, unsigned


def size(budget: Budget, value: str | bytes | list[Any] | dict[Any, Any]) -> int:
    """`size(x)`: characters, bytes, elements or entries."""
    return len(value)


def type_of(budget: Budget, value: Any) -> Type:
    """`type(x)`."""
    name = type_name(value)
    if name not in TYPES:
        raise Fault("CelNoOverload", f"{name} has no type")
    return TYPES[name]


def unchanged(budget: Budget, value: Any) -> Any:
    """`dyn(x)`, and every conversion of a value to the type it has."""
    return value


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII
)


def int_of_text(budget: Budget, text: str) -> int:
    """`int(string)`: decimal digits with an optional sign."""
    if not _WHOLE.fullmatch(text):
        raise _cannot(text, "int")
    return signed(int(text))


def uint_of_text(budget: Budget, text: str) -> Uint:
    """`uint(string)`: decimal digits."""
    if not _WHOLE.fullmatch(text) or text[0] in "+-":
        raise _cannot(text, "uint")
    return unsigned(int(text))


def int_of_number(budget: Budget, number: int) -> int:
    """`int(uint)`."""
    return signed(int(number))


def uint_of_number(budget: Budget, number: int) -> Uint:
    """`uint(int)`."""
    return unsigned(number)


def int_of_double(budget: Budget, number: float) -> int:
    """`int(double)`, toward zero; the ends of the range are out, as the nearest double may lie beyond them."""
    if -(2.0**63) < number < 2.0**63:
        return int(number)
    raise Fault("CelArithmetic", f"{double_text(number)} is outside of the range of int")


def uint_of_double(budget: Budget, number: float) -> Uint:
    """`uint(double)`, toward zero."""
    if 0 <= number < 2.0**64:
        return Uint(number)
    raise Fault("CelArithmetic", f"{double_text(number)} is outside of the range of uint")


def int_of_timestamp(budget: Budget, moment: Timestamp) -> int:
    """`int(timestamp)`: whole seconds since 1970."""
    return moment.nanoseconds // SECOND


def int_of_bool(budget: Budget, value: bool) -> int:
    """`int(bool)`: 1 or 0."""
    return int(value)


def double_of_number(budget: Budget, number: int) -> float:
    """`double(int)` and `double(uint)`: the nearest double."""
    return float(number)


def double_of_text(budget: Budget, text: str) -> float:
    """`double(string)`: decimal, with an optional exponent, or a spelling of infinity and NaN."""
    if len(text) > 400 or not _DECIMAL.fullmatch(text):
        raise _cannot(text, "double")
    number = float(text)
    if math.isinf(number) and "i" not in text.lower():
        raise Fault("CelArithmetic", f"'{text[:60]}' is outside of the range of double")
    return number


_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False),
}


def bool_of_text(budget: Budget, text: str) -> bool:
    """`bool(string)`."""
    if text not in _BOOLS:
        raise _cannot(text, "bool")
    return _BOOLS[text]


def text_of_whole(budget: Budget, number: int) -> str:
    """`string(int)` and `string(uint)`."""
    return budget.make_text(int.__str__(number))


def text_of_double(budget: Budget, number: float) -> str:
    """`string(double)`."""
    return budget.make_text(double_text(number))


def text_of_bool(budget: Budget, value: bool) -> str:
    """`string(bool)`."""
    return "true" if value else "false"


def text_of_bytes(budget: Budget, data: bytes) -> str:
    """`string(bytes)`: they must be UTF-8."""
    try:
        return budget.make_text(data.decode())
    except UnicodeDecodeError as error:
        raise Fault("CelConversion", f"the bytes are no UTF-8: {error.reason} at {error.start}") from None


def text_of_time(budget: Budget, value: Timestamp | Duration) -> str:
    """`string(timestamp)` and `string(duration)`."""
    return budget.make_text(str(value))


def bytes_of_text(budget: Budget, text: str) -> bytes:
    """`bytes(string)`: its UTF-8."""
    budget.allocate(4 * len(text))
    return text.encode("utf-8", "surrogatepass")


def timestamp_of_text(budget: Budget, text: str) -> Timestamp:
    """`timestamp(string)`: RFC 3339."""
    return parse_timestamp(text)


def timestamp_of_int(budget: Budget, seconds: int) -> Timestamp:
    """`timestamp(int)`: seconds since 1970."""
    return point(seconds * SECOND)


def duration_of_text(budget: Budget, text: str) -> Duration:
    """`duration(string)`: like `1h30m`."""
    return parse_duration(text)


def double_text(number: float) -> str:
    """Return the shortest text that reads back as the same double, as the reference engines write it.

    `3`, `0.1`, `123456.5`; with an exponent below 1e-4 and from 1e6 on: `1e+06`.
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    plain = repr(number)
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        return plain.removesuffix(".0")
    mantissa, _, exponent = plain.lstrip("-").partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = f"{whole}{decimals}".rstrip("0")
    power = len(whole) - 1 + int(exponent or "0")
    return f"{'-' if number < 0 else ''}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{power:+03}"


def _cannot(text: str, target: str) -> Fault:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return Fault("CelConversion", f"'{shown}' cannot be converted to {target}")


_SIZE = (overload(size, frozenset({str, bytes, list, dict})),)

FUNCTIONS: Functions = {
    "size": _SIZE,
    "type": (overload(type_of, ANY),),
    "dyn": (overload(unchanged, ANY),),
    "int": (
        overload(unchanged, INT),
        overload(int_of_number, UINT),
        overload(int_of_double, DOUBLE),
        overload(int_of_text, STRING),
        overload(int_of_timestamp, TIMESTAMP),
        overload(int_of_bool, BOOL),
    ),
    "uint": (
        overload(unchanged, UINT),
        overload(uint_of_number, INT),
        overload(uint_of_double, DOUBLE),
        overload(uint_of_text, STRING),
    ),
    "double": (
        overload(unchanged, DOUBLE),
        overload(double_of_number, frozenset({int, Uint})),
        overload(double_of_text, STRING),
    ),
    "bool": (overload(unchanged, BOOL), overload(bool_of_text, STRING)),
    "string": (
        overload(unchanged, STRING),
        overload(text_of_whole, frozenset({int, Uint})),
        overload(text_of_double, DOUBLE),
        overload(text_of_bool, BOOL),
        overload(text_of_bytes, BYTES),
        overload(text_of_time, frozenset({Timestamp, Duration})),
    ),
    "bytes": (overload(unchanged, BYTES), overload(bytes_of_text, STRING)),
    "timestamp": (
        overload(unchanged, TIMESTAMP),
        overload(timestamp_of_text, STRING),
        overload(timestamp_of_int, INT),
    ),
    "duration": (overload(unchanged, DURATION), overload(duration_of_text, STRING)),
}

METHODS: Functions = {"size": _SIZE}
