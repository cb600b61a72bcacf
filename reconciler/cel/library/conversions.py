"""The functions `type`, `dyn` and `size`, conversions between types, base64, and optionals.

The module `macros` contains the methods of optionals that do not always evaluate their argument, such as `orValue`.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, Final

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.errors import EvaluationError
from reconciler.cel.library.signatures import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    STRING,
    TIMESTAMP,
    UINT,
    FunctionTable,
    create_overload,
)
from reconciler.cel.timestamps import (
    NANOSECONDS_PER_SECOND,
    Duration,
    Timestamp,
    create_timestamp,
    parse_duration,
    parse_timestamp,
)
from reconciler.cel.values import (
    CEL_TYPES,
    EMPTY_OPTIONAL,
    CelOptional,
    CelType,
    Uint,
    check_int_range,
    convert_to_uint,
    get_type_name,
)


def get_size(budget: ExpressionBudget, value: str | bytes | list[Any] | dict[Any, Any]) -> int:
    """Evaluate `size(x)`: the number of characters, bytes, list elements or map entries."""
    return len(value)


def get_type(budget: ExpressionBudget, value: Any) -> CelType:
    """Evaluate `type(x)`: the CEL type of the value."""
    name = get_type_name(value)
    if name not in CEL_TYPES:
        raise EvaluationError("CelNoOverload", f"{name} has no type")
    return CEL_TYPES[name]


def return_unchanged(budget: ExpressionBudget, value: Any) -> Any:
    """Evaluate `dyn(x)`, and conversions of a value to the same type, e.g. `int(int)`. The value is not changed."""
    return value


_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII
)


def convert_text_to_int(budget: ExpressionBudget, text: str) -> int:
    """Evaluate `int(string)`. The string contains decimal digits and an optional sign."""
    if not _INTEGER.fullmatch(text):
        raise _create_conversion_error(text, "int")
    return check_int_range(int(text))


def convert_text_to_uint(budget: ExpressionBudget, text: str) -> Uint:
    """Evaluate `uint(string)`. The string contains only decimal digits."""
    if not _INTEGER.fullmatch(text) or text[0] in "+-":
        raise _create_conversion_error(text, "uint")
    return convert_to_uint(int(text))


def convert_uint_to_int(budget: ExpressionBudget, number: int) -> int:
    """Evaluate `int(uint)`."""
    return check_int_range(int(number))


def convert_int_to_uint(budget: ExpressionBudget, number: int) -> Uint:
    """Evaluate `uint(int)`."""
    return convert_to_uint(number)


def convert_double_to_int(budget: ExpressionBudget, number: float) -> int:
    """Evaluate `int(double)`, rounded toward zero.

    -2^63 and 2^63 are rejected, because a number outside of the range of int can be rounded to these doubles.
    """
    if -(2.0**63) < number < 2.0**63:
        return int(number)
    raise EvaluationError("CelArithmetic", f"{format_double(number)} is outside of the range of int")


def convert_double_to_uint(budget: ExpressionBudget, number: float) -> Uint:
    """Evaluate `uint(double)`, rounded toward zero."""
    if 0 <= number < 2.0**64:
        return Uint(number)
    raise EvaluationError("CelArithmetic", f"{format_double(number)} is outside of the range of uint")


def convert_timestamp_to_int(budget: ExpressionBudget, moment: Timestamp) -> int:
    """Evaluate `int(timestamp)`: whole seconds since 1970-01-01."""
    return moment.nanoseconds // NANOSECONDS_PER_SECOND


def convert_bool_to_int(budget: ExpressionBudget, value: bool) -> int:
    """Evaluate `int(bool)`: 1 or 0."""
    return int(value)


def convert_integer_to_double(budget: ExpressionBudget, number: int) -> float:
    """Evaluate `double(int)` and `double(uint)`: the nearest double."""
    return float(number)


def convert_text_to_double(budget: ExpressionBudget, text: str) -> float:
    """Evaluate `double(string)`. The string is infinity, NaN, or a decimal number with an optional exponent."""
    if len(text) > 400 or not _DECIMAL.fullmatch(text):
        raise _create_conversion_error(text, "double")
    number = float(text)
    if math.isinf(number) and "i" not in text.lower():
        raise EvaluationError("CelArithmetic", f"'{text[:60]}' is outside of the range of double")
    return number


_BOOL_TEXTS: Final = {
    **dict.fromkeys(("1", "t", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False),
}


def convert_text_to_bool(budget: ExpressionBudget, text: str) -> bool:
    """Evaluate `bool(string)`, e.g. for the string `true`."""
    if text not in _BOOL_TEXTS:
        raise _create_conversion_error(text, "bool")
    return _BOOL_TEXTS[text]


def convert_integer_to_text(budget: ExpressionBudget, number: int) -> str:
    """Evaluate `string(int)` and `string(uint)`."""
    return budget.make_text(int.__str__(number))


def convert_double_to_text(budget: ExpressionBudget, number: float) -> str:
    """Evaluate `string(double)`."""
    return budget.make_text(format_double(number))


def convert_bool_to_text(budget: ExpressionBudget, value: bool) -> str:
    """Evaluate `string(bool)`."""
    return "true" if value else "false"


def convert_bytes_to_text(budget: ExpressionBudget, data: bytes) -> str:
    """Evaluate `string(bytes)`. The bytes must be valid UTF-8."""
    try:
        return budget.make_text(data.decode())
    except UnicodeDecodeError as error:
        raise EvaluationError("CelConversion", f"the bytes are not UTF-8: {error.reason} at {error.start}") from None


def convert_time_to_text(budget: ExpressionBudget, value: Timestamp | Duration) -> str:
    """Evaluate `string(timestamp)` and `string(duration)`."""
    return budget.make_text(str(value))


def convert_text_to_bytes(budget: ExpressionBudget, text: str) -> bytes:
    """Evaluate `bytes(string)`: the string in UTF-8."""
    budget.allocate(4 * len(text))
    return text.encode("utf-8", "surrogatepass")


def convert_text_to_timestamp(budget: ExpressionBudget, text: str) -> Timestamp:
    """Evaluate `timestamp(string)`. The string has the format RFC 3339."""
    return parse_timestamp(text)


def convert_int_to_timestamp(budget: ExpressionBudget, seconds: int) -> Timestamp:
    """Evaluate `timestamp(int)`. The argument is the number of seconds since 1970-01-01."""
    return create_timestamp(seconds * NANOSECONDS_PER_SECOND)


def convert_text_to_duration(budget: ExpressionBudget, text: str) -> Duration:
    """Evaluate `duration(string)`, e.g. for the string `1h30m`."""
    return parse_duration(text)


def format_double(number: float) -> str:
    """Return the shortest text from which the same double can be parsed, in the same format as cel-go.

    Examples: `3`, `0.1`, `123456.5`. Numbers below 1e-4 and from 1e6 have an exponent: `1e+06`.
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    text = repr(number)
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        return text.removesuffix(".0")
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = f"{whole}{decimals}".rstrip("0")
    power = len(whole) - 1 + int(exponent or "0")
    return f"{'-' if number < 0 else ''}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{power:+03}"


def _create_conversion_error(text: str, target: str) -> EvaluationError:
    shortened = text if len(text) <= 60 else f"{text[:60]}…"
    return EvaluationError("CelConversion", f"'{shortened}' cannot be converted to {target}")


_SIZE = (create_overload(get_size, frozenset({str, bytes, list, dict})),)

FUNCTIONS: FunctionTable = {
    "size": _SIZE,
    "type": (create_overload(get_type, ANY),),
    "dyn": (create_overload(return_unchanged, ANY),),
    "int": (
        create_overload(return_unchanged, INT),
        create_overload(convert_uint_to_int, UINT),
        create_overload(convert_double_to_int, DOUBLE),
        create_overload(convert_text_to_int, STRING),
        create_overload(convert_timestamp_to_int, TIMESTAMP),
        create_overload(convert_bool_to_int, BOOL),
    ),
    "uint": (
        create_overload(return_unchanged, UINT),
        create_overload(convert_int_to_uint, INT),
        create_overload(convert_double_to_uint, DOUBLE),
        create_overload(convert_text_to_uint, STRING),
    ),
    "double": (
        create_overload(return_unchanged, DOUBLE),
        create_overload(convert_integer_to_double, frozenset({int, Uint})),
        create_overload(convert_text_to_double, STRING),
    ),
    "bool": (create_overload(return_unchanged, BOOL), create_overload(convert_text_to_bool, STRING)),
    "string": (
        create_overload(return_unchanged, STRING),
        create_overload(convert_integer_to_text, frozenset({int, Uint})),
        create_overload(convert_double_to_text, DOUBLE),
        create_overload(convert_bool_to_text, BOOL),
        create_overload(convert_bytes_to_text, BYTES),
        create_overload(convert_time_to_text, frozenset({Timestamp, Duration})),
    ),
    "bytes": (create_overload(return_unchanged, BYTES), create_overload(convert_text_to_bytes, STRING)),
    "timestamp": (
        create_overload(return_unchanged, TIMESTAMP),
        create_overload(convert_text_to_timestamp, STRING),
        create_overload(convert_int_to_timestamp, INT),
    ),
    "duration": (create_overload(return_unchanged, DURATION), create_overload(convert_text_to_duration, STRING)),
}

METHODS: FunctionTable = {"size": _SIZE}


_ALPHABET: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def encode(budget: ExpressionBudget, data: bytes) -> str:
    """Evaluate `base64.encode(bytes)`. The result has padding (`=`)."""
    budget.allocate(len(data))
    return budget.make_text(base64.b64encode(data).decode())


def encode_text(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `base64.encode(string)`. The string is encoded as UTF-8 first.

    OpenChoreo accepts a string. The CEL standard accepts only bytes.
    """
    return encode(budget, text.encode("utf-8", "surrogatepass"))


def decode(budget: ExpressionBudget, text: str) -> bytes:
    """Evaluate `base64.decode(string)`. The string can have padding (`=`)."""
    budget.allocate(len(text))
    body = text.rstrip("=")
    padding = -len(body) % 4
    if not _ALPHABET.fullmatch(text) or padding == 3 or len(text) - len(body) not in (0, padding):
        raise _create_base64_error(text)
    try:
        return base64.b64decode(body + "=" * padding, validate=True)
    except binascii.Error:
        raise _create_base64_error(text) from None


def _create_base64_error(text: str) -> EvaluationError:
    return EvaluationError("CelConversion", f"'{text if len(text) <= 40 else text[:40] + '…'}' is not valid base64")


ENCODER_FUNCTIONS: FunctionTable = {
    "base64.encode": (create_overload(encode, BYTES), create_overload(encode_text, STRING)),
    "base64.decode": (create_overload(decode, STRING),),
}


def create_empty(budget: ExpressionBudget) -> CelOptional:
    """Evaluate `optional.none()`: an empty optional."""
    return EMPTY_OPTIONAL


def create_optional(budget: ExpressionBudget, value: Any) -> CelOptional:
    """Evaluate `optional.of(value)`."""
    return CelOptional(is_present=True, value=value)


def create_optional_of_non_zero(budget: ExpressionBudget, value: Any) -> CelOptional:
    """Evaluate `optional.ofNonZeroValue(value)`.

    The result is an empty optional if the value is null, false, 0, or an empty string, list or map. If the value is an
    optional, even an empty one, the result is not empty, as in cel-go and cel-cpp.
    """
    if isinstance(value, Timestamp | Duration):
        return create_optional(budget, value) if value.nanoseconds else EMPTY_OPTIONAL
    return create_optional(budget, value) if isinstance(value, CelOptional) or value else EMPTY_OPTIONAL


def has_value(budget: ExpressionBudget, optional: CelOptional) -> bool:
    """Evaluate `optional.hasValue()`."""
    return optional.is_present


def get_value(budget: ExpressionBudget, optional: CelOptional) -> Any:
    """Evaluate `optional.value()`. Raise `EvaluationError` if the optional is empty."""
    if not optional.is_present:
        raise EvaluationError("CelNone", "value() requires an optional that is not empty")
    return optional.value


def unwrap(budget: ExpressionBudget, optionals: list[Any]) -> list[Any]:
    """Evaluate `optional.unwrap(list)` or `list.unwrapOpt()`: the values of the optionals that are not empty."""
    for element in optionals:
        if type(element) is not CelOptional:
            raise EvaluationError(
                "CelNoOverload", f"the list must contain optionals, but one element has type {get_type_name(element)}"
            )
    budget.make_list(len(optionals))
    return [optional.value for optional in optionals if optional.is_present]


_OPTIONAL = frozenset({CelOptional})

OPTIONAL_FUNCTIONS: FunctionTable = {
    "optional.none": (create_overload(create_empty),),
    "optional.of": (create_overload(create_optional, ANY),),
    "optional.ofNonZeroValue": (create_overload(create_optional_of_non_zero, ANY),),
    "optional.unwrap": (create_overload(unwrap, LIST),),
}

OPTIONAL_METHODS: FunctionTable = {
    "hasValue": (create_overload(has_value, _OPTIONAL),),
    "value": (create_overload(get_value, _OPTIONAL),),
    "unwrapOpt": (create_overload(unwrap, LIST),),
}
