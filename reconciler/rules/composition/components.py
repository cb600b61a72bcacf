"""Which components there are: objects of the kinds that types make, and of kind Component (openchoreo 1.4, 12.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.krm.findings import Finding, errors
from reconciler.rules.composition.codes import COMPONENT_NAME_CONFLICT, COMPONENT_TYPE_NOT_FOUND
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.model import COMPONENT, GROUP, KINDS, Component
from reconciler.rules.composition.read_component import read_component
from reconciler.rules.fields import listed, meant
from reconciler.snapshot.catalog import Catalog, ConfigObject

Name = tuple[str, str]
"""Namespace and name, by which a component is known whatever its kind (design 10.22)."""


@dataclass(frozen=True)
class Components:
    """The components of a config by name.

    `unusable` are the names of which something is there that cannot be read, or more than one thing; `typeless` the
    objects of this group of kinds that nothing makes. `refused` are all of these, each with what is wrong.
    """

    found: Mapping[Name, Component] = field(default_factory=dict)
    unusable: Mapping[Name, str] = field(default_factory=dict)
    typeless: Mapping[Name, ConfigObject] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    refused: Sequence[tuple[ConfigObject, Finding]] = ()

    @cached_property
    def by_namespace(self) -> Mapping[str, Collection[str]]:
        """The names of all components, readable or not, by their namespace."""
        names: dict[str, set[str]] = {}
        for where, name in (*self.found, *self.unusable):
            names.setdefault(where, set()).add(name)
        return names


def read_components(catalog: Catalog, kinds: Collection[str], memory: Memory) -> Components:
    """Return the components of a config; `kinds` are all that component types make, or would make."""
    named: dict[Name, list[ConfigObject]] = {}
    for kind in sorted({*kinds, COMPONENT}):
        for one in catalog.of_kind(GROUP, kind):
            named.setdefault((one.key.namespace, one.key.name), []).append(one)
    twice = [key for key in catalog.duplicates if key.group == GROUP and key.kind in {*kinds, COMPONENT}]
    unusable = {(key.namespace, key.name): f"{key} is there more than once" for key in sorted(twice)}
    found: dict[Name, Component] = {}
    findings: list[Finding] = []
    refused: list[tuple[ConfigObject, Finding]] = []
    for name, objects in sorted(named.items()):
        if len(objects) > 1:
            unusable[name] = f"the name is that of {listed([str(one.key) for one in objects], ' and of ')}"
            refused += (
                (one, COMPONENT_NAME_CONFLICT.finding(f"{one.key}: {unusable[name]}", one.where)) for one in objects
            )
            continue
        component, told = memory.read(read_component, objects[0])
        if component is None:
            unusable[name] = f"{objects[0].key} cannot be read"
            refused.append((objects[0], errors(told)[0]))
            findings += (one for one in told if one is not refused[-1][1])
        elif name not in unusable:
            found[name] = component
    typeless = _typeless(catalog, kinds)
    hints = {kind: _makers(kind, kinds) for kind in {one.key.kind for one in typeless.values()}}
    refused += ((one, _unknown_kind(one, hints[one.key.kind])) for one in typeless.values())
    return Components(found, unusable, typeless, (*findings, *(why for _, why in refused)), refused)


def _typeless(catalog: Catalog, kinds: Collection[str]) -> Mapping[Name, ConfigObject]:
    others = (one for one in catalog.objects.values() if one.key.group == GROUP)
    unknown = (one for one in others if one.key.kind not in KINDS and one.key.kind not in kinds)
    return {(one.key.namespace, one.key.name): one for one in unknown}


def _makers(kind: str, kinds: Collection[str]) -> str:
    known = sorted(kinds)
    return f"there are {listed(known) or 'none'}{meant(kind, known)}"


def _unknown_kind(one: ConfigObject, hint: str) -> Finding:
    message = f"{one.key} is of a kind that no component type makes; {hint}"
    return COMPONENT_TYPE_NOT_FOUND.finding(message, one.where_at(("kind",)))
