"""Conversion of scalars to values, as in the Go YAML parser of kubectl and kpt.

- Booleans are those of YAML 1.1. `y` and `n` are strings, because kpt and PyYAML read them as strings, and they
  are mostly field names in Kubernetes files.
- Numbers have the syntax of Go's `strconv`: octal numbers with 0 or 0o, 0x, 0b, and underscores after the first digit.
  Sexagesimal numbers such as `1:30` are strings.
- Dates, `=` and `<<` as a value are strings.
- A scalar with an unknown tag is a string. An unknown tag of a collection is ignored.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from typing import Any

from reconciler.krm.yaml.nodes import TAG_PREFIX

_CASES = (str.lower, str.capitalize, str.upper)
_WORDS: dict[str, Any] = (
    {change_case(word): True for word in ("true", "yes", "on") for change_case in _CASES}
    | {change_case(word): False for word in ("false", "no", "off") for change_case in _CASES}
    | dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | {sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")}
    | dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf)
    | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
)
_FIRST_CHARACTERS = frozenset("yYnNtTfFoO~+-.0123456789")
_INTEGER = re.compile(
    r"([-+]?)(?:(?P<dec>[1-9][0-9]*|0)|0[oO]?(?P<oct>[0-7]+)|0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+))\Z"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASES = {"dec": 10, "oct": 8, "hex": 16, "bin": 2}
_MISSING = object()
# Python rejects numbers with more than 4,000 digits. Read such a text as a string.
_MAX_DIGITS = 4_000


def resolve_plain(text: str) -> Any:
    """Convert a scalar without quotes and without a tag to str, int, float, bool or None."""
    if text and text[0] not in _FIRST_CHARACTERS:
        return text
    value = _WORDS.get(text, _MISSING)
    return _resolve_number(text) if value is _MISSING else value


def _resolve_number(text: str) -> Any:
    # Remove underscores unless the text begins with a decimal point, as Go's YAML parser does.
    digits = text if text[0] == "." else text.replace("_", "")
    if match := _INTEGER.match(digits):
        kind = match.lastgroup or "dec"
        return int(match[1] + match[kind], _BASES[kind]) if len(digits) < _MAX_DIGITS else text
    if not _FLOAT.match(digits):
        return text
    number = float(digits)
    return text if math.isinf(number) else number


def resolve_tagged(tag: str, text: str, resolve: Callable[[str], Any] = resolve_plain) -> Any:
    """Convert a scalar with an explicit tag to its value.

    Args:
        resolve: Function that converts a scalar without a tag to its value.

    Raises:
        ValueError: The text does not have the type of the tag. The message contains the reason.
    """
    match tag.removeprefix(TAG_PREFIX) if tag.startswith(TAG_PREFIX) else "":
        case "int" | "float" | "bool" | "null" as kind:
            return _check_kind(kind, text, resolve(text))
        case "binary":
            return _decode_binary(text)
        case _:
            return text


def _check_kind(kind: str, text: str, value: Any) -> Any:
    match kind, value:
        case ("int", int()) | ("float", float()) if not isinstance(value, bool):
            return value
        case ("float", int()) if not isinstance(value, bool):
            return float(value)
        case ("bool", bool()) | ("null", None):
            return value
        case _:
            raise ValueError(f'"{text[:40]}" is not a valid value of the tag !!{kind}')


def _decode_binary(text: str) -> str:
    # Return the decoded bytes as text, as Kubernetes does, because JSON does not support bytes.
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("a !!binary value must be base64 of UTF-8 text") from error


def convert_key_to_text(value: Any) -> str:
    """Convert a mapping key to a string in the same way as the YAML-to-JSON conversion of Kubernetes.

    Raises:
        ValueError: The key is null, a mapping or a list.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _format_float_key(value)
        case None:
            raise ValueError("a mapping key must not be null")
        case _:
            raise ValueError("a mapping key must be a scalar, not a collection")


def _format_float_key(value: float) -> str:
    """Return a float as the shortest text of a 32-bit float, as Go's format %g does.

    Infinity and NaN are written as in YAML.
    """
    if not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    single = _round_to_single(value)
    return _format_shortest(single) if math.isfinite(single) else _format_float_key(single)


def _round_to_single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _format_shortest(single: float) -> str:
    for precision in range(9):
        text = f"{single:.{precision}e}"
        if _round_to_single(float(text)) == single:
            break
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if not -4 <= power < 6:
        return f"{mantissa}e{power:+03d}"
    return f"{float(text):.{max(0, len(mantissa.lstrip('-').replace('.', '')) - 1 - power)}f}"
