"""Variants of a document, in each of which one value has an unexpected type, encoding, size or depth."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from typing import Any


def _nest(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3.5, 10**400, -(10**400), math.inf, math.nan, "", "é", "\ud800", "\0", "a" * 5_000, [], [[]], [None], {},
    {"a": 1}, [{"a": []}], _nest(300), "sha256:" + "0" * 64, "2001-02-03T00:00:00+99:99", "https://[::1", "../..", ">>1",
)  # fmt: skip
_KEYS = ("\ud800", "", "é")


def iterate_malformed(document: Any) -> Iterator[Any]:
    """Yield variants of a document: one value is replaced or removed, or a mapping has another key."""
    for path in _iterate_paths(document, ()):
        for value in _VALUES:
            yield _change(document, path, value)
        yield _change(document, path, None, is_removed=True)
        for key in _KEYS:
            yield _change(document, (*path, key), 1)


def iterate_json(document: Any) -> Iterator[bytes]:
    """Yield the variants of a document as JSON. A lone surrogate is an escape sequence."""
    for variant in iterate_malformed(document):
        yield json.dumps(variant).encode()


def iterate_yaml(document: Any) -> Iterator[bytes]:
    """Yield the variants of a document as YAML, which contains JSON."""
    for text in iterate_json(document):
        yield text.replace(b"Infinity", b".inf").replace(b"NaN", b".nan")


def _iterate_paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _iterate_paths(item, (*path, key))


def _change(document: Any, path: tuple[Any, ...], value: Any, *, is_removed: bool = False) -> Any:
    """Return a copy with another value at a path. A path below a value that is no mapping changes nothing."""
    if not path:
        return value
    changed = parent = deepcopy(document)
    for step in path[:-1]:
        parent = parent[step]
    if is_removed:
        del parent[path[-1]]
    elif isinstance(parent, dict) or isinstance(path[-1], int):
        parent[path[-1]] = value
    return changed
