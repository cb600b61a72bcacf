"""Objects as they are rendered: what each is now, who made it, and every step that led there (openchoreo 6, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.krm.yaml import Path
from reconciler.rules.composition.model import Instance
from reconciler.rules.composition.patching.apply import Write
from reconciler.rules.composition.patching.writers import Writers
from reconciler.rules.composition.text import Loop, Origin
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True, slots=True)
class Trail:
    """One thing that was done to an object: by which object, in which field of it, and what was written there.

    `write` is one change of a patch, None for the object as it was made. `parts` are what expressions made, by their
    path in what the template gave; `loop` is what it was done for each of.
    """

    one: ConfigObject
    instance: Instance | None
    path: Path
    write: Write | None = None
    parts: Mapping[Path, Origin] = field(default_factory=dict)
    loop: Loop | None = None


@dataclass(eq=False)
class Rendered:
    """One object of a component; `data` is changed while addons work on it, `original` is as it was made."""

    id: str
    data: dict[str, Any]
    writers: Writers
    by: Instance | None
    trails: list[Trail]
    original: dict[str, Any] = field(default_factory=dict)
    _key: ObjectKey | None = None

    def begin_change(self) -> None:
        """Say that `data` is going to change: what was made is remembered, and what it is called may be another."""
        self._key = None
        if not self.original:
            self.original = deepcopy(self.data)

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        if self._key is None:
            self._key = _key_of(self.data)
        return self._key


def _key_of(data: Mapping[str, Any]) -> ObjectKey:
    metadata = data.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    group, _ = split_api_version(str(data.get("apiVersion")))
    return ObjectKey(group, str(data.get("kind")), str(named.get("namespace", "")), str(named.get("name")))


def both_makers(one: Rendered, other: Rendered) -> str:
    """Return who made two objects that are one."""
    first, second = (f"{each.id} of {each.by or 'the definition'}" for each in (one, other))
    return f"{first}, and another round of it," if first == second else f"{first} and {second}"


def in_order(objects: list[Rendered]) -> Iterator[Rendered]:
    """Yield objects by kind, apiVersion, namespace and name (openchoreo 12.6)."""
    yield from sorted(objects, key=lambda one: (one.key.kind, one.data["apiVersion"], one.key.namespace, one.key.name))
