"""JSON text: strict parsing, indented files, and digests of canonical JSON.

Strict parsing rejects what other parsers silently drop or change. RFC 8259 does not define the meaning of duplicate
keys and of large numbers, and parsers differ. Rewriting such a file could change its meaning.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, NoReturn

# Kubernetes converts larger integers to floating point numbers, which loses digits.
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1
_MAX_DIGITS = 20
_MAX_SHOWN_CHARACTERS = 40


def parse_strict_json(text: str | bytes) -> Any:
    """Parse JSON and reject ambiguous content.

    Raises:
        json.JSONDecodeError: The text is not JSON.
        ValueError: A key is repeated, or a number is NaN, infinite, or outside of the range that Kubernetes supports.
        RecursionError: The text is nested too deeply.
    """
    return json.loads(
        text,
        parse_constant=_reject_constant,
        parse_float=_parse_float,
        parse_int=_parse_integer,
        object_pairs_hook=_create_mapping,
    )


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


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
    """Encode `data` as UTF-8 JSON with one value per line and sorted keys, for readable diffs in Git.

    Raises:
        TypeError: `data` contains a value that JSON does not support.
    """
    return f"{json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True)}\n".encode()


_SCALAR_TYPES = (str, int, float, bool, None.__class__)
_CANONICAL_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def encode_canonical_json(data: Any) -> bytes:
    """Encode `data` as UTF-8 JSON without white space and with sorted keys. 1 and 1.0 stay different.

    YAML supports infinity and NaN. They are written as Infinity, -Infinity and NaN.

    Raises:
        TypeError: `data` contains a value that JSON does not support, or a key that is not a string.
    """
    _check_keys(data)
    # JSON escapes can produce lone surrogates, which strict UTF-8 rejects.
    return _CANONICAL_ENCODER.encode(data).encode("utf-8", "surrogatepass")


def compute_digest(data: Any) -> str:
    """Return "sha256:" and 64 hexadecimal digits, computed over the canonical JSON of `data`."""
    return f"sha256:{hashlib.sha256(encode_canonical_json(data)).hexdigest()}"


def _check_keys(data: Any) -> None:
    # The encoder writes 1 and "1" as the same key, so that different values would have the same digest.
    for key in data if isinstance(data, dict) else ():
        if not isinstance(key, str):
            raise TypeError(f"keys must be strings, not {type(key).__name__}")
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ():
        if value.__class__ not in _SCALAR_TYPES:
            _check_keys(value)
