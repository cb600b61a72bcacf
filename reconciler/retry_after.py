"""The HTTP header `Retry-After` (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime


def read_retry_after(value: str, now: float) -> float | None:
    """Return the seconds from `now` until the time in a header `Retry-After`: a number of seconds, or a date.

    `now` is in seconds since 1970. The result is 0 if the time has passed, and None if the value is empty or not valid.
    """
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,18}", value):
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None
