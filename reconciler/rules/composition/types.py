"""The component types of a config: the kind that each makes, and what became of it (openchoreo 2, 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.krm.findings import Finding, errors
from reconciler.krm.yaml import WIDE_STYLE, emit
from reconciler.rules.composition.bake import bake
from reconciler.rules.composition.codes import (
    COMPONENT_TYPE_INVALID,
    GENERATED_KIND_COLLISION,
    GENERATED_KIND_RESERVED,
)
from reconciler.rules.composition.compile_type import Compiled, compile_type
from reconciler.rules.composition.generated_files import DEFINITION_FILE, type_files
from reconciler.rules.composition.library import Library, named, twice
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.model import GROUP, KINDS, TYPE, ComponentType
from reconciler.rules.composition.names import generated_kind
from reconciler.rules.composition.read_type import read_type
from reconciler.rules.composition.surroundings import Surroundings
from reconciler.snapshot.catalog import Catalog, ConfigObject


@dataclass(frozen=True, eq=False)
class Type:
    """A component type, the kind that it makes, and what became of it; `read` is None where it cannot be read."""

    one: ConfigObject
    kind: str
    compiled: Compiled
    read: ComponentType | None = None

    @property
    def why_not(self) -> str:
        """Why it is not ready."""
        return "; ".join(one.message for one in errors(self.compiled.findings))


def read_types(catalog: Catalog, library: Library, around: Surroundings, memory: Memory) -> tuple[Type, ...]:
    """Return the types of a config in the order of their names, each compiled as far as it goes."""
    by_name = named(catalog, GROUP, TYPE)
    kinds: dict[str, list[ConfigObject]] = {}
    for name, objects in by_name.items():
        kinds.setdefault(generated_kind(name) or "", []).extend(objects)
    found = []
    for name, objects in by_name.items():
        kind = generated_kind(name) or ""
        same = twice(objects) if len(objects) > 1 else [None]
        # copies of one and the same object have one status
        for one, wrong in {each.key: (each, told) for each, told in zip(objects, same, strict=True)}.values():
            why = _kind_finding(one, kind, kinds[kind], around) or wrong
            found.append(_type(one, kind, why, library, around, memory))
    return tuple(found)


def _type(
    one: ConfigObject, kind: str, wrong: Finding | None, library: Library, around: Surroundings, memory: Memory
) -> Type:
    read, told = memory.read(read_type, one)
    if read is None or wrong:
        return Type(one, kind, Compiled(None, (*told, *([wrong] if wrong else ()))), read)
    compiled = memory.compiled(read, library, lambda: _compiled(read, kind, library, around))
    return Type(one, kind, replace(compiled, findings=(*told, *compiled.findings, *compiled.unbaked)), read)


def _compiled(read: ComponentType, kind: str, library: Library, around: Surroundings) -> Compiled:
    """Compile a type, with the files that it leaves, and the definition that its author asks for (openchoreo 13.3)."""
    compiled = compile_type(read, kind, library, around.limits)
    if compiled.plan is None:
        return compiled
    files = type_files(compiled.plan, around.crd_group)
    baked = bake(compiled.plan, read.bake, around.limits) if read.bake else ()
    if isinstance(baked, dict):
        return replace(compiled, files={**files, DEFINITION_FILE: emit(baked, WIDE_STYLE).encode()})
    return replace(compiled, files=files, unbaked=baked)


def _kind_finding(one: ConfigObject, kind: str, same: list[ConfigObject], around: Surroundings) -> Finding | None:
    where = one.where_at(("metadata", "name"))
    if not kind:
        message = f"metadata.name must make a kind, of letters and digits and at most 63 of them, not {one.key.name}"
        return COMPONENT_TYPE_INVALID.finding(message, where)
    if kind in KINDS or kind in around.reserved:
        message = f"metadata.name makes the kind {kind}, which has a meaning already: choose another name"
        return GENERATED_KIND_RESERVED.finding(message, where)
    if len({other.key.name for other in same}) > 1:
        names = " and ".join(sorted({str(other.key) for other in same}))
        return GENERATED_KIND_COLLISION.finding(f"{names} make one kind, {kind}: choose other names", where)
    return None


def by_kind(types: tuple[Type, ...]) -> Mapping[str, Type]:
    """Return types by the kind that they make; of several that would make one none is ready."""
    return {one.kind: one for one in types if one.kind}
