"""Objects as they are rendered: what each is now, who made it, and every step that led there (openchoreo 6, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.krm.yaml import Path
from reconciler.rules.composition.model import Instance
from reconciler.rules.composition.patching.apply import Write
from reconciler.rules.composition.patching.writers import Writers
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True, slots=True)
class Trail:
    """One thing that was done to an object: by which object, in which field of it, and what was written there.

    `writes` is one change of a patch; None for the object as it was made, and then `parts` are the paths that
    expressions made, each with the field it was written in and its text.
    """

    one: ConfigObject
    instance: Instance | None
    path: Path
    write: Write | None = None
    parts: Mapping[Path, tuple[Path, str]] = field(default_factory=dict)


@dataclass(eq=False)
class Rendered:
    """One object of a component; `data` is changed while addons work on it."""

    id: str
    data: dict[str, Any]
    writers: Writers
    by: Instance | None
    trails: list[Trail]

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        metadata = self.data.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        group, _ = split_api_version(str(self.data.get("apiVersion")))
        return ObjectKey(group, str(self.data.get("kind")), str(named.get("namespace", "")), str(named.get("name")))


def in_order(objects: list[Rendered]) -> Iterator[Rendered]:
    """Yield objects by kind, apiVersion, namespace and name (openchoreo 12.6)."""
    yield from sorted(objects, key=lambda one: (one.key.kind, one.data["apiVersion"], one.key.namespace, one.key.name))
