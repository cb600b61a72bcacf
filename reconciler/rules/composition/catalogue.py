"""Definitions and addons, with their templates compiled: what components are made of (openchoreo 1.1, 1.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reconciler.krm.digest import digest
from reconciler.krm.yaml import Path
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.model import Side
from reconciler.rules.composition.order import Wishes
from reconciler.rules.composition.patching.operations import OperationTemplate
from reconciler.rules.composition.patching.targets import Target
from reconciler.rules.composition.schema import ComponentSchema
from reconciler.rules.composition.text import CompiledRule, Condition, Loop, Template
from reconciler.snapshot.catalog import ConfigObject

SIDES: Final[Mapping[str, frozenset[Side]]] = {
    "platform-engineer": frozenset({"platform"}),
    "developer": frozenset({"developer"}),
    "both": frozenset({"platform", "developer"}),
}
"""What the label allowedFor may say, and which sides may use an addon then; the first is what none says."""


@dataclass(frozen=True, eq=False)
class ObjectTemplate:
    """An entry of `resources` or `creates`: the objects that it makes share its id; "" where it has none."""

    id: str
    include: Condition
    loop: Loop
    template: Template
    data: Mapping[str, Any]
    path: Path

    @property
    def faults(self) -> Iterator[Fault]:
        """What is wrong with it as it stands."""
        yield from (*self.include.faults, *self.loop.faults, *self.template.faults)

    @property
    def names(self) -> frozenset[str]:
        """The variables that it uses."""
        return self.include.names | self.loop.names | self.template.names


@dataclass(frozen=True, eq=False)
class PatchedPlace:
    """One operation of a patch: its path and its value may be templates."""

    operation: OperationTemplate
    path: Template | None
    value: Template | None

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that it uses."""
        return frozenset().union(*(one.names for one in (self.path, self.value) if one))


@dataclass(frozen=True, eq=False)
class Patch:
    """An entry of `patches`; `skips`: what is not there is passed over (onMissing)."""

    condition: Condition
    loop: Loop
    target: Template
    places: tuple[PatchedPlace, ...]
    skips: bool
    path: Path

    @property
    def faults(self) -> Iterator[Fault]:
        """What is wrong with it as it stands."""
        yield from (*self.condition.faults, *self.loop.faults, *self.target.faults)
        for place in self.places:
            yield from (fault for one in (place.path, place.value) if one for fault in one.faults)

    @property
    def names(self) -> frozenset[str]:
        """The variables that it uses."""
        places = (place.names for place in self.places)
        return frozenset().union(self.condition.names, self.loop.names, self.target.names, *places)


@dataclass(frozen=True)
class Relation:
    """Another addon that an addon names, the place where it does, and why."""

    addon: str
    path: Path
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Definition:
    """A component definition that can be used."""

    one: ConfigObject
    version: str
    schema: ComponentSchema
    resources: tuple[ObjectTemplate, ...]


@dataclass(frozen=True, eq=False)
class Addon:
    """An addon that can be used."""

    one: ConfigObject
    version: str
    description: str
    sides: frozenset[Side]
    schema: ComponentSchema
    condition: Condition
    targets: tuple[Target, ...]
    creates: tuple[ObjectTemplate, ...]
    patches: tuple[Patch, ...]
    requires: tuple[Relation, ...]
    conflicts: tuple[Relation, ...]
    after: tuple[Relation, ...]
    before: tuple[Relation, ...]
    rules: tuple[CompiledRule, ...]

    @property
    def name(self) -> str:
        """Its name, by which it is found: catalogues have no namespaces."""
        return self.one.key.name

    @cached_property
    def wishes(self) -> Wishes:
        """What it declares of its place among others."""
        relations = (self.requires, self.after, self.before)
        return Wishes(*(tuple(relation.addon for relation in listed) for listed in relations))

    @property
    def digest(self) -> str:
        """What it says, as a digest (openchoreo 11.9)."""
        return digest({"spec": self.one.data["spec"], "version": self.version})

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that it uses."""
        parts: tuple[ObjectTemplate | Patch | CompiledRule, ...] = (*self.creates, *self.patches, *self.rules)
        return self.condition.names.union(*(one.names for one in parts))
