"""Parsing of CEL literals: numbers, strings and bytes, as in the CEL language definition."""

from __future__ import annotations

import math
import re
from typing import Final

from reconciler.cel.errors import EvaluationError
from reconciler.cel.values import INT_MAX, UINT_MAX, Uint

_SIMPLE: Final = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, '"': 34, "'": 39, "`": 96,
}  # fmt: skip

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.?))", re.DOTALL
)


def read_int(text: str) -> int:
    """Parse a decimal or hexadecimal int literal without a sign.

    2^63 is accepted, because the literal can be a part of -2^63, which is a valid int.
    """
    number = _check_digits(text)
    if number > INT_MAX + 1:
        raise EvaluationError("CelSyntax", f"{text} is outside of the range of int")
    return number


def read_uint(text: str) -> Uint:
    """Parse a uint literal, which ends with `u` or `U`."""
    number = _check_digits(text[:-1])
    if number > UINT_MAX:
        raise EvaluationError("CelSyntax", f"{text} is outside of the range of uint")
    return Uint(number)


def read_double(text: str) -> float:
    """Parse a double literal."""
    number = float(text)
    if math.isinf(number):
        raise EvaluationError("CelSyntax", "the number is outside of the range of double")
    return number


def _check_digits(text: str) -> int:
    # Reject long numbers first, because no type has so many digits, and Python does not convert thousands of digits.
    if len(text) > 100 and len(text.lstrip("0x")) > 20:
        raise EvaluationError("CelSyntax", "the number is too large for an int or uint")
    return int(text, 16) if text.startswith("0x") else int(text)


def read_string(text: str) -> str:
    """Return the value of a string literal. `text` includes the quotes and the prefix `r` of a raw string."""
    raw, body = _remove_quotes(text)
    return body if raw else _ESCAPE.sub(_decode_character, body)


def read_bytes(text: str) -> bytes:
    """Return the value of a bytes literal. `text` includes the quotes and the prefix `b` or `br`.

    Characters are encoded as UTF-8.
    """
    raw, body = _remove_quotes(text[1:])
    if raw:
        return body.encode()
    parts, position = [], 0
    for escape in _ESCAPE.finditer(body):
        parts += [body[position : escape.start()].encode(), bytes((_decode_octet(escape),))]
        position = escape.end()
    return b"".join((*parts, body[position:].encode()))


def _remove_quotes(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    width = 3 if quoted[:3] in ("'''", '"""') and len(quoted) >= 6 else 1
    return raw, quoted[width:-width]


def _decode_character(escape: re.Match[str]) -> str:
    point = _decode_code_point(escape)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise EvaluationError("CelSyntax", f"{escape[0]} is not a Unicode character")
    return chr(point)


def _decode_octet(escape: re.Match[str]) -> int:
    if escape[4] or escape[5]:
        raise EvaluationError("CelSyntax", f"{escape[0]} is not allowed in bytes; write the bytes as \\x…")
    return _decode_code_point(escape)


def _decode_code_point(escape: re.Match[str]) -> int:
    simple, octal, *hexadecimals, unknown = escape.groups()
    if simple:
        return _SIMPLE[simple]
    if octal:
        return int(octal, 8)
    digits = next((digits for digits in hexadecimals if digits), None)
    if digits is None:
        raise EvaluationError("CelSyntax", f"\\{unknown} is not an escape sequence; write a backslash as \\\\")
    return int(digits, 16)
