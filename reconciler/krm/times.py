"""Text formats of times and durations in Kubernetes. This module does not read the system clock."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from fractions import Fraction

_RFC3339 = "%Y-%m-%dT%H:%M:%SZ"
_MAX_SECONDS = 253402300799  # 9999-12-31T23:59:59Z, the latest time that RFC 3339 supports


def format_rfc3339(seconds: int) -> str:
    """Format seconds since 1970-01-01 as RFC 3339 in UTC without fractions, e.g. "2024-05-01T08:30:00Z".

    A time before 1970 becomes the start of 1970, and a time after 9999 becomes the end of 9999. Git commits can have
    such times.
    """
    time = datetime.fromtimestamp(min(max(seconds, 0), _MAX_SECONDS), UTC)
    return time.strftime(_RFC3339)


def parse_rfc3339_seconds(text: str) -> int:
    """Return the seconds since 1970-01-01 for a result of `format_rfc3339`."""
    return int(datetime.strptime(text, _RFC3339).replace(tzinfo=UTC).timestamp())


_SECONDS_PER_UNIT = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
_PART = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
# The maximum duration in Go, about 292 years. Go stores a duration as a signed 64-bit number of nanoseconds.
_MAX_DURATION_SECONDS = Fraction(2**63 - 1, 10**9)


def parse_duration_seconds(text: str) -> int | None:
    """Parse a non-negative Go duration such as "10m", "1h30m" or "1.5s".

    Returns:
        The duration in seconds, rounded up. None if the text is not a Go duration. Whole seconds are sufficient,
        because Git stores times in seconds.
    """
    if text == "0":
        return 0
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = sum((Fraction(f"0{number}".rstrip(".")) * _SECONDS_PER_UNIT[unit] for number, unit in parts), Fraction(0))
    return math.ceil(seconds) if seconds <= _MAX_DURATION_SECONDS else None
