"""The key table: what people say about the lists of a kind, over every schema (kpt.md 9, D22)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.shapes import Shape

_ELEMENT = "[]"
_OTHERS = "*"
_KINDS = "a kind with its group (`apps/Deployment`; of the core group: `Service`) and a mapping of its lists"
_KEYS = "a list of different field names, [] for a set of scalars, or null for a list that is merged as a whole"


@dataclass(frozen=True)
class ListKeys:
    """The keys of one list of a kind, in any version; None keys make it atomic, () a set of scalars."""

    group: str
    kind: str
    steps: tuple[str, ...]
    """The way to the list: names of fields, `[]` for elements, `*` for the fields that have no shape of their own."""
    keys: tuple[str, ...] | None


def read_key_table(data: Any) -> tuple[tuple[ListKeys, ...], tuple[str, ...]]:
    """Return the lists that a key table names, and in words what is wrong with it.

    `{"example.org/Gateway": {"spec/listeners": ["name"], "spec/listeners[]/hosts": []}}`
    """
    if not isinstance(data, Mapping):
        return (), (f"must be a mapping: {_KINDS}; not {data!r}",)
    read = [row for kind, lists in data.items() for row in _read_kind(kind, lists)]
    return tuple(row for row in read if isinstance(row, ListKeys)), tuple(row for row in read if isinstance(row, str))


def overlay(shape: Shape, rows: Iterable[ListKeys]) -> Shape:
    """Return the shape with these lists in it."""
    for row in rows:
        shape = _placed(shape, row.steps, row.keys)
    return shape


def _read_kind(kind: Any, lists: Any) -> Iterator[ListKeys | str]:
    group, _, name = str(kind).rpartition("/")
    if not name or not isinstance(lists, Mapping):
        yield f"{kind}: must be {_KINDS}; not {lists!r}"
        return
    for path, keys in lists.items():
        steps = _steps(str(path))
        if not all(steps) or steps[-1:] == (_ELEMENT,):
            yield f'{kind}: the path must be fields joined by "/", with "[]" after a list that it enters; not "{path}"'
        elif not _are_keys(keys):
            yield f"{kind}: the keys of {path} must be {_KEYS}; not {keys!r}"
        else:
            yield ListKeys(group, name, steps, None if keys is None else tuple(keys))


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for part in path.split("/") for step in _parts(part))


def _parts(part: str) -> Iterator[str]:
    name = part
    while name.endswith(_ELEMENT):
        name = name.removesuffix(_ELEMENT)
    yield name
    yield from [_ELEMENT] * ((len(part) - len(name)) // len(_ELEMENT))


def _are_keys(keys: Any) -> bool:
    if not isinstance(keys, list | tuple):
        return keys is None
    return all(isinstance(key, str) and key for key in keys) and len(set(keys)) == len(keys)


def _placed(shape: Shape, steps: tuple[str, ...], keys: tuple[str, ...] | None) -> Shape:
    if not steps:
        # an atomic list is one whose keys nobody may infer
        return replace(shape, keys=keys, closed=shape.closed or keys is None)
    step, rest = steps[0], steps[1:]
    if step == _ELEMENT:
        return replace(shape, items=_placed(shape.element, rest, keys))
    if step == _OTHERS:
        return replace(shape, others=_placed(shape.child(_OTHERS), rest, keys))
    return replace(shape, fields={**shape.fields, step: _placed(shape.child(step), rest, keys)})
