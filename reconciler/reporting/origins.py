"""Origins: where a value of a package is from that no rule has set, as far as its source and its edits tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import PointerError, resolve
from reconciler.krm.yaml.same import same
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.outcome import Rendered
from reconciler.snapshot.files import FileTree

Kind = Literal["source", "edit", "draft", "render", "unknown"]
Pointer = tuple[str, ...]


@dataclass(frozen=True)
class Origin:
    """Where a value is from: its `source`, an `edit` of the cluster branch or of the `draft`, or the `render` itself.

    It is `unknown` where nothing in the source is the same resource.
    """

    path: Pointer
    kind: Kind


@dataclass(frozen=True)
class Origins:
    """The stages of a package on its way: as it came, with the edits of each branch, and as it is to be."""

    rendered: Rendered

    @cached_property
    def _stages(self) -> tuple[tuple[Kind, Package], ...]:
        source = self.rendered.source
        trees: tuple[tuple[Kind, FileTree], ...] = (
            ("source", source.base),
            ("edit", source.plain),
            ("draft", source.files),
        )
        return tuple((kind, Package(files)) for kind, files in trees)

    def of(self, resource: PackageResource, path: Pointer, ruled: Collection[Pointer] = ()) -> tuple[Origin, ...]:
        """Return where the values at and below a path are from; those that are `ruled` are told by others.

        What is all of one origin is told as one.
        """
        whole = [(kind, _same_resource(resource, package)) for kind, package in self._stages]
        return tuple(_origins(resource.data, [(kind, one.data) for kind, one in whole if one], path, ruled))


def value_of(data: Any, path: Pointer) -> Any:
    """Return the value at the segments of a pointer, or ABSENT."""
    try:
        return resolve(data, path)
    except PointerError:
        return ABSENT


def _same_resource(resource: PackageResource, package: Package) -> PackageResource | None:
    """Return the resource as it is elsewhere: of this identity, in this file where there are several.

    Without one it is the only one of its kind and name in this file, whose namespace was another then.
    """
    found = [one for one in package.resources if one.key == resource.key]
    if found:
        return next((one for one in found if one.file == resource.file), found[0])
    alike = [one for one in package.resources if _in_file(one) == _in_file(resource)]
    return alike[0] if len(alike) == 1 else None


def _in_file(one: PackageResource) -> tuple[str, str, str, str]:
    return one.file, one.group, one.kind, one.name


def _origins(data: Any, stages: list[tuple[Kind, Any]], path: Pointer, ruled: Collection[Pointer]) -> Iterator[Origin]:
    if any(path[: len(one)] == one for one in ruled):
        return
    value, kind = value_of(data, path), _kind(data, stages, path)
    is_whole = kind == "source" and not any(one[: len(path)] == path for one in ruled)
    inside = () if is_whole or kind == "unknown" else _inside(value, [value_of(one, path) for _, one in stages])
    for key in inside:
        yield from _origins(data, stages, (*path, key), ruled)
    if not inside:
        yield Origin(path, kind)


def _kind(data: Any, stages: list[tuple[Kind, Any]], path: Pointer) -> Kind:
    """Return the first stage from which on the value has stayed as it is."""
    if not stages:
        return "unknown"
    found: Kind = "render"
    for kind, stage in reversed(stages):
        before = value_of(stage, path)
        if before is ABSENT or not same(before, value_of(data, path)):
            break
        found = kind
    return found


def _inside(value: Any, stages: list[Any]) -> tuple[str, ...]:
    """Return the keys of what can be told apart inside of a value; of lists nothing can, once they differ in length."""
    if isinstance(value, dict):
        return tuple(value)
    if isinstance(value, list) and all(isinstance(one, list) and len(one) == len(value) for one in stages):
        return tuple(map(str, range(len(value))))
    return ()
