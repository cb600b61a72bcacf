"""The environment of HTML templates. All values in templates are escaped."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reconciler.krm.numbers import format_count
from reconciler.krm.times import format_rfc3339
from reconciler.output.text import format_object_reference, shorten_id, to_one_line

_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3_600, 86_400
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))
_DATE_CHARACTERS = len("2026-01-02")


def create_environment(package: str) -> Environment:
    """Return a Jinja environment that loads the shared templates and the templates of the Python package `package`.

    The caller must add the global `change_url`, which returns the URL of a change by its key. The shared macros for
    lists of the console need more globals, which only the console adds.
    """
    environment = Environment(
        autoescape=True, finalize=_escape_controls, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
    )  # fmt: skip
    environment.filters |= {
        "count": format_count, "time": format_time, "date": format_date, "age": format_age, "one_line": to_one_line,
        "short_id": shorten_id, "object_name": format_object_reference,
    }  # fmt: skip
    return environment


def read_style() -> str:
    """Return the style sheet of all pages."""
    return (files(__package__) / "static" / "console.css").read_text(encoding="utf-8")


def _escape_controls(value: object) -> object:
    """Show control characters and marks for the text direction as escapes. Keep line ends and tabs."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\u{ord(character):04x}"
        for character in value
    )


def format_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as RFC 3339."""
    return format_rfc3339(int(seconds))


def format_date(seconds: float) -> str:
    """Return the date of a time in seconds since 1970, such as `2026-01-02`."""
    return format_time(seconds)[:_DATE_CHARACTERS]


def format_age(seconds: float | None, now: float) -> str:
    """Return the age of a point in time in the largest unit, such as `3 d`. Return "" if the time is unknown."""
    if seconds is None:
        return ""
    age = max(int(now - seconds), 0)
    size, unit = next(((size, unit) for size, unit in _UNITS if age >= size), _UNITS[-1])
    return f"{age // size} {unit}"
