"""The catalogue: definitions and addons by name, in whatever namespace they are written (openchoreo 1, 10.32)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconciler.krm.findings import Finding
from reconciler.rules.composition.catalogue import Addon, Definition
from reconciler.rules.composition.model import ADDON, DEFINITION, GROUP
from reconciler.rules.fields import listed
from reconciler.snapshot.catalog import Catalog, ConfigObject
from reconciler.snapshot.codes import DUPLICATE_OBJECT

Read = TypeVar("Read")


@dataclass(frozen=True)
class Shelf(Generic[Read]):
    """The objects of one kind that can be used, by name; `unusable` says of the others why not."""

    kind: str
    found: Mapping[str, Read]
    unusable: Mapping[str, str]

    def why_not(self, name: str) -> str:
        """Return why there is none of a name that can be used."""
        if name in self.unusable:
            return f"{self.kind} {name} {self.unusable[name]}"
        return f"there is no {self.kind} {name}; there are {listed(sorted({*self.found, *self.unusable})) or 'none'}"


@dataclass(frozen=True)
class Library:
    """All that types and components are made of."""

    definitions: Shelf[Definition]
    addons: Shelf[Addon]
    findings: tuple[Finding, ...] = ()


def read_library(
    catalog: Catalog,
    definition: Callable[[ConfigObject], tuple[Definition | None, tuple[Finding, ...]]],
    addon: Callable[[ConfigObject], tuple[Addon | None, tuple[Finding, ...]]],
) -> Library:
    """Return the catalogue as far as it can be read by these readers."""
    findings: list[Finding] = []
    return Library(
        _shelf(catalog, DEFINITION, definition, findings), _shelf(catalog, ADDON, addon, findings), tuple(findings)
    )


def _shelf(
    catalog: Catalog,
    kind: str,
    read: Callable[[ConfigObject], tuple[Read | None, tuple[Finding, ...]]],
    findings: list[Finding],
) -> Shelf[Read]:
    unusable: dict[str, str] = {}
    found: dict[str, Read] = {}
    for name, objects in named(catalog, GROUP, kind).items():
        if len(objects) > 1:
            unusable[name] = "is there more than once"
            findings += untold(objects)
            continue
        one, told = read(objects[0])
        findings += told
        if one is None:
            unusable[name] = "cannot be used"
        else:
            found[name] = one
    return Shelf(kind, found, unusable)


def named(catalog: Catalog, group: str, kind: str) -> Mapping[str, list[ConfigObject]]:
    """Return the objects of a kind that is found by name alone, in whichever namespaces they are written."""
    found: dict[str, list[ConfigObject]] = {}
    for one in catalog.of_kind(group, kind):
        found.setdefault(one.key.name, []).append(one)
    for key, copies in catalog.copies.items():
        if (key.group, key.kind) == (group, kind):
            found.setdefault(key.name, []).extend(copies)
    return {name: found[name] for name in sorted(found)}


def twice(objects: Sequence[ConfigObject]) -> list[Finding]:
    """Return what is said of objects that have one name, and may not (design 10.2)."""
    places = listed([f"{one.key} at {one.file}:{one.document.line}" for one in objects], " and ")
    message = f"{objects[0].key.kind} {objects[0].key.name} must be there once, in whatever namespace, and is {places}"
    return [DUPLICATE_OBJECT.finding(message, one.where) for one in objects]


def untold(objects: Sequence[ConfigObject]) -> list[Finding]:
    """Return what is still to be said of them: where even the namespace is one, the catalog has told already."""
    return twice(objects) if len({one.key for one in objects}) > 1 else []
