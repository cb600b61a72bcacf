"""Lookup of component definitions and addons by name, and findings about names that several objects have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.codes import CatalogCodes
from reconciler.controllers.components.definitions import Addon, ComponentDefinition
from reconciler.controllers.components.names import ADDON, DEFINITION, GROUP
from reconciler.krm.field_text import format_list, quote_list, quote_value, suggest_name
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, field

_Object = TypeVar("_Object")


@dataclass(frozen=True)
class NameIndex(Generic[_Object]):
    """Usable objects of one kind, by name. A name must be unique across namespaces.

    Attributes:
        by_name: Objects that are valid and have a unique name.
        unusable_reasons: Names of objects that are invalid or declared more than once, each with the reason.
    """

    kind: str
    by_name: Mapping[str, _Object]
    unusable_reasons: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def explain_absence(self, name: str) -> str:
        """Return the reason why `by_name` contains no object with this name."""
        if name in self.unusable_reasons:
            # Write the object without quotes, as an object key, so that its errors are found as the cause.
            return f"{self.kind} {name} {self.unusable_reasons[name]}"
        known = sorted({*self.by_name, *self.unusable_reasons})
        names = quote_list(known) or "none"
        return f"no {self.kind} has the name {quote_value(name)}; existing names: {names}{suggest_name(name, known)}"


def build_name_index(
    catalog: Catalog, group: str, kind: str, read: Callable[[ConfigObject], tuple[_Object | None, tuple[Finding, ...]]]
) -> NameIndex[_Object]:
    """Read all objects of a kind with the function `read`."""
    unusable: dict[str, str] = {}
    by_name: dict[str, _Object] = {}
    findings: list[Finding] = []
    for name, objects in group_by_name(catalog, group, kind).items():
        if len(objects) > 1:
            unusable[name] = "is declared more than once"
            findings += build_unreported_duplicate_findings(objects)
            continue
        model, object_findings = read(objects[0])
        findings += object_findings
        if model is None:
            unusable[name] = "is invalid; correct its errors first"
        else:
            by_name[name] = model
    return NameIndex(kind, by_name, unusable, tuple(findings))


@dataclass(frozen=True)
class DefinitionIndex:
    """All component definitions and addons of a config."""

    definitions: NameIndex[ComponentDefinition]
    addons: NameIndex[Addon]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about all component definitions and addons."""
        return (*self.definitions.findings, *self.addons.findings)

    def list_used(self, definition: str, addons: Iterable[str]) -> Iterator[object]:
        """Yield the component definition and the addons with these names, as parts of a cache key.

        If there is no usable object with a name, yield the reason. The reason lists all existing names. Therefore, the
        cache key changes when an object is added.
        """
        yield self.definitions.by_name.get(definition) or self.definitions.explain_absence(definition)
        for name in addons:
            yield self.addons.by_name.get(name) or self.addons.explain_absence(name)


def build_definition_index(
    catalog: Catalog,
    read_definition: Callable[[ConfigObject], tuple[ComponentDefinition | None, tuple[Finding, ...]]],
    read_addon: Callable[[ConfigObject], tuple[Addon | None, tuple[Finding, ...]]],
) -> DefinitionIndex:
    """Read all component definitions with `read_definition`, and all addons with `read_addon`."""
    return DefinitionIndex(
        build_name_index(catalog, GROUP, DEFINITION, read_definition),
        build_name_index(catalog, GROUP, ADDON, read_addon),
    )


def group_by_name(catalog: Catalog, group: str, kind: str) -> Mapping[str, list[ConfigObject]]:
    """Map each name to all objects of a kind with this name. The objects can be in different namespaces."""
    objects_by_name: dict[str, list[ConfigObject]] = {}
    for manifest in catalog.objects_of_kind(group, kind):
        objects_by_name.setdefault(manifest.key.name, []).append(manifest)
    for key, copies in catalog.copies.items():
        if (key.group, key.kind) == (group, kind):
            objects_by_name.setdefault(key.name, []).extend(copies)
    return {name: objects_by_name[name] for name in sorted(objects_by_name)}


def build_duplicate_findings(objects: Sequence[ConfigObject]) -> list[Finding]:
    """Return one error for each object in `objects`. All these objects must have the same name."""
    locations = format_list(
        [f"{manifest.key} at {manifest.file}:{manifest.document.line}" for manifest in objects], " and "
    )
    key = objects[0].key
    message = (
        f"{key.kind} {key.name} must be declared once across all namespaces, but is declared"
        f" {len(objects)} times: {locations}"
    )
    return [CatalogCodes.DUPLICATE_OBJECT.finding(message, manifest.location) for manifest in objects]


def build_unreported_duplicate_findings(objects: Sequence[ConfigObject]) -> list[Finding]:
    """Return one error for each of several objects that have the same name in different namespaces.

    Return no error for objects in the same namespace, because the catalog reports these duplicates.
    """
    return build_duplicate_findings(objects) if len({manifest.key for manifest in objects}) > 1 else []
