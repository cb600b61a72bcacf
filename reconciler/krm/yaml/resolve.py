"""Resolution of plain and tagged scalars, as in the Go YAML reader of kubectl and kpt.

- Booleans are those of YAML 1.1, except `y` and `n`. kpt's reader and PyYAML treat these as strings, and in Kubernetes
  they are mostly field names.
- Numbers follow Go's `strconv`: octal with 0 or 0o, 0x, 0b, and underscores after the first digit. Sexagesimal numbers
  are not supported.
- Dates, `=` and a plain `<<` are strings.
- A scalar with an unknown tag is a string. A collection with an unknown tag is read as if it had no tag.
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
# Python rejects longer decimal numbers. A text of this length is not meant as a number.
_MAX_DIGITS = 4_000


def resolve_plain(text: str) -> Any:
    """Return the value of a plain scalar: str, int, float, bool or None."""
    if text and text[0] not in _FIRST_CHARACTERS:
        return text
    value = _WORDS.get(text, _MISSING)
    return _resolve_number(text) if value is _MISSING else value


def _resolve_number(text: str) -> Any:
    # Go's reader ignores underscores unless the text begins with a point.
    digits = text if text[0] == "." else text.replace("_", "")
    if match := _INTEGER.match(digits):
        kind = match.lastgroup or "dec"
        return int(match[1] + match[kind], _BASES[kind]) if len(digits) < _MAX_DIGITS else text
    if not _FLOAT.match(digits):
        return text
    number = float(digits)
    return text if math.isinf(number) else number


def resolve_tagged(tag: str, text: str, resolve: Callable[[str], Any] = resolve_plain) -> Any:
    """Return the value of a scalar with an explicit tag.

    Args:
        tag: The tag.
        text: The text of the scalar.
        resolve: Returns the value of a scalar without a tag.

    Raises:
        ValueError: The text does not match the tag. The message is the reason.
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
            raise ValueError(f'"{text[:40]}" is not a !!{kind}')


def _decode_binary(text: str) -> str:
    # JSON has no bytes. Kubernetes uses the decoded text.
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("a !!binary value must be base64 of UTF-8 text") from error


def convert_key_to_text(value: Any) -> str:
    """Return the string that Kubernetes' YAML-to-JSON conversion creates for a mapping key.

    Raises:
        ValueError: The key is null or a collection.
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
    """Format a float like Go's shortest %g of a 32-bit float, and infinity and NaN as in YAML."""
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
