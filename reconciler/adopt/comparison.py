"""Comparison of rendered packages with the expected content, by resource and field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reconciler.adopt.differences import find_differences
from reconciler.adopt.resources import ResourceId, UnitContent, get_list_items, is_local_config, read_content, read_id
from reconciler.adopt.units import NotImported
from reconciler.catalog.files import FileTree
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.json_text import encode_canonical_json
from reconciler.packages.kptfile import KPTFILE

# Ignore these fields: controllers in the cluster write `status`, and Argo CD adds the annotation to each resource of an
# Application.
_IGNORED = (("status",), ("metadata", "annotations", "argocd.argoproj.io/tracking-id"))
Pointer = Sequence[str]


def compare_packages(
    expected: FileTree, rendered: FileTree, ignored: Sequence[Pointer], namespace: str = ""
) -> Sequence[str] | str:
    """Return the differences of two packages, or the reason why the packages cannot be compared.

    Each difference contains a resource and the JSON pointer of a different field, or reports that only one of the
    packages contains a document.

    Args:
        ignored: Pointers of fields that are not compared. The segment `*` matches any key or index.
        namespace: The namespace of resources without a namespace, or "" if it is unknown.
    """
    pointers = (*_IGNORED, *ignored)
    normalized: list[_Package] = []
    for title, files in (("the expected content", expected), ("the rendered content", rendered)):
        content = read_content(files.without_files(KPTFILE))
        if isinstance(content, NotImported):
            return f"{title} cannot be read: {content.file}: {content.reason}"
        package = _normalize(content, pointers, namespace)
        if isinstance(package, str):
            return f"{title} cannot be compared: {package}"
        normalized.append(package)
    first, second = normalized
    if not any((first.resources, first.others, second.resources, second.others)):
        return "neither the expected content nor the render contains a resource"
    return [*_compare(first, second)]


class _Resource(NamedTuple):
    """A resource with its identity in the package, and with the data to compare."""

    name: ResourceId
    data: Any


class _Package(NamedTuple):
    """A package without the parts that are not compared.

    Attributes:
        others: Documents without a name. Maps the canonical JSON of a document to the number of equal documents, and to
            the file of the last of them.
    """

    resources: Mapping[ResourceId, _Resource]
    others: Mapping[bytes, tuple[int, str]]


def _normalize(content: UnitContent, ignored: Sequence[Pointer], namespace: str) -> _Package | str:
    """Return the package without ignored fields, and without the namespace that resources have by default.

    If two resources have the same identity, return an error message instead. For example, one of the two resources can
    be an item of a `List` object.
    """
    resources: dict[ResourceId, _Resource] = {}
    others: dict[bytes, tuple[int, str]] = {}
    for name, path, document in _iterate_documents(content):
        if isinstance(document, Mapping) and is_local_config(document):
            continue
        data: Any = document
        for pointer in ignored:
            data = _remove_field(data, pointer)
        if name is None:
            text = encode_canonical_json(data)
            others[text] = (others.get(text, (0, ""))[0] + 1, path)
            continue
        key = name
        if namespace and name.namespace == namespace:
            key, data = name._replace(namespace=""), _remove_field(data, ("metadata", "namespace"))
        if key in resources:
            return f"{name} occurs twice, the second time in {path}"
        resources[key] = _Resource(name, data)
    return _Package(resources, others)


def _iterate_documents(content: UnitContent) -> Iterator[tuple[ResourceId | None, str, Any]]:
    """Yield the name, the file and the data of each resource. The items of a list are resources."""
    for name, resource in content.resources.items():
        yield name, resource.path, resource.data
    for path, data in content.others:
        items = get_list_items(data)
        if items is None:
            yield None, path, data
        else:
            yield from ((read_id(item), path, item) for item in items)


def _remove_field(data: Any, pointer: Pointer) -> Any:
    """Return data without a field, and without mappings that become empty."""
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


def _compare(expected: _Package, rendered: _Package) -> Iterator[str]:
    for key in sorted({*expected.resources, *rendered.resources}):
        first, second = expected.resources.get(key), rendered.resources.get(key)
        if first and second:
            differences = find_differences(first.data, second.data)
            yield from (f"{first.name} {format_pointer(path)}" for path in differences)
        elif first:
            yield f"{first.name} is missing in the render"
        elif second:
            yield f"{second.name} is only in the render"
    for text in sorted({*expected.others, *rendered.others}):
        (before, path), (after, other_path) = expected.others.get(text, (0, "")), rendered.others.get(text, (0, ""))
        if before != after:
            place = "missing in the render" if before > after else "only in the render"
            yield f"a document without a name in {path or other_path} is {place}"
