"""Times in starlark scripts: moments and durations as numbers and in Go's layouts; the clock is not for scripts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import re2

_RFC3339 = "2006-01-02T15:04:05Z07:00"
_MOMENT = re2.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")
_NANOSECONDS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re2.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+)")
_PART = re2.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
# the reference moment of Go's layouts, piece by piece; the longer pieces come first
_PIECES = {
    "January": "%B",
    "Monday": "%A",
    "Z07:00": "%z",
    "-07:00": "%z",
    "-0700": "%z",
    "2006": "%Y",
    "Jan": "%b",
    "Mon": "%a",
    "MST": "%Z",
    "01": "%m",
    "02": "%d",
    "03": "%I",
    "04": "%M",
    "05": "%S",
    "06": "%y",
    "15": "%H",
    "PM": "%p",
    "_2": "%d",
    "1": "%m",
    "2": "%d",
    "3": "%I",
    "4": "%M",
    "5": "%S",
}
_ZONES = {"Z07:00": "Z", "-07:00": "+00:00", "-0700": "+0000", "MST": "UTC"}
_LAYOUT = re2.compile("|".join(re2.escape(piece) for piece in _PIECES))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TIME = """
def _moment(nanoseconds):
    parts = _parts(nanoseconds)
    return struct(format=lambda layout: _format(nanoseconds, layout), **parts)

def _from_timestamp(sec, nsec=0):
    return _moment(sec * 1000000000 + nsec)

def _parse_time(x, format="", location="UTC"):
    return _moment(_parse(x, format, location))

def _time(year=1, month=1, day=1, hour=0, minute=0, second=0, nanosecond=0, location="UTC"):
    return _moment(_at(year, month, day, hour, minute, second, nanosecond, location))

def _parse_duration(text):
    return struct(**_duration(text))

def _now():
    fail("time.now() cannot be used: a script must give the same answer whenever it runs")

time = struct(
    from_timestamp=_from_timestamp, parse_time=_parse_time, time=_time, parse_duration=_parse_duration, now=_now
)
"""


def moment_at(
    year: int, month: int, day: int, hour: int, minute: int, second: int, nanosecond: int, location: str
) -> int:
    """Return a moment as nanoseconds since 1970."""
    _require_utc(location)
    return _nanoseconds(datetime(year, month, day, hour, minute, second, tzinfo=UTC), nanosecond)


def moment_in(text: str, layout: str, location: str) -> int:
    """Return the moment that a text in one of Go's layouts, RFC 3339 by default, says."""
    _require_utc(location)
    if layout in ("", _RFC3339):
        match = _MOMENT.fullmatch(text)
        if not match:
            raise ValueError(f"{text!r} must be a time as {_RFC3339}")
        day, time, fraction, zone = match.groups()
        return _nanoseconds(datetime.fromisoformat(f"{day}T{time}{zone.upper()}"), int((fraction or "").ljust(9, "0")))
    parsed = datetime.strptime(text, _directives(layout))  # noqa: DTZ007 - the next line gives it its zone
    return _nanoseconds(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC), 0)


def moment_parts(nanoseconds: int) -> dict[str, int]:
    """Return what a moment says in UTC, by the names that scripts know."""
    moment, fraction = _moment(nanoseconds)
    names = ("year", "month", "day", "hour", "minute", "second")
    parts = {name: getattr(moment, name) for name in names}
    return parts | {"nanosecond": fraction, "unix": nanoseconds // 10**9, "unix_nano": nanoseconds}


def moment_text(nanoseconds: int, layout: str) -> str:
    """Return a moment in one of Go's layouts."""
    moment, _ = _moment(nanoseconds)
    return str(_LAYOUT.sub(lambda match: _piece(moment, match.group(0)), layout))


def duration_parts(text: str) -> dict[str, Any]:
    """Return a duration such as `1h30m` in each unit that scripts know."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} must be a duration, as 1h30m")
    total = round(sum(float(match.group(1)) * _NANOSECONDS[match.group(2)] for match in _PART.finditer(text)))
    total = -total if text.startswith("-") else total
    in_units = {"hours": total / _NANOSECONDS["h"], "minutes": total / _NANOSECONDS["m"], "seconds": total / 10**9}
    return in_units | {"milliseconds": total // 10**6, "microseconds": total // 1000, "nanoseconds": total}


def _require_utc(location: str) -> None:
    if location not in ("UTC", ""):
        raise ValueError(f"the location must be UTC, not {location!r}: time zones change")


def _nanoseconds(moment: datetime, fraction: int) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1) * 10**9 + fraction


def _moment(nanoseconds: int) -> tuple[datetime, int]:
    seconds, fraction = divmod(nanoseconds, 10**9)
    return _EPOCH + timedelta(seconds=seconds), fraction


def _directives(layout: str) -> str:
    return str(_LAYOUT.sub(lambda match: _PIECES[match.group(0)], layout.replace("%", "%%")))


def _piece(moment: datetime, piece: str) -> str:
    text = _ZONES.get(piece) or moment.strftime(_PIECES[piece])
    if piece == "_2":
        return str(moment.day).rjust(2)
    return text.lstrip("0") or "0" if piece in ("1", "2", "3", "4", "5") else text
