"""Scalars as text: how a single value reads inside of text (openchoreo 5.2)."""

from __future__ import annotations

import math
from decimal import Decimal

Scalar = str | int | float | bool | None
_PLAIN_BELOW = 1e15


def scalar_text(value: str | int | float | bool) -> str:
    """Return a value as it reads inside of text: `true`, `1000000`, `3` for 3.0 (openchoreo 5.2)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return _double_text(value) if isinstance(value, float) else str(value)


def _double_text(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = repr(value)
    # the digits are repr's, and only their place is written out
    text = format(Decimal(shortest), "f") if abs(value) < _PLAIN_BELOW else shortest
    return text.removesuffix(".0")
