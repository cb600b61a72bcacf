"""Field specs: which fields of which kinds a transformer sets (kustomize's notation)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.packages.functions.function import FieldError, value_at
from reconciler.packages.functions.limits import MAX_LEVELS
from reconciler.packages.resource import Described

_TEXTS = ("path", "kind", "group", "version")


@dataclass(frozen=True)
class FieldSpec:
    """A path like `spec/template?/metadata/labels` or `subjects[]/namespace` on some kinds; empty parts match all.

    `name[]` goes into every element, `name?` needs the field to be there. With `create` what is missing is made,
    without it the last field must exist. `\\/` stands for a slash in a name.
    """

    path: str
    kind: str = ""
    group: str | None = None
    version: str = ""
    create: bool = False

    def applies(self, resource: Described) -> bool:
        """Tell whether the resource is of these kinds; a group of None matches every group."""
        return (
            self.kind in ("", resource.kind)
            and self.version in ("", resource.version)
            and self.group in (None, resource.group)
        )

    def targets(self, resource: Described) -> Iterator[Path]:
        """Yield the concrete paths in a resource of these kinds, in document order."""
        if self.applies(resource):
            yield from _expand(resource.data, self._segments(), (), self.create)

    def _segments(self) -> tuple[str, ...]:
        return tuple(part.replace("\0", "/") for part in self.path.replace("\\/", "\0").split("/"))


def specs(kinds: Iterable[tuple[str | None, str]], *paths: str, create: bool = True) -> tuple[FieldSpec, ...]:
    """Return one spec for each of (group, kind) and each path."""
    return tuple(FieldSpec(path, kind, group, create=create) for group, kind in kinds for path in paths)


def read_field_specs(data: Any) -> tuple[FieldSpec, ...]:
    """Return the field specs that a function's configuration adds; entries without a path are left out.

    Raises FieldError for wrong types.
    """
    entries = _checked_specs(data)
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


def _checked_specs(data: Any) -> list[Mapping[str, Any]]:
    if data is None:
        return []
    if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
        raise FieldError(f"the configuration's field specs must be a list of mappings, not {repr(data)[:80]}")
    for number, entry in enumerate(data):
        wrong = next((name for name in _TEXTS if not isinstance(entry.get(name), str | None)), "")
        if wrong or not isinstance(entry.get("create"), bool | None):
            name, wanted = (wrong, "a string") if wrong else ("create", "true or false")
            found = repr(entry[name])[:80]
            raise FieldError(f"the configuration's field spec {number} must have {wanted} as {name}, not {found}")
        if (levels := str(entry.get("path") or "").count("/")) >= MAX_LEVELS:
            raise FieldError(
                f"the configuration's field spec {number} must not have more than {MAX_LEVELS} parts, not {levels + 1}"
            )
    return data


def _expand(root: Any, segments: tuple[str, ...], done: Path, create: bool) -> Iterator[Path]:
    if not segments:
        yield done
        return
    segment, rest = segments[0], segments[1:]
    name = segment.removesuffix("[]").removesuffix("?")
    here = value_at(root, done)
    if isinstance(here, list):
        # kustomize walks into sequences without being told
        for index in range(len(here)):
            yield from _expand(root, segments, (*done, index), create)
    elif isinstance(here, dict) or (here is None and create and done):
        present = isinstance(here, dict) and here.get(name) is not None
        if segment.endswith("[]"):
            yield from _elements(root, rest, (*done, name), create) if present else ()
        elif present or (create and segment == name):
            yield from _expand(root, rest, (*done, name), create)


def _elements(root: Any, rest: tuple[str, ...], done: Path, create: bool) -> Iterator[Path]:
    elements = value_at(root, done)
    for index in range(len(elements) if isinstance(elements, list) else 0):
        yield from _expand(root, rest, (*done, index), create)
