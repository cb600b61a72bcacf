"""Timestamps, durations and calendar fields of CEL. This module does not read the system clock.

The functions follow the sections "Timestamp and Duration" and "List of Standard Definitions" of the CEL specification.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.cel.errors import EvaluationError
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

NANOSECONDS_PER_SECOND: Final = 1_000_000_000
DAY_SECONDS: Final = 86_400

MIN_TIMESTAMP: Final = -62_135_596_800 * NANOSECONDS_PER_SECOND
"""0001-01-01T00:00:00Z."""

MAX_TIMESTAMP: Final = 253_402_300_800 * NANOSECONDS_PER_SECOND - 1
"""The last nanosecond of the year 9999."""

MAX_DURATION: Final = 2**63 - 1
"""The longest duration in nanoseconds: the largest signed 64-bit integer, about 292 years."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time in the years 1 to 9999. `nanoseconds` is counted from 1970-01-01T00:00:00Z."""

    nanoseconds: int

    def __str__(self) -> str:
        """Format the timestamp as RFC 3339 in UTC, e.g. `2024-05-01T08:30:00.5Z`.

        Zeros at the end of the fraction are omitted.
        """
        days, second = divmod(self.nanoseconds // NANOSECONDS_PER_SECOND, DAY_SECONDS)
        year, month, day = _convert_days_to_date(days)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return f"{year:04}-{month:02}-{day:02}T{clock}{_format_fraction(self.nanoseconds % NANOSECONDS_PER_SECOND)}Z"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A positive or negative duration in nanoseconds."""

    nanoseconds: int

    def __str__(self) -> str:
        """Format the duration in seconds, e.g. `90.5s`. Zeros at the end of the fraction are omitted."""
        sign = "-" if self.nanoseconds < 0 else ""
        seconds, nanoseconds = divmod(abs(self.nanoseconds), NANOSECONDS_PER_SECOND)
        return f"{sign}{seconds}{_format_fraction(nanoseconds)}s"


def create_timestamp(nanoseconds: int) -> Timestamp:
    """Create a timestamp. Raise `EvaluationError` if it is not in the years 1 to 9999."""
    if MIN_TIMESTAMP <= nanoseconds <= MAX_TIMESTAMP:
        return Timestamp(nanoseconds)
    raise EvaluationError("CelArithmetic", "the timestamp is outside of the years 1 to 9999")


def create_duration(nanoseconds: int) -> Duration:
    """Create a duration. Raise `EvaluationError` if it is longer than about 292 years."""
    if -MAX_DURATION - 1 <= nanoseconds <= MAX_DURATION:
        return Duration(nanoseconds)
    raise EvaluationError("CelArithmetic", "the duration is longer than 2^63 nanoseconds")


_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def parse_timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 time such as `2024-05-01T08:30:00Z`. Digits below one nanosecond are ignored."""
    match = _TIMESTAMP.fullmatch(text) if len(text) < 100 else None
    if match is None:
        raise EvaluationError(
            "CelConversion", f"{_quote(text)} is not a timestamp; use the format 2006-01-02T15:04:05Z"
        )
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not (
        year
        and 1 <= month <= 12
        and 1 <= day <= _count_days_of_month(year, month)
        and hour < 24
        and minute < 60 > second
    ):
        raise EvaluationError("CelConversion", f"{_quote(text)} is not a timestamp; the date or time does not exist")
    seconds = (
        _convert_date_to_days(year, month, day) * DAY_SECONDS
        + hour * 3600
        + minute * 60
        + second
        - _get_match_offset(match)
    )
    return create_timestamp(seconds * NANOSECONDS_PER_SECOND + int((match[7] or "").ljust(9, "0")))


_UNITS: Final = {
    "h": 3600 * NANOSECONDS_PER_SECOND,
    "m": 60 * NANOSECONDS_PER_SECOND,
    "s": NANOSECONDS_PER_SECOND,
    "ms": 10**6,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
}
_UNITS_AND_NANOS: Final = {**_UNITS, "ns": 1}
_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|μs|ns)", re.ASCII)


def parse_duration(text: str) -> Duration:
    """Parse a duration with an optional sign and units, such as `1h30m`, `-1.5s` or `0`."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total = _sum_parts(body) if len(body) < 200 else None
    if total is None:
        raise EvaluationError("CelConversion", f"{_quote(text)} is not a duration; use a format such as 1h30m or 45.5s")
    return create_duration(-total if text.startswith("-") else total)


def read_calendar_field(time: Timestamp, name: str, zone: str) -> int:
    """Return one calendar field of a timestamp in a time zone.

    The fields `month`, `day_of_month`, `day_of_week` and `day_of_year` start at 0. Day 0 of the week is Sunday. The
    field `date` is the day of the month, and starts at 1.

    Args:
        name: One of `CALENDAR_FIELDS`.
        zone: An IANA time zone, an offset such as `+02:00`, or "" for UTC.
    """
    seconds = time.nanoseconds // NANOSECONDS_PER_SECOND
    days, second = divmod(seconds + _find_zone_offset(seconds, zone), DAY_SECONDS)
    if name in _CLOCK_FIELDS:
        divisor, modulus = _CLOCK_FIELDS[name]
        return second // divisor % modulus
    if name == "milliseconds":
        return time.nanoseconds % NANOSECONDS_PER_SECOND // 10**6
    return _read_date_field(days, name)


_CLOCK_FIELDS: Final = {"hours": (3600, 24), "minutes": (60, 60), "seconds": (1, 60)}

CALENDAR_FIELDS: Final = (
    "year",
    "month",
    "date",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    *_CLOCK_FIELDS,
    "milliseconds",
)


def _read_date_field(days: int, name: str) -> int:
    year, month, day = _convert_days_to_date(days)
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
            return (days + 4) % 7  # Add 4, because 1970-01-01 was a Thursday.
        case _:
            return days - _convert_date_to_days(year, 1, 1)


def count_whole_units(duration: Duration, unit: int) -> int:
    """Return how many whole units a duration contains, rounded toward zero.

    `unit` is the length of a unit in nanoseconds.
    """
    count = abs(duration.nanoseconds) // unit
    return -count if duration.nanoseconds < 0 else count


_OFFSET: Final = re.compile(r"([+-]?)(\d\d?):(\d\d)", re.ASCII)


def _find_zone_offset(seconds: int, zone: str) -> int:
    if zone in ("", "UTC"):
        return 0
    if match := _OFFSET.fullmatch(zone):
        return _parse_offset(match[1], match[2], match[3], zone)
    return _find_named_offset(seconds, zone)


def _parse_offset(sign: str, hours: str, minutes: str, text: str) -> int:
    if int(hours) > 23 or int(minutes) > 59:
        raise EvaluationError("CelArgument", f"{_quote(text)} is not a valid offset from UTC")
    offset = int(hours) * 3600 + int(minutes) * 60
    return -offset if sign == "-" else offset


def _find_named_offset(seconds: int, zone: str) -> int:
    # On the first and last day of the supported years, use the UTC offset of the next or previous day. Otherwise the
    # local time could be outside of the years that Python's datetime supports.
    clamped_seconds = min(
        max(seconds, MIN_TIMESTAMP // NANOSECONDS_PER_SECOND + DAY_SECONDS),
        MAX_TIMESTAMP // NANOSECONDS_PER_SECOND - DAY_SECONDS,
    )
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=clamped_seconds)
    offset = time.astimezone(_load_zone(zone)).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)


@cached(64)
def _load_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        # Catch three types, because ZoneInfo raises different exceptions for an unknown name, an invalid name, and a
        # folder of the time zone database.
        raise EvaluationError("CelArgument", f"{_quote(name)} is not a time zone") from error


def _get_match_offset(match: re.Match[str]) -> int:
    return _parse_offset(match[8], match[9], match[10], match[0]) if match[8] else 0


def _sum_parts(body: str) -> int | None:
    total, position = 0, 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None or not (part[1] or part[2]):
            return None
        unit, decimals = _UNITS_AND_NANOS[part[3]], part[2] or ""
        total += int(part[1] or "0") * unit + int(decimals or "0") * unit // 10 ** len(decimals)
        position = part.end()
    return total if body else None


def _format_fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""


def _quote(text: str) -> str:
    return f"'{text}'" if len(text) <= 60 else f"'{text[:60]}…'"


def _convert_date_to_days(year: int, month: int, day: int) -> int:
    """Return the number of days between 1970-01-01 and a Gregorian date."""
    # Count months from March, so that the leap day is the last day of the year and does not change the start of any
    # month.
    march_year = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * march_year + march_year // 4 - march_year // 100 + march_year // 400 + day_of_year - 719_468


def _convert_days_to_date(days: int) -> tuple[int, int, int]:
    """Return (year, month, day) of the date that is `days` days after 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * month_from_march + 2) // 5 + 1


def _count_days_of_month(year: int, month: int) -> int:
    following = _convert_date_to_days(year + month // 12, month % 12 + 1, 1)
    return following - _convert_date_to_days(year, month, 1)
