"""Comparison of rendered packages with the expected content, by resource and field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reconciler.adopt.differences import find_differences
from reconciler.adopt.resources import ResourceId, UnitContent, is_local_config, read_content
from reconciler.adopt.units import NotImported
from reconciler.catalog.files import FileTree
from reconciler.krm.json_pointer import format_pointer
from reconciler.packages.kptfile import KPTFILE

# The agent of a cluster writes the field `status`. Argo CD adds the annotation to each resource of an Application.
_IGNORED = (("status",), ("metadata", "annotations", "argocd.argoproj.io/tracking-id"))
Pointer = Sequence[str]


def compare_packages(
    expected: FileTree, rendered: FileTree, ignored: Sequence[Pointer], namespace: str = ""
) -> Sequence[str] | str:
    """Return the differences of two packages, or the reason why the packages cannot be compared.

    A difference is a resource with a JSON pointer, or a resource that is only in one of the packages.

    Args:
        ignored: Pointers of fields that are not compared. The segment `*` matches any key or index.
        namespace: The namespace of resources without a namespace, or "" if it is unknown.
    """
    contents = [read_content(files.without_files(KPTFILE)) for files in (expected, rendered)]
    for title, content in zip(("the expected content", "the rendered content"), contents, strict=True):
        if isinstance(content, NotImported):
            return f"{title} cannot be read: {content.file}: {content.reason}"
    pointers = (*_IGNORED, *ignored)
    first, second = (
        _normalize(content, pointers, namespace) for content in contents if isinstance(content, UnitContent)
    )
    return [*_compare(first, second)]


class _Normalized(NamedTuple):
    """A resource with its identity in the package, and with the data to compare."""

    name: ResourceId
    data: Any


def _normalize(content: UnitContent, ignored: Sequence[Pointer], namespace: str) -> Mapping[ResourceId, _Normalized]:
    """Return the resources without ignored fields, and without the namespace that they have by default."""
    resources: dict[ResourceId, _Normalized] = {}
    for name, resource in content.resources.items():
        if is_local_config(resource.data):
            continue
        data: Any = resource.data
        for pointer in ignored:
            data = _remove_field(data, pointer)
        key = name
        if namespace and name.namespace == namespace:
            key, data = name._replace(namespace=""), _remove_field(data, ("metadata", "namespace"))
        resources[key] = _Normalized(name, data)
    return resources


def _remove_field(data: Any, pointer: Pointer) -> Any:
    """Return data without a field, and without mappings that are empty after that."""
    if not pointer:
        return data
    step, *rest = pointer
    if isinstance(data, list):
        return [_remove_field(item, rest) if step in ("*", str(index)) else item for index, item in enumerate(data)]
    if not isinstance(data, Mapping):
        return data
    changed: dict[str, Any] = {}
    for key, value in data.items():
        if step not in ("*", key):
            changed[key] = value
        elif rest:
            inner = _remove_field(value, rest)
            if inner or not value:
                changed[key] = inner
    return changed


def _compare(expected: Mapping[ResourceId, _Normalized], rendered: Mapping[ResourceId, _Normalized]) -> Iterator[str]:
    for key in sorted({*expected, *rendered}):
        if key not in rendered:
            yield f"{expected[key].name} is missing in the render"
        elif key not in expected:
            yield f"{rendered[key].name} is only in the render"
        else:
            differences = find_differences(expected[key].data, rendered[key].data)
            yield from (f"{expected[key].name} {format_pointer(path)}" for path in differences)
