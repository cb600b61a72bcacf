"""Points in time and spans of time, counted in nanoseconds, and the calendar that reads them. No clock.

Reference: the CEL language definition, "Timestamp and Duration" and the list of standard definitions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.caching import cached
from reconciler.expressions.errors import Fault

SECOND: Final = 1_000_000_000
DAY_SECONDS: Final = 86_400

EARLIEST: Final = -62_135_596_800 * SECOND
"""0001-01-01T00:00:00Z."""

LATEST: Final = 253_402_300_800 * SECOND - 1
"""The last nanosecond of the year 9999."""

LONGEST: Final = 2**63 - 1
"""A span's nanoseconds fit a signed 64-bit integer, about 292 years."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: nanoseconds since 1970-01-01T00:00:00Z, in the years 1 to 9999."""

    nanoseconds: int

    def __str__(self) -> str:
        """RFC 3339 in UTC, with as many decimals as needed."""
        days, second = divmod(self.nanoseconds // SECOND, DAY_SECONDS)
        year, month, day = _civil(days)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return f"{year:04}-{month:02}-{day:02}T{clock}{_fraction(self.nanoseconds % SECOND)}Z"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds, of either sign."""

    nanoseconds: int

    def __str__(self) -> str:
        """Seconds with as many decimals as needed, and an `s`."""
        sign = "-" if self.nanoseconds < 0 else ""
        seconds, rest = divmod(abs(self.nanoseconds), SECOND)
        return f"{sign}{seconds}{_fraction(rest)}s"


def point(nanoseconds: int) -> Timestamp:
    """Return the timestamp, or fault outside of the years 1 to 9999."""
    if EARLIEST <= nanoseconds <= LATEST:
        return Timestamp(nanoseconds)
    raise Fault("CelArithmetic", "the timestamp is outside of the years 1 to 9999")


def span(nanoseconds: int) -> Duration:
    """Return the duration, or fault when it is longer than about 292 years."""
    if -LONGEST - 1 <= nanoseconds <= LONGEST:
        return Duration(nanoseconds)
    raise Fault("CelArithmetic", "the duration is longer than 2^63 nanoseconds")


_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def parse_timestamp(text: str) -> Timestamp:
    """Read RFC 3339, with an offset or Z; decimals beyond the ninth are dropped."""
    match = _TIMESTAMP.fullmatch(text) if len(text) < 100 else None
    if match is None:
        raise Fault("CelConversion", f"{_quoted(text)} is no timestamp; write it like 2006-01-02T15:04:05Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not (year and 1 <= month <= 12 and 1 <= day <= _month_days(year, month) and hour < 24 and minute < 60 > second):
        raise Fault("CelConversion", f"{_quoted(text)} is no timestamp; there is no such day or time")
    seconds = _days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second - _offset(match)
    return point(seconds * SECOND + int((match[7] or "").ljust(9, "0")))


_UNITS: Final = {"h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 10**6, "us": 10**3, "µs": 10**3, "μs": 10**3}
_UNITS_AND_NANOS: Final = {**_UNITS, "ns": 1}
_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|μs|ns)", re.ASCII)


def parse_duration(text: str) -> Duration:
    """Read a duration like `1h30m`, `-1.5s` or `0`: numbers with units, an optional sign in front."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total = _sum_of_parts(body) if len(body) < 200 else None
    if total is None:
        raise Fault("CelConversion", f"{_quoted(text)} is no duration; write it like 1h30m or 45.5s")
    return span(-total if text.startswith("-") else total)


def field(moment: Timestamp, name: str, zone: str) -> int:
    """Return one field of the calendar in a time zone.

    `name` is one of `FIELDS`; `zone` is an IANA name, `[+-]HH:MM`, or "" for UTC. Month, day of month and day of year
    count from 0, except for `date`, and Sunday is the first day of a week.
    """
    seconds = moment.nanoseconds // SECOND
    days, second = divmod(seconds + _zone_offset(seconds, zone), DAY_SECONDS)
    if name in _CLOCK:
        divisor, modulus = _CLOCK[name]
        return second // divisor % modulus
    if name == "milliseconds":
        return moment.nanoseconds % SECOND // 10**6
    return _calendar(days, name)


_CLOCK: Final = {"hours": (3600, 24), "minutes": (60, 60), "seconds": (1, 60)}

FIELDS: Final = ("year", "month", "date", "day_of_month", "day_of_week", "day_of_year", *_CLOCK, "milliseconds")


def _calendar(days: int, name: str) -> int:
    year, month, day = _civil(days)
    match name:
        case "year":
            return year
        case "month":
            return month - 1
        case "date":
            return day
        case "day_of_month":
            return day - 1
        case "day_of_week":
            return (days + 4) % 7  # the first of January 1970 was a Thursday
        case _:
            return days - _days(year, 1, 1)


def whole(duration: Duration, unit: int) -> int:
    """Return how many whole units of `unit` nanoseconds the duration has, toward zero."""
    count = abs(duration.nanoseconds) // unit
    return -count if duration.nanoseconds < 0 else count


_OFFSET: Final = re.compile(r"([+-]?)(\d\d?):(\d\d)", re.ASCII)


def _zone_offset(seconds: int, zone: str) -> int:
    if zone in ("", "UTC"):
        return 0
    if match := _OFFSET.fullmatch(zone):
        return _signed_offset(match[1], match[2], match[3], zone)
    return _named_offset(seconds, zone)


def _signed_offset(sign: str, hours: str, minutes: str, text: str) -> int:
    if int(hours) > 23 or int(minutes) > 59:
        raise Fault("CelArgument", f"{_quoted(text)} has no such offset from UTC")
    offset = int(hours) * 3600 + int(minutes) * 60
    return -offset if sign == "-" else offset


def _named_offset(seconds: int, zone: str) -> int:
    # zones are read around the moment; the first and last day of the calendar have no neighbours to read
    within = min(max(seconds, EARLIEST // SECOND + DAY_SECONDS), LATEST // SECOND - DAY_SECONDS)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=within)
    offset = moment.astimezone(_zone(zone)).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)


@cached(64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, not normalised, or a folder of the database
        raise Fault("CelArgument", f"{_quoted(name)} is no time zone") from error


def _offset(match: re.Match[str]) -> int:
    return _signed_offset(match[8], match[9], match[10], match[0]) if match[8] else 0


def _sum_of_parts(body: str) -> int | None:
    total, position = 0, 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None or not (part[1] or part[2]):
            return None
        unit, decimals = _UNITS_AND_NANOS[part[3]], part[2] or ""
        total += int(part[1] or "0") * unit + int(decimals or "0") * unit // 10 ** len(decimals)
        position = part.end()
    return total if body else None


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= 60 else f"'{text[:60]}…'"


def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar."""
    # a year that starts in March has its leap day at the end, so the months before it have fixed lengths
    march_year = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * march_year + march_year // 4 - march_year // 100 + march_year // 400 + day_of_year - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """Return (year, month, day) of a day counted from 1970-01-01: the inverse of `_days`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * month_from_march + 2) // 5 + 1


def _month_days(year: int, month: int) -> int:
    following = _days(year + month // 12, month % 12 + 1, 1)
    return following - _days(year, month, 1)
