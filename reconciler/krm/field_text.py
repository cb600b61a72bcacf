"""Functions for messages about fields: texts of paths, values and lists of names, and suggestions of similar names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.krm.yaml import DataPath

_MAX_VALUE_LENGTH = 80
_MAX_COMPARED = 200
_MAX_LISTED = 50
_MIN_PREFIX = 3
_MAX_ALTERNATIVES = 2


def format_path(path: DataPath) -> str:
    """Return a path in the notation of messages, for example `spec.overrideRules[2].overriders`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def split_list(text: str) -> tuple[str, ...]:
    """Return the entries of a text, which are separated by commas. Empty entries are omitted."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def suggest_name(name: str, known: Sequence[str]) -> str:
    """Return '; did you mean "NAME"?' for the most similar known name. Return "" if no name is similar.

    A name that differs only in upper and lower case is similar. A longer name that begins with `name` is similar too.
    """
    # Make no suggestion if there are very many names, because the comparison would be too slow.
    if len(known) > _MAX_COMPARED:
        return ""
    lower = name.lower()
    nearest = get_close_matches(name, known, 1) or [
        candidate
        for candidate in known
        if get_close_matches(lower, [candidate.lower()]) or (len(name) >= _MIN_PREFIX and candidate.startswith(lower))
    ]
    return f"; did you mean {quote_value(nearest[0])}?" if nearest else ""


def describe_value(value: object) -> str:
    """Describe a value of a wrong type: "a list" or "a mapping" if it has content, otherwise the value as JSON."""
    if isinstance(value, list | Mapping) and value:
        return "a list" if isinstance(value, list) else "a mapping"
    return quote_value(value)


def quote_value(value: object) -> str:
    """Return a value as compact JSON. Shorten long JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def describe_choice(values: Sequence[object]) -> str:
    """Return the allowed values for the end of "must be", e.g. `"a" or "b"`, or `one of "a", "b", "c"`."""
    quoted = [*map(quote_value, values)]
    return " or ".join(quoted) if len(quoted) <= _MAX_ALTERNATIVES else f"one of {format_list(quoted)}"


def quote_list(names: Iterable[str], joint: str = ", ") -> str:
    """Put each name in double quotes, and join the names as `format_list` does, e.g. `"a", "b", and 7 more`."""
    return format_list([*map(quote_value, names)], joint)


def format_list(names: Sequence[str], joint: str = ", ") -> str:
    """Join names into one text. Omit the last names if the list is too long, e.g. "a, b, and 7 more"."""
    more = f", and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return joint.join(names[:_MAX_LISTED]) + more
