"""Strict JSON: what other readers would drop or change silently is an error.

RFC 8259 leaves duplicate keys and large numbers to the reader, and readers differ: the last key or an error, infinity
or an error. A file with one of these does not have one meaning, and rewriting it would change it.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

# Kubernetes reads other integers as floating point numbers, and so loses digits.
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MAX_DIGITS = 20
_SHOWN = 40


def read_json(text: str | bytes) -> Any:
    """Return the data of a JSON text.

    Raises:
        json.JSONDecodeError: The text is not JSON.
        ValueError: A key is repeated, or a number is NaN, infinite or outside of the range that Kubernetes keeps.
        RecursionError: The text is nested too deeply.
    """
    return json.loads(
        text,
        parse_constant=_refuse_constant,
        parse_float=_read_float,
        parse_int=_read_integer,
        object_pairs_hook=_without_duplicates,
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _read_float(text: str) -> float:
    number = float(text)
    has_value = any(digit in text.lower().partition("e")[0] for digit in "123456789")
    if math.isinf(number) or (number == 0 and has_value):
        raise ValueError(f"the number {_shown(text)} is outside of the range of 64-bit floating point numbers")
    return number


def _read_integer(text: str) -> int:
    if len(text.lstrip("-")) > _MAX_DIGITS or not _SMALLEST <= int(text) <= _LARGEST:
        raise ValueError(f"the integer {_shown(text)} is outside of the range of 64-bit integers")
    return int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the key {json.dumps(_shown(key))} is repeated in one mapping")
        data[key] = value
    return data


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
