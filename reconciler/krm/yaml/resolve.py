"""The resolver profile `kubernetes`: what a plain scalar means to kubectl, kpt and their Go reader.

YAML 1.1 booleans but for `y` and `n`: kpt's reader and PyYAML leave those alone, only the oldest Go reader does not,
and they are coordinates and field names far more often than answers. Numbers as Go's strconv takes them (legacy octal,
0o, 0x, 0b, underscores anywhere after the first digit); no sexagesimals; dates, `=` and a lone `<<` are strings.
Scalars under a tag that YAML does not define are strings, as for Go; collections under one are read as if untagged.
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

_SPELLINGS = (str.lower, str.capitalize, str.upper)
_WORDS: dict[str, Any] = (
    {spell(word): True for word in ("true", "yes", "on") for spell in _SPELLINGS}
    | {spell(word): False for word in ("false", "no", "off") for spell in _SPELLINGS}
    | dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | {sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")}
    | dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf)
    | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
)
_FIRST = frozenset("yYnNtTfFoO~+-.0123456789")
_INTEGER = re.compile(
    r"([-+]?)(?:(?P<dec>[1-9][0-9]*|0)|0[oO]?(?P<oct>[0-7]+)|0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+))\Z"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASES = {"dec": 10, "oct": 8, "hex": 16, "bin": 2}
_MISSING = object()
# Python refuses to read decimal numbers longer than this; nobody means a number by them
_MAX_DIGITS = 4_000


def resolve_plain(text: str) -> Any:
    """Return what the plain scalar `text` means: str, int, float, bool or None."""
    if text and text[0] not in _FIRST:
        return text
    word = _WORDS.get(text, _MISSING)
    return _number(text) if word is _MISSING else word


def _number(text: str) -> Any:
    # Go's reader drops underscores unless the text begins with the point
    digits = text if text[0] == "." else text.replace("_", "")
    if match := _INTEGER.match(digits):
        kind = match.lastgroup or "dec"
        return int(match[1] + match[kind], _BASES[kind]) if len(digits) < _MAX_DIGITS else text
    if not _FLOAT.match(digits):
        return text
    number = float(digits)
    return text if math.isinf(number) else number


def resolve_tagged(tag: str, text: str, resolve: Callable[[str], Any] = resolve_plain) -> Any:
    """Return what `text` means under an explicit tag; `resolve` says what it means without one.

    Raises ValueError, with the reason, when text and tag contradict each other.
    """
    match tag.removeprefix(TAG_PREFIX) if tag.startswith(TAG_PREFIX) else "":
        case "int" | "float" | "bool" | "null" as kind:
            return _as_kind(kind, text, resolve(text))
        case "binary":
            return _decode_binary(text)
        case _:
            return text


def _as_kind(kind: str, text: str, value: Any) -> Any:
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
    # JSON has no bytes: Kubernetes sees the decoded text
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("a !!binary value must be base64 of UTF-8 text") from error


def key_text(value: Any) -> str:
    """Return the string that Kubernetes' YAML-to-JSON makes of a mapping key.

    Raises ValueError for a key that is null or a collection.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float_key(value)
        case None:
            raise ValueError("a mapping key must not be null")
        case _:
            raise ValueError("a mapping key must be a scalar, not a collection")


def _float_key(value: float) -> str:
    """Spell a float as Go's shortest %g of a 32-bit float does, with YAML's words for what is no number."""
    if not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    single = _single(value)
    return _shortest(single) if math.isfinite(single) else _float_key(single)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest(single: float) -> str:
    for precision in range(9):
        text = f"{single:.{precision}e}"
        if _single(float(text)) == single:
            break
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if not -4 <= power < 6:
        return f"{mantissa}e{power:+03d}"
    return f"{float(text):.{max(0, len(mantissa.lstrip('-').replace('.', '')) - 1 - power)}f}"
