"""Field specs as in kustomize, and the scope of resources: namespaced or cluster.

A field spec selects fields of resources by kind and path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from reconciler.api.functions import FieldSpecEntry
from reconciler.krm.schema import KindScope, find_kind_scope
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import FieldError, get_value_at
from reconciler.packages.functions.limits import MAX_LEVELS
from reconciler.packages.resource import KrmResource


def get_resource_scope(resource: KrmResource) -> KindScope | Literal["unknown"]:
    """Return whether the kind of a resource is `namespaced` or `cluster`. Return `unknown` for a custom resource."""
    return find_kind_scope(resource.group, resource.kind) or "unknown"


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
    """Return one field spec for each combination of a (group, kind) pair and a path."""
    return tuple(FieldSpec(path, kind, group, create=create) for group, kind in kinds for path in paths)


def convert_field_specs(entries: Sequence[FieldSpecEntry]) -> tuple[FieldSpec, ...]:
    """Return the field specs of a configuration. Entries without a path are skipped.

    Raises:
        FieldError: A path has too many parts.
    """
    for number, entry in enumerate(entries):
        if (levels := entry.path.count("/")) >= MAX_LEVELS:
            raise FieldError(
                f"the path of the configuration's field spec {number} must not have more than {MAX_LEVELS} parts, "
                f"but has {levels + 1}"
            )
    return tuple(
        FieldSpec(entry.path, entry.kind, entry.group or None, entry.version, create=entry.create)
        for entry in entries
        if entry.path
    )


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
