"""Field specs, which select fields of resources by kind and path as in kustomize, and the scope of kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from reconciler.krm.schema import KindScope, find_kind_scope
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import FieldError, get_value_at
from reconciler.packages.functions.limits import MAX_LEVELS
from reconciler.packages.resource import KrmResource


def get_resource_scope(resource: KrmResource) -> KindScope | Literal["unknown"]:
    """Return whether the kind of a resource is `namespaced` or `cluster`. Return `unknown` for a custom resource."""
    return find_kind_scope(resource.group, resource.kind) or "unknown"


_STRING_FIELDS = ("path", "kind", "group", "version")


@dataclass(frozen=True)
class FieldSpec:
    r"""A selector of fields, such as `spec/template?/metadata/labels` or `subjects[]/namespace`.

    In a path, `name[]` selects every element of a list, and `name?` requires that the field exists. `\/` is a slash in
    a field name.

    Attributes:
        kind: The kind of the resources. "" matches every kind.
        group: The API group of the resources. None matches every group.
        version: The API version of the resources. "" matches every version.
        create: Whether to create missing mappings on the path. If false, only existing fields are selected.
    """

    path: str
    kind: str = ""
    group: str | None = None
    version: str = ""
    create: bool = False

    def matches(self, resource: KrmResource) -> bool:
        """Return whether the kind, group and version of the resource match this field spec."""
        return (
            self.kind in ("", resource.kind)
            and self.version in ("", resource.version)
            and self.group in (None, resource.group)
        )

    def find_paths(self, resource: KrmResource) -> Iterator[DataPath]:
        """Yield the paths of all selected fields of a resource, in the order of the document."""
        if self.matches(resource):
            yield from _expand_path(resource.data, self._split_segments(), (), self.create)

    def _split_segments(self) -> tuple[str, ...]:
        return tuple(part.replace("\0", "/") for part in self.path.replace("\\/", "\0").split("/"))


def create_field_specs(
    kinds: Iterable[tuple[str | None, str]], *paths: str, create: bool = True
) -> tuple[FieldSpec, ...]:
    """Return one field spec for each combination of a (group, kind) with a path."""
    return tuple(FieldSpec(path, kind, group, create=create) for group, kind in kinds for path in paths)


def read_field_specs(data: Any) -> tuple[FieldSpec, ...]:
    """Read field specs from the configuration of a function. Entries without a path are skipped.

    Raises:
        FieldError: A field of the configuration has the wrong type.
    """
    entries = _check_specs(data)
    return tuple(
        FieldSpec(
            path=str(entry["path"]),
            kind=str(entry.get("kind") or ""),
            group=entry.get("group") or None,
            version=str(entry.get("version") or ""),
            create=bool(entry.get("create")),
        )
        for entry in entries
        if entry.get("path")
    )


def _check_specs(data: Any) -> list[Mapping[str, Any]]:
    if data is None:
        return []
    if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
        raise FieldError(f"the configuration's field specs must be a list of mappings, not {repr(data)[:80]}")
    for number, entry in enumerate(data):
        wrong_field = next((name for name in _STRING_FIELDS if not isinstance(entry.get(name), str | None)), "")
        if wrong_field or not isinstance(entry.get("create"), bool | None):
            name, expected = (wrong_field, "a string") if wrong_field else ("create", "true or false")
            value = repr(entry[name])[:80]
            raise FieldError(f"the configuration's field spec {number} must have {expected} as {name}, not {value}")
        if (levels := str(entry.get("path") or "").count("/")) >= MAX_LEVELS:
            raise FieldError(
                f"the path of the configuration's field spec {number} must not have more than {MAX_LEVELS} parts, "
                f"not {levels + 1}"
            )
    return data


def _expand_path(root: Any, segments: tuple[str, ...], path: DataPath, create: bool) -> Iterator[DataPath]:
    if not segments:
        yield path
        return
    segment, remaining = segments[0], segments[1:]
    name = segment.removesuffix("[]").removesuffix("?")
    value = get_value_at(root, path)
    if isinstance(value, list):
        # Search all elements of a list even if the segment has no `[]`, as kustomize does.
        for index in range(len(value)):
            yield from _expand_path(root, segments, (*path, index), create)
    elif isinstance(value, dict) or (value is None and create and path):
        present = isinstance(value, dict) and value.get(name) is not None
        if segment.endswith("[]"):
            yield from _expand_elements(root, remaining, (*path, name), create) if present else ()
        elif present or (create and segment == name):
            yield from _expand_path(root, remaining, (*path, name), create)


def _expand_elements(root: Any, remaining: tuple[str, ...], path: DataPath, create: bool) -> Iterator[DataPath]:
    elements = get_value_at(root, path)
    for index in range(len(elements) if isinstance(elements, list) else 0):
        yield from _expand_path(root, remaining, (*path, index), create)
