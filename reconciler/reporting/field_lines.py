"""Field lines: where in the config a field stands that a message or a status file names in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.snapshot.catalog import ConfigObject

_INDEX = re.compile(r"\[([0-9]+)\]")


class FieldLines:
    """Finds fields of objects by how provenance names both: `Kind/namespace/name`, and `spec.items[2].name`."""

    def __init__(self, objects: Iterable[ConfigObject]) -> None:
        self._by_name: dict[str, list[ConfigObject]] = {}
        for one in objects:
            key = one.key
            for name in {str(key), "/".join(part for part in (key.kind, key.namespace, key.name) if part)}:
                self._by_name.setdefault(name, []).append(one)

    def find(self, name: str, field: str, file: str = "") -> tuple[str, int]:
        """Return file and line of a field; no line where nobody knows which object is meant, or it has no such field.

        An earlier text of a rule, which is kept for some clusters, is such a field (design 10.23).
        """
        place = self.place(name, field, file)
        return line_of(place) if place else (file, 0)

    def place(self, name: str, field: str, file: str = "") -> tuple[ConfigObject, Path] | None:
        """Return the object of a field, and its path there; None where nobody knows it."""
        found = [one for one in self._by_name.get(name, ()) if file in ("", one.file)]
        path = path_of(found[0].data, field) if len(found) == 1 else None
        return None if path is None else (found[0], path)


def line_of(place: tuple[ConfigObject, Path]) -> tuple[str, int]:
    """Return file and line of a field of an object."""
    one, path = place
    return one.file, one.where_at(path).line


def path_of(data: Any, field: str) -> Path | None:
    """Return the path of a field in data; None when it is not there. Keys may hold whatever else parts steps."""
    if not field:
        return ()
    if isinstance(data, list):
        index = _INDEX.match(field)
        at = int(index[1]) if index else len(data)
        rest = path_of(data[at], field[len(index[0]) :].removeprefix(".")) if index and at < len(data) else None
        return None if rest is None else (at, *rest)
    return _path_of_key(data, field) if isinstance(data, dict) else None


def _path_of_key(data: dict[Any, Any], field: str) -> Path | None:
    keys = [key for key in data if isinstance(key, str) and key and field.startswith(key)]
    for key in sorted(keys, key=len, reverse=True):
        left = field[len(key) :]
        rest = path_of(data[key], left.removeprefix(".")) if left[:1] in ("", ".", "[") else None
        if rest is not None:
            return (key, *rest)
    return None
