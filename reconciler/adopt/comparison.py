"""Comparison of rendered packages with the expected content, by resource and field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.adopt.differences import LeafPath, find_differences, format_path, matches_pointer
from reconciler.adopt.resources import Resource, ResourceId, UnitContent, is_local_config, read_content
from reconciler.adopt.units import NotImported
from reconciler.catalog.files import FileTree
from reconciler.packages.kptfile import KPTFILE

# The agent of a cluster writes the field `status`.
_IGNORED = (("status",),)


def compare_packages(expected: FileTree, rendered: FileTree, ignored: Sequence[Sequence[str]]) -> Sequence[str] | str:
    """Return the differences of two packages, or the reason why the packages cannot be compared.

    A difference is a resource with a JSON pointer, or a resource that is only in one of the packages.

    Args:
        ignored: Pointers of fields that are not compared. The segment `*` matches any key or index.
    """
    contents = [read_content(files.without_files(KPTFILE)) for files in (expected, rendered)]
    for title, content in zip(("the expected content", "the rendered content"), contents, strict=True):
        if isinstance(content, NotImported):
            return f"{title} cannot be read: {content.file}: {content.reason}"
    first, second = (_select_resources(content) for content in contents if isinstance(content, UnitContent))
    return [*_compare(first, second, (*_IGNORED, *ignored))]


def _select_resources(content: UnitContent) -> Mapping[ResourceId, Resource]:
    return {name: resource for name, resource in content.resources.items() if not is_local_config(resource.data)}


def _compare(
    expected: Mapping[ResourceId, Resource], rendered: Mapping[ResourceId, Resource], ignored: Sequence[Sequence[str]]
) -> Iterator[str]:
    for name in sorted({*expected, *rendered}):
        if name not in rendered:
            yield f"{name} is missing in the render"
        elif name not in expected:
            yield f"{name} is only in the render"
        else:
            yield from _compare_resource(name, expected[name].data, rendered[name].data, ignored)


def _compare_resource(name: ResourceId, first: Any, second: Any, ignored: Sequence[Sequence[str]]) -> Iterator[str]:
    paths: list[LeafPath] = [*find_differences(first, second)]
    for path in paths:
        if not any(matches_pointer(path, pattern) for pattern in ignored):
            yield f"{name} {format_path(path)}"
