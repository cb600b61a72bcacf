"""JSON pointers (RFC 6901): parse a pointer, format a pointer, and find the value that a pointer identifies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z", re.ASCII)
_INVALID_ESCAPE = re.compile(r"~(?![01])")


class PointerError(ValueError):
    """An invalid JSON pointer, or a pointer to a value that does not exist. The message contains the pointer."""


def parse_pointer(text: str) -> tuple[str, ...]:
    """Split a JSON pointer into unescaped segments, e.g. "/a~1b/0" -> ("a/b", "0").

    A list index stays a string, because the pointer alone does not show whether "0" is an index or a key.

    Raises:
        PointerError: `text` is not empty and does not begin with "/", or "~" is not followed by 0 or 1.
    """
    if text and not text.startswith("/"):
        raise PointerError(f'a JSON pointer must be empty or begin with "/", but is "{text}"')
    if _INVALID_ESCAPE.search(text):
        raise PointerError(f'"{text}" is not a JSON pointer, because 0 or 1 must follow each "~"')
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def format_pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer for a path, e.g. ("a/b", 0) -> "/a~1b/0". The pointer to the whole document is ""."""
    return "".join("/" + str(segment).replace("~", "~0").replace("/", "~1") for segment in path)


def iterate_leaves(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the path and the value of each scalar and each empty collection, in the order of the data."""
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from iterate_leaves(value, (*path, key))
    elif isinstance(data, list) and data:
        for index, value in enumerate(data):
            yield from iterate_leaves(value, (*path, index))
    else:
        yield path, data


def resolve_pointer(data: Any, path: Iterable[str | int]) -> Any:
    """Return the value at `path`. The segment for a list element is an integer or its decimal text, e.g. 0 or "0".

    Raises:
        PointerError: A key does not exist, an index is invalid or out of range, or the path continues below a scalar.
    """
    visited: list[str | int] = []
    for segment in path:
        visited.append(segment)
        data = _resolve_segment(data, segment, visited)
    return data


def _resolve_segment(data: Any, segment: str | int, visited: list[str | int]) -> Any:
    match data:
        case dict() if segment in data:
            return data[segment]
        case list() if _INDEX.match(str(segment)) and int(segment) < len(data):
            return data[int(segment)]
        case dict():
            raise PointerError(f"{format_pointer(visited)} does not exist")
        case list():
            raise PointerError(
                f"{format_pointer(visited)} does not exist, because the length of the list is {len(data)}"
            )
        case _:
            raise PointerError(
                f"{format_pointer(visited)} does not exist: {format_pointer(visited[:-1])} is neither a "
                "mapping nor a list"
            )
