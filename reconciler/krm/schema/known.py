"""Shapes by kind: what is known of the kinds that a merge may meet (kpt.md 7.4, 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.identity import split_api_version
from reconciler.krm.schema.crds import crd_shapes
from reconciler.krm.schema.table import ListKeys, overlay
from reconciler.krm.shapes import UNKNOWN, Shape

# every object has the same metadata; of this one we know nothing else
_PLAIN_OBJECT = ("v1", "ConfigMap")


@dataclass(frozen=True)
class Shapes:
    """The shapes of resources by apiVersion and kind; immutable."""

    known: Mapping[tuple[str, str], Shape] = field(default_factory=dict)
    table: tuple[ListKeys, ...] = ()
    _overlaid: dict[tuple[str, str], Shape] = field(default_factory=dict, init=False, compare=False, repr=False)

    def of(self, api_version: str, kind: str) -> Shape:
        """Return the shape of a kind's resources, UNKNOWN where nothing says."""
        wanted = (api_version, kind)
        if not self.table:
            return self.known.get(wanted, UNKNOWN)
        if wanted not in self._overlaid:
            self._overlaid[wanted] = self._overlay(api_version, kind)
        return self._overlaid[wanted]

    def _overlay(self, api_version: str, kind: str) -> Shape:
        of_kind = (split_api_version(api_version)[0], kind)
        rows = (row for row in self.table if (row.group, row.kind) == of_kind)
        return overlay(self.known.get((api_version, kind), UNKNOWN), rows)

    def with_crds(self, *crds: Mapping[str, Any], compat: bool = False) -> Shapes:
        """Return these shapes and those of CustomResourceDefinitions; what is known already stays (D19).

        In `compat` only Kubernetes' patch extensions count; else also list types (D22), and the metadata of custom
        resources is that of all objects. Documents of other kinds, and schemas that are none, say nothing.
        """
        metadata = None if compat else self.known.get(_PLAIN_OBJECT, UNKNOWN).child("metadata")
        known = dict(self.known)
        for crd in crds:
            for kind, shape in crd_shapes(crd, metadata):
                known.setdefault(kind, shape)
        return Shapes(known, self.table)

    def with_table(self, table: Iterable[ListKeys]) -> Shapes:
        """Return these shapes and what people say of lists, which overrules every schema (D22); the last word wins."""
        return Shapes(self.known, (*self.table, *table))
