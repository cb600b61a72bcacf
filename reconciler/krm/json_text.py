"""JSON text: a strict parser, an encoder with indentation, and digests of canonical JSON.

The strict parser rejects duplicate keys and numbers outside of the 64-bit range. RFC 8259 does not define their
meaning, so other parsers drop or change them without an error.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from json.encoder import encode_basestring
from typing import Any, NoReturn

# Reject integers of more than 64 bits, because Kubernetes converts them to floating point numbers and loses digits.
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1
_MAX_DIGITS = 20
_MAX_SHOWN_CHARACTERS = 40


def parse_strict_json(text: str | bytes) -> Any:
    """Parse JSON, and reject content that other parsers read differently.

    Raises:
        json.JSONDecodeError: The text is not JSON.
        ValueError: A mapping contains a key twice, or a number is NaN, infinite, or outside of the 64-bit range.
        RecursionError: The text is nested too deeply.
    """
    return json.loads(
        text,
        parse_constant=_reject_constant,
        parse_float=_parse_float,
        parse_int=_parse_integer,
        object_pairs_hook=_create_mapping,
    )


def parse_json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object in a JSON text. Return None if the text is not JSON, or not an object."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def has_finite_numbers(value: Any) -> bool:
    """Return whether a value of YAML contains only numbers that JSON can represent."""
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(map(has_finite_numbers, value))
        case dict():
            return all(map(has_finite_numbers, value.values()))
        case _:
            return True


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed in JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    has_nonzero_digit = any(digit in text.lower().partition("e")[0] for digit in "123456789")
    if math.isinf(number) or (number == 0 and has_nonzero_digit):
        raise ValueError(f"the number {_truncate(text)} is outside of the range of 64-bit floating point numbers")
    return number


def _parse_integer(text: str) -> int:
    if len(text.lstrip("-")) > _MAX_DIGITS or not _MIN_INTEGER <= int(text) <= _MAX_INTEGER:
        raise ValueError(f"the integer {_truncate(text)} is outside of the range of 64-bit integers")
    return int(text)


def _create_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the key {json.dumps(_truncate(key))} is repeated in one mapping")
        data[key] = value
    return data


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


def encode_indented_json(data: Any) -> bytes:
    """Encode `data` as UTF-8 JSON with sorted keys and one value per line. Diffs in Git are then easy to read.

    The bytes equal those of `json.dumps` with an indentation. `json.dumps` is not used, because each call with an
    indentation creates forty objects that only garbage collection can free.

    Raises:
        TypeError: `data` contains a value that JSON does not support, or a key that is not a string.
    """
    text = _format_indented(data, "\n")
    return f"{text}\n".encode()


_SCALAR_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _format_indented(value: Any, line_break: str) -> str:
    """Return a value as indented JSON. `line_break` is a line break and the indentation of the value."""
    if isinstance(value, str):
        return encode_basestring(value)
    inner = f"{line_break} "
    if isinstance(value, dict):
        texts = [f"{encode_basestring(key)}: {_format_indented(value[key], inner)}" for key in sorted(value)]
        start, end = "{}"
    elif isinstance(value, list | tuple):
        texts = [_format_indented(item, inner) for item in value]
        start, end = "[]"
    else:
        return _SCALAR_ENCODER.encode(value)
    return f"{start}{inner}{f',{inner}'.join(texts)}{line_break}{end}" if texts else f"{start}{end}"


DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
"""A SHA-256 digest."""

_SCALAR_TYPES = (str, int, float, bool, None.__class__)
_CANONICAL_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def encode_canonical_json(data: Any) -> bytes:
    """Encode the text from `format_canonical_json` as UTF-8."""
    # Allow lone surrogates, which strict UTF-8 rejects, because a JSON escape such as "\ud800" can produce them.
    return format_canonical_json(data).encode("utf-8", "surrogatepass")


def format_canonical_json(data: Any) -> str:
    """Return `data` as JSON without white space and with sorted keys.

    The texts of 1 and 1.0 differ. Infinity and NaN, which YAML supports, are written as Infinity, -Infinity and NaN.

    Raises:
        TypeError: `data` contains a value that JSON does not support, or a key that is not a string.
    """
    _check_keys(data)
    return _CANONICAL_ENCODER.encode(data)


def compute_digest(data: Any) -> str:
    """Return "sha256:" and the hash of `data` from `compute_hash`."""
    return f"sha256:{compute_hash(data)}"


def compute_hash(data: Any) -> str:
    """Return the SHA-256 hash of the canonical JSON of `data`, as 64 hexadecimal digits."""
    return hashlib.sha256(encode_canonical_json(data)).hexdigest()


def _check_keys(data: Any) -> None:
    # Reject keys that are not strings, because the encoder writes the keys 1 and "1" in the same way. Different values
    # would then have the same digest.
    for key in data if isinstance(data, dict) else ():
        if not isinstance(key, str):
            raise TypeError(f"keys must be strings, but one key has the type {type(key).__name__}")
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ():
        if value.__class__ not in _SCALAR_TYPES:
            _check_keys(value)
