"""JSON for files of ours: a value a line, keys sorted, so that Git shows what changed."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

_OTHERS = json.JSONEncoder(ensure_ascii=False)


def json_lines(data: Any) -> bytes:
    """Return `data` as UTF-8 JSON, each level a column further in; it ends in a newline.

    Raises TypeError for what is no JSON data, and for keys that are not strings.
    """
    # to the byte what json writes with indent=1 and sort_keys=True, where it leaves its fast encoder aside
    return f"{_text(data, chr(10))}\n".encode()


def _text(value: Any, start: str) -> str:
    """Return the text of a value; `start` is a line break and the blanks that the line of its end begins with."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, dict):
        return _mapping(value, start)
    if isinstance(value, list | tuple):
        return _list(value, start)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _OTHERS.encode(value) if not isinstance(value, int) else int.__repr__(value)


def _mapping(value: dict[str, Any], start: str) -> str:
    inner = start + " "
    # most values are texts, and a call for each would cost as much again
    entries = [
        f"{encode_basestring(key)}: {encode_basestring(one) if isinstance(one, str) else _text(one, inner)}"
        for key, one in sorted(value.items())
    ]
    return f"{{{inner}{f',{inner}'.join(entries)}{start}}}" if entries else "{}"


def _list(value: list[Any] | tuple[Any, ...], start: str) -> str:
    inner = start + " "
    return f"[{inner}{f',{inner}'.join([_text(one, inner) for one in value])}{start}]" if value else "[]"
