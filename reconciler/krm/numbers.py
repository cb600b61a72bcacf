"""Text formats of numbers."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"-?[0-9]+", re.ASCII)
_INT64 = 2**63
_INT64_DIGITS = 300


def parse_int64(text: str) -> int | None:
    """Return the decimal integer in `text`. Return None if `text` is not an integer or exceeds 64 bits."""
    if not _DIGITS.fullmatch(text) or len(text) > _INT64_DIGITS:
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def format_count(number: float, noun: str) -> str:
    """Return the number with its noun, e.g. "1 item" or "2 items"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
