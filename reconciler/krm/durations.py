"""Durations as Go and Kubernetes write them: "10m", "1h30m", "1.5s"; in whole seconds, as Git counts time."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_UNITS = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
_PART = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
# Go counts nanoseconds in 63 bits, which end after 292 years
_LONGEST = Fraction(2**63 - 1, 10**9)


def duration_seconds(text: str) -> int | None:
    """Return the seconds of a duration that is not negative, rounded up; None when the text is none of Go's."""
    if text == "0":
        return 0
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = sum((Fraction(f"0{number}".rstrip(".")) * _UNITS[unit] for number, unit in parts), Fraction(0))
    return math.ceil(seconds) if seconds <= _LONGEST else None
