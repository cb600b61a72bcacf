"""All texts in the fields of an object, including fields that `repr` omits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def collect_texts(*roots: object) -> Iterator[str]:
    """Yield each text that these objects contain, in any field, key or item at any depth."""
    pending, found = list(roots), set()
    while pending:
        item = pending.pop()
        if isinstance(item, str | bytes):
            yield item if isinstance(item, str) else item.decode(errors="replace")
            continue
        if id(item) in found or isinstance(item, type):
            continue
        found.add(id(item))
        if isinstance(item, Mapping):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, Iterable):
            pending += list(item)
        pending += vars(item).values() if hasattr(item, "__dict__") else ()
        pending += [getattr(item, name) for name in getattr(type(item), "__slots__", ()) if hasattr(item, name)]
