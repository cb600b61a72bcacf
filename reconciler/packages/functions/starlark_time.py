"""The Starlark module `time.star`: times and durations as numbers, and texts in the time layouts of Go.

Scripts cannot read the current time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import re2

from reconciler.cel.errors import EvaluationError
from reconciler.cel.timestamps import (
    NANOSECONDS_PER_SECOND,
    Duration,
    Timestamp,
    parse_duration,
    parse_timestamp,
    read_calendar_field,
)
from reconciler.krm.patterns import compile_pattern

_MONTHS: tuple[str, ...] = ("January", "February", "March", "April", "May", "June")
_MONTHS = (*_MONTHS, "July", "August", "September", "October", "November", "December")
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
# The elements of Go time layouts, each with a regular expression to parse it and a function to format it. Longer
# elements come first, because "2006" starts with the element "2".
_LAYOUT_ELEMENTS: Mapping[str, tuple[str, Callable[[Mapping[str, int]], str]]] = {
    "January": (rf"(?P<month_name>{'|'.join(_MONTHS)})", lambda fields: _MONTHS[fields["month"] - 1]),
    "Monday": ("|".join(_DAYS), lambda fields: _DAYS[fields["weekday"]]),
    "Z07:00": (r"(?P<zone>Z|[+-]\d\d:\d\d)", lambda fields: "Z"),
    "-07:00": (r"(?P<zone>[+-]\d\d:\d\d)", lambda fields: "+00:00"),
    "2006": (r"(?P<year>\d{4})", lambda fields: f"{fields['year']:04}"),
    "Jan": (
        rf"(?P<month_name>{'|'.join(name[:3] for name in _MONTHS)})",
        lambda fields: _MONTHS[fields["month"] - 1][:3],
    ),
    "Mon": ("|".join(name[:3] for name in _DAYS), lambda fields: _DAYS[fields["weekday"]][:3]),
    "MST": ("UTC", lambda fields: "UTC"),
    "01": (r"(?P<month>\d\d)", lambda fields: f"{fields['month']:02}"),
    "02": (r"(?P<day>\d\d)", lambda fields: f"{fields['day']:02}"),
    "03": (r"(?P<hour>\d\d)", lambda fields: f"{_get_twelve_hour(fields):02}"),
    "04": (r"(?P<minute>\d\d)", lambda fields: f"{fields['minute']:02}"),
    "05": (r"(?P<second>\d\d)", lambda fields: f"{fields['second']:02}"),
    "15": (r"(?P<hour>\d\d)", lambda fields: f"{fields['hour']:02}"),
    "PM": (r"(?P<half>AM|PM)", lambda fields: "PM" if fields["hour"] >= 12 else "AM"),
    "_2": (r"(?P<day>[ \d]\d)", lambda fields: f"{fields['day']:2}"),
    "1": (r"(?P<month>\d\d?)", lambda fields: str(fields["month"])),
    "2": (r"(?P<day>\d\d?)", lambda fields: str(fields["day"])),
    "3": (r"(?P<hour>\d\d?)", lambda fields: str(_get_twelve_hour(fields))),
    "4": (r"(?P<minute>\d\d?)", lambda fields: str(fields["minute"])),
    "5": (r"(?P<second>\d\d?)", lambda fields: str(fields["second"])),
}
_LAYOUT = re2.compile("|".join(re2.escape(element) for element in _LAYOUT_ELEMENTS))
_MAX_LAYOUT_LENGTH = 200
_RFC3339 = "2006-01-02T15:04:05Z07:00"

TIME_MODULE_SOURCE = """
def _moment(nanoseconds):
    return struct(format=lambda layout: _format(nanoseconds, layout), **_parts(nanoseconds))

def _from_timestamp(sec, nsec=0):
    return _moment(sec * 1000000000 + nsec)

def _parse_time(x, format="", location="UTC"):
    return _moment(_read(x, format, location))

def _time(year=1, month=1, day=1, hour=0, minute=0, second=0, nanosecond=0, location="UTC"):
    return _moment(_to_nanoseconds([year, month, day, hour, minute, second], location) + nanosecond)

def _parse_duration(text):
    return struct(**_duration(text))

def _now():
    fail("time.now() cannot be used: a script must give the same answer whenever it runs")

time = struct(
    from_timestamp=_from_timestamp, parse_time=_parse_time, time=_time, parse_duration=_parse_duration, now=_now
)
"""


def _to_nanoseconds(numbers: list[int], location: str) -> int:
    """Return the nanoseconds since 1970 for a time in UTC, given as year, month, day, hour, minute and second."""
    if location not in ("UTC", ""):
        raise ValueError(
            f"the location must be UTC, but is {location!r}, because the rules of other time zones can change"
        )
    year, month, day, hour, minute, second = numbers
    return _parse_timestamp(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")


def _read(text: str, layout: str, location: str) -> int:
    """Parse a time in a Go layout, and return its nanoseconds since 1970. The default layout is RFC 3339."""
    if layout in ("", _RFC3339):
        return _parse_timestamp(text)
    match = _compile_layout(layout).fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} must be a time in the layout {layout}")
    fields = {name: value for name, value in match.groupdict().items() if value}
    month = next((n for n, name in enumerate(_MONTHS, 1) if name[:3] == fields.get("month_name", "")[:3]), 0)
    hour = int(fields.get("hour", 0))
    hour = hour % 12 + 12 * (fields["half"] == "PM") if "half" in fields else hour
    numbers = [int(fields.get("year", 1)), month or int(fields.get("month", 1)), int(fields.get("day", 1))]
    nanoseconds = _to_nanoseconds(
        [*numbers, hour, int(fields.get("minute", 0)), int(fields.get("second", 0))], location
    )
    return nanoseconds - _parse_offset(fields.get("zone", "Z"))


def _compile_layout(layout: str) -> Any:
    if len(layout) > _MAX_LAYOUT_LENGTH:
        raise ValueError(f"a layout must not have more than {_MAX_LAYOUT_LENGTH} characters")
    literals = [re2.escape(text) for text in _LAYOUT.split(layout)]
    patterns = [f"(?:{_LAYOUT_ELEMENTS[match.group(0)][0]})" for match in _LAYOUT.finditer(layout)]
    return compile_pattern(
        "".join(part for pair in zip(literals, [*patterns, ""], strict=True) for part in pair), captures=True
    )


def _parse_offset(zone: str) -> int:
    return _parse_timestamp("1970-01-01T00:00:00Z") - _parse_timestamp(f"1970-01-01T00:00:00{zone}")


def _parts(nanoseconds: int) -> dict[str, int]:
    """Return the calendar fields of a time in UTC, and its seconds and nanoseconds since 1970."""
    fields = _compute_calendar_fields(nanoseconds)
    del fields["weekday"]
    return fields | {
        "nanosecond": nanoseconds % NANOSECONDS_PER_SECOND,
        "unix": nanoseconds // NANOSECONDS_PER_SECOND,
        "unix_nano": nanoseconds,
    }


def _format(nanoseconds: int, layout: str) -> str:
    """Format a time in a Go layout."""
    fields = _compute_calendar_fields(nanoseconds)
    return str(_LAYOUT.sub(lambda match: _LAYOUT_ELEMENTS[match.group(0)][1](fields), layout))


def _duration(text: str) -> dict[str, Any]:
    """Parse a duration such as `1h30m`. Return its total length in each unit."""
    total = _parse_nanoseconds(parse_duration, text)
    in_units = {
        "hours": total / (3600 * NANOSECONDS_PER_SECOND),
        "minutes": total / (60 * NANOSECONDS_PER_SECOND),
        "seconds": total / NANOSECONDS_PER_SECOND,
    }
    return in_units | {"milliseconds": total // 10**6, "microseconds": total // 10**3, "nanoseconds": total}


def _compute_calendar_fields(nanoseconds: int) -> dict[str, int]:
    timestamp = Timestamp(nanoseconds)
    names = {"year": "year", "day": "date", "hour": "hours", "minute": "minutes", "second": "seconds"}
    parts = {name: read_calendar_field(timestamp, source_name, "") for name, source_name in names.items()}
    return parts | {
        "month": read_calendar_field(timestamp, "month", "") + 1,
        "weekday": read_calendar_field(timestamp, "day_of_week", ""),
    }


def _get_twelve_hour(fields: Mapping[str, int]) -> int:
    return fields["hour"] % 12 or 12


def _parse_timestamp(text: str) -> int:
    return _parse_nanoseconds(parse_timestamp, text)


def _parse_nanoseconds(parse: Callable[[str], Timestamp | Duration], text: str) -> int:
    """Parse a time or a duration, and return its nanoseconds.

    Raises:
        ValueError: The text is invalid. The script reports this error.
    """
    try:
        return parse(text).nanoseconds
    except EvaluationError as fault:
        raise ValueError(fault.message) from fault


TIME_MODULE_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "_to_nanoseconds": _to_nanoseconds,
    "_read": _read,
    "_parts": _parts,
    "_format": _format,
    "_duration": _duration,
}
"""The Python functions that the Starlark source in `TIME_MODULE_SOURCE` calls, by name."""
