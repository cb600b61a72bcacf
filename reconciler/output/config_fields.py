"""Finds the file and line of a config field from the name of its object and its field path.

`ConfigFieldLocator` finds the fields that provenance and findings name. `VariantFieldLocator` finds the fields of a
PackageVariant, or the fields of the PackageVariantSet that created the PackageVariant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.results import PackageOwner
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath

_INDEX = re.compile(r"\[([0-9]+)\]")

FieldLocation = tuple[ConfigObject, DataPath]
_FindPath = Callable[[Any], DataPath | None]


class ConfigFieldLocator:
    """Finds fields of config objects by object name (`Kind/namespace/name`) and field path (`spec.items[2].name`)."""

    def __init__(self, objects: Iterable[ConfigObject]) -> None:
        self._by_name: dict[str, list[ConfigObject]] = {}
        for manifest in objects:
            key = manifest.key
            for name in {key.reference, "/".join(part for part in (key.kind, key.namespace, key.name) if part)}:
                self._by_name.setdefault(name, []).append(manifest)

    def find_line(self, name: str, field: str, file: str = "") -> tuple[str, int]:
        """Return the file and line of a field. The line is 0 if the object has no such field or several objects match.

        The object can have no such field in this config if clusters still use an older version of the object.
        """
        location = self.find_field(name, field, file)
        return get_line(location) if location else (file, 0)

    def find_field(self, name: str, field: str, file: str = "") -> FieldLocation | None:
        """Return the object and data path of a field. Return None if no field or several fields match."""
        candidates = [manifest for manifest in self._by_name.get(name, ()) if file in ("", manifest.file)]
        path = parse_field_path(candidates[0].data, field) if len(candidates) == 1 else None
        return None if path is None else (candidates[0], path)


def get_line(location: FieldLocation) -> tuple[str, int]:
    """Return file and line of a field."""
    manifest, path = location
    return manifest.file, manifest.location_of(path).line


def parse_field_path(data: Any, field: str) -> DataPath | None:
    """Return the data path of a field such as `spec.items[2].name`. Return None if the data has no such field.

    The data is required to split the path, because keys can contain "." and "[".
    """
    if not field:
        return ()
    if isinstance(data, list):
        match = _INDEX.match(field)
        index = int(match[1]) if match else len(data)
        if match is None or index >= len(data):
            return None
        rest = parse_field_path(data[index], field[len(match[0]) :].removeprefix("."))
        return None if rest is None else (index, *rest)
    return _parse_key(data, field) if isinstance(data, dict) else None


def _parse_key(data: dict[Any, Any], field: str) -> DataPath | None:
    keys = [key for key in data if isinstance(key, str) and key and field.startswith(key)]
    for key in sorted(keys, key=len, reverse=True):
        remainder = field[len(key) :]
        is_complete_key = remainder[:1] in ("", ".", "[")
        rest = parse_field_path(data[key], remainder.removeprefix(".")) if is_complete_key else None
        if rest is not None:
            return (key, *rest)
    return None


class VariantFieldLocator:
    """Finds the config fields from which a package variant gets its package context and its functions.

    The fields belong to the owner of the variant, or to the PackageVariantSet that created the owner.
    """

    def __init__(self, objects: Mapping[ObjectKey, ConfigObject], owner: PackageOwner) -> None:
        self._specs = tuple(_find_specs(objects, owner))

    def find_context(self, name: str) -> FieldLocation | None:
        """Return the field that sets a key of the package context.

        If no field sets the key, return the field that removes the key. If there is no such field, return None.
        """
        return self._find_first(lambda spec: _find_context_key(spec, name)) or self._find_first(
            lambda spec: _find_removed_key(spec, name)
        )

    def find_function(self, stage: str, number: int) -> FieldLocation | None:
        """Return the config field of a function that the owner adds to the pipeline. Return None if there is none.

        Args:
            stage: `mutators` or `validators`.
            number: The index of the function in this list of the owner.
        """
        return self._find_first(lambda spec: _find_existing(spec, ("pipeline", stage, number)))

    def _find_first(self, find_path: _FindPath) -> FieldLocation | None:
        for manifest, spec_path in self._specs:
            if path := find_path(get_value(manifest.data, spec_path)):
                return manifest, (*spec_path, *path)
        return None


def _find_specs(objects: Mapping[ObjectKey, ConfigObject], owner: PackageOwner) -> Iterator[FieldLocation]:
    """Yield the spec of the owner. If a set created the owner, yield the target templates of the set instead."""
    if manifest := objects.get(owner.key):
        yield manifest, ("spec",)
    elif owner.parent and (parent := objects.get(owner.parent)):
        yield from ((parent, ("spec", "targets", number, "template")) for number in owner.target_indexes)


def _find_existing(spec: Any, path: DataPath) -> DataPath | None:
    return path if get_value(spec, path) is not ABSENT else None


def _find_context_key(spec: Any, name: str) -> DataPath | None:
    """Return the path of the entry of `packageContext` that sets a key. Return None if there is no such entry.

    Expressions have precedence over the field `data`, and later expressions over earlier expressions.

    The function does not evaluate `keyExpr`. Therefore, it assumes that each expression with a `keyExpr` may set the
    key. Return None if several entries may have the highest precedence.
    """
    context = get_value(spec, ("packageContext",))
    value = get_value(context, ("dataExprs",))
    entries = value if isinstance(value, list) else [] if value is ABSENT else [value]
    paths: list[DataPath] = [("packageContext", "dataExprs", number) for number in range(len(entries))]
    matching = [number for number, entry in enumerate(entries) if get_value(entry, ("key",)) == name]
    computed = [number for number, entry in enumerate(entries) if get_value(entry, ("keyExpr",)) is not ABSENT]
    has_plain_value = get_value(context, ("data", name)) is not ABSENT
    if matching:
        return None if any(number > matching[-1] for number in computed) else paths[matching[-1]]
    if computed:
        return None if has_plain_value or len(computed) > 1 else paths[computed[0]]
    return ("packageContext", "data", name) if has_plain_value else None


def _find_removed_key(spec: Any, name: str) -> DataPath | None:
    keys = get_value(spec, ("packageContext", "removeKeys"))
    numbers = [number for number, key in enumerate(keys) if key == name] if isinstance(keys, list) else []
    return ("packageContext", "removeKeys", numbers[0]) if numbers else None
