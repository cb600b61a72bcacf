"""JSON pointers (RFC 6901): text and path are two spellings of one place in data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z", re.ASCII)
_BAD_ESCAPE = re.compile(r"~(?![01])")


class PointerError(ValueError):
    """A pointer that is not one, or that leads nowhere; the message quotes it."""


def parse_pointer(text: str) -> tuple[str, ...]:
    """Return the segments of a pointer, all of them text: whether "0" is an index only the data can tell.

    Raises PointerError when `text` is neither empty nor begins with /, or has a ~ that escapes nothing (RFC 6901, 3).
    """
    if text and not text.startswith("/"):
        raise PointerError(f'a JSON pointer must be empty or begin with /, not "{text}"')
    if _BAD_ESCAPE.search(text):
        raise PointerError(f'in a JSON pointer ~ must be followed by 0 or 1, not as in "{text}"')
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def format_pointer(path: Iterable[str | int]) -> str:
    """Return the pointer for a path; () is the whole document, ""."""
    return "".join("/" + str(segment).replace("~", "~0").replace("/", "~1") for segment in path)


def resolve(data: Any, path: Iterable[str | int]) -> Any:
    """Return the value at `path`; a segment for a list may be a number or its decimal text.

    Raises PointerError for a missing key, an index outside the list, "-", and a step into a scalar.
    """
    done: list[str | int] = []
    for segment in path:
        done.append(segment)
        data = _step(data, segment, done)
    return data


def _step(data: Any, segment: str | int, done: list[str | int]) -> Any:
    match data:
        case dict() if segment in data:
            return data[segment]
        case list() if _INDEX.match(str(segment)) and int(segment) < len(data):
            return data[int(segment)]
        case dict():
            raise PointerError(f"{format_pointer(done)} does not exist")
        case list():
            raise PointerError(f"{format_pointer(done)} is not one of the {len(data)} items of the list")
        case _:
            raise PointerError(f"{format_pointer(done)} does not exist: {format_pointer(done[:-1])} is a single value")
