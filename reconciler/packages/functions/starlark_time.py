"""Times in starlark scripts: moments and durations as numbers and in Go's layouts; the clock is not for scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import re2

from reconciler.expressions.errors import Fault
from reconciler.expressions.timestamps import SECOND, Duration, Timestamp, field, parse_duration, parse_timestamp
from reconciler.krm.patterns import compile_pattern

_MONTHS: tuple[str, ...] = ("January", "February", "March", "April", "May", "June")
_MONTHS = (*_MONTHS, "July", "August", "September", "October", "November", "December")
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
# the reference moment of Go's layouts, piece by piece (the longer ones first): how it is read, and how written
_PIECES: Mapping[str, tuple[str, Callable[[Mapping[str, int]], str]]] = {
    "January": (rf"(?P<month_name>{'|'.join(_MONTHS)})", lambda now: _MONTHS[now["month"] - 1]),
    "Monday": ("|".join(_DAYS), lambda now: _DAYS[now["weekday"]]),
    "Z07:00": (r"(?P<zone>Z|[+-]\d\d:\d\d)", lambda now: "Z"),
    "-07:00": (r"(?P<zone>[+-]\d\d:\d\d)", lambda now: "+00:00"),
    "2006": (r"(?P<year>\d{4})", lambda now: f"{now['year']:04}"),
    "Jan": (rf"(?P<month_name>{'|'.join(name[:3] for name in _MONTHS)})", lambda now: _MONTHS[now["month"] - 1][:3]),
    "Mon": ("|".join(name[:3] for name in _DAYS), lambda now: _DAYS[now["weekday"]][:3]),
    "MST": ("UTC", lambda now: "UTC"),
    "01": (r"(?P<month>\d\d)", lambda now: f"{now['month']:02}"),
    "02": (r"(?P<day>\d\d)", lambda now: f"{now['day']:02}"),
    "03": (r"(?P<hour>\d\d)", lambda now: f"{_half_day(now):02}"),
    "04": (r"(?P<minute>\d\d)", lambda now: f"{now['minute']:02}"),
    "05": (r"(?P<second>\d\d)", lambda now: f"{now['second']:02}"),
    "15": (r"(?P<hour>\d\d)", lambda now: f"{now['hour']:02}"),
    "PM": (r"(?P<half>AM|PM)", lambda now: "PM" if now["hour"] >= 12 else "AM"),
    "_2": (r"(?P<day>[ \d]\d)", lambda now: f"{now['day']:2}"),
    "1": (r"(?P<month>\d\d?)", lambda now: str(now["month"])),
    "2": (r"(?P<day>\d\d?)", lambda now: str(now["day"])),
    "3": (r"(?P<hour>\d\d?)", lambda now: str(_half_day(now))),
    "4": (r"(?P<minute>\d\d?)", lambda now: str(now["minute"])),
    "5": (r"(?P<second>\d\d?)", lambda now: str(now["second"])),
}
_LAYOUT = re2.compile("|".join(re2.escape(piece) for piece in _PIECES))
_LONGEST_LAYOUT = 200
_RFC3339 = "2006-01-02T15:04:05Z07:00"

SOURCE = """
def _moment(nanoseconds):
    return struct(format=lambda layout: _format(nanoseconds, layout), **_parts(nanoseconds))

def _from_timestamp(sec, nsec=0):
    return _moment(sec * 1000000000 + nsec)

def _parse_time(x, format="", location="UTC"):
    return _moment(_read(x, format, location))

def _time(year=1, month=1, day=1, hour=0, minute=0, second=0, nanosecond=0, location="UTC"):
    return _moment(_at([year, month, day, hour, minute, second], location) + nanosecond)

def _parse_duration(text):
    return struct(**_duration(text))

def _now():
    fail("time.now() cannot be used: a script must give the same answer whenever it runs")

time = struct(
    from_timestamp=_from_timestamp, parse_time=_parse_time, time=_time, parse_duration=_parse_duration, now=_now
)
"""


def _at(numbers: list[int], location: str) -> int:
    """Return a moment as nanoseconds since 1970."""
    if location not in ("UTC", ""):
        raise ValueError(f"the location must be UTC, not {location!r}: time zones change")
    year, month, day, hour, minute, second = numbers
    return _timestamp(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")


def _read(text: str, layout: str, location: str) -> int:
    """Return the moment that a text in one of Go's layouts, RFC 3339 by default, says."""
    if layout in ("", _RFC3339):
        return _timestamp(text)
    match = _pattern(layout).fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} must be a time as {layout}")
    said = {name: value for name, value in match.groupdict().items() if value}
    month = next((n for n, name in enumerate(_MONTHS, 1) if name[:3] == said.get("month_name", "")[:3]), 0)
    hour = int(said.get("hour", 0))
    hour = hour % 12 + 12 * (said["half"] == "PM") if "half" in said else hour
    numbers = [int(said.get("year", 1)), month or int(said.get("month", 1)), int(said.get("day", 1))]
    moment = _at([*numbers, hour, int(said.get("minute", 0)), int(said.get("second", 0))], location)
    return moment - _offset(said.get("zone", "Z"))


def _pattern(layout: str) -> Any:
    if len(layout) > _LONGEST_LAYOUT:
        raise ValueError(f"a layout must not have more than {_LONGEST_LAYOUT} characters")
    pieces = [re2.escape(text) for text in _LAYOUT.split(layout)]
    readers = [f"(?:{_PIECES[match.group(0)][0]})" for match in _LAYOUT.finditer(layout)]
    return compile_pattern(
        "".join(part for pair in zip(pieces, [*readers, ""], strict=True) for part in pair), captures=True
    )


def _offset(zone: str) -> int:
    return _timestamp("1970-01-01T00:00:00Z") - _timestamp(f"1970-01-01T00:00:00{zone}")


def _parts(nanoseconds: int) -> dict[str, int]:
    """Return what a moment says in UTC, by the names that scripts know."""
    now = _calendar(nanoseconds)
    del now["weekday"]
    return now | {"nanosecond": nanoseconds % SECOND, "unix": nanoseconds // SECOND, "unix_nano": nanoseconds}


def _format(nanoseconds: int, layout: str) -> str:
    """Return a moment in one of Go's layouts."""
    now = _calendar(nanoseconds)
    return str(_LAYOUT.sub(lambda match: _PIECES[match.group(0)][1](now), layout))


def _duration(text: str) -> dict[str, Any]:
    """Return a duration such as `1h30m` in each unit that scripts know."""
    total = _nanoseconds(parse_duration, text)
    in_units = {"hours": total / (3600 * SECOND), "minutes": total / (60 * SECOND), "seconds": total / SECOND}
    return in_units | {"milliseconds": total // 10**6, "microseconds": total // 10**3, "nanoseconds": total}


def _calendar(nanoseconds: int) -> dict[str, int]:
    moment = Timestamp(nanoseconds)
    names = {"year": "year", "day": "date", "hour": "hours", "minute": "minutes", "second": "seconds"}
    parts = {name: field(moment, known, "") for name, known in names.items()}
    return parts | {"month": field(moment, "month", "") + 1, "weekday": field(moment, "day_of_week", "")}


def _half_day(now: Mapping[str, int]) -> int:
    return now["hour"] % 12 or 12


def _timestamp(text: str) -> int:
    return _nanoseconds(parse_timestamp, text)


def _nanoseconds(parse: Callable[[str], Timestamp | Duration], text: str) -> int:
    """Return what a text says, and raise what scripts are told otherwise."""
    try:
        return parse(text).nanoseconds
    except Fault as fault:
        raise ValueError(fault.message) from fault


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "_at": _at,
    "_read": _read,
    "_parts": _parts,
    "_format": _format,
    "_duration": _duration,
}
"""What the module's own source calls."""
