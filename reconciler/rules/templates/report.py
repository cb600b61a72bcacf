"""What a template comes to, as values that status files, plans and summaries show (strimzi 6, 8, 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.rules.templates.model import Remark


@dataclass(frozen=True)
class ObjectEffect:
    """One or more objects that an operator makes alike: their names, and what templates and the operator give them."""

    kind: str
    names: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Return it as status files write it; what is empty is left out."""
        parts = {"labels": dict(self.labels), "annotations": dict(self.annotations), "fields": dict(self.fields)}
        return {"kind": self.kind, "names": [*self.names], **{name: part for name, part in parts.items() if part}}


@dataclass(frozen=True)
class Description:
    """What is known of an effective template.

    `settings` are others that are decided by the same idea, each with who decided it. `rolling` are the properties
    whose change restarts pods, None where nobody knows; `lands_on` are the kinds of objects that each shapes.
    """

    remarks: tuple[Remark, ...] = ()
    objects: tuple[ObjectEffect, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rolling: frozenset[str] | None = None
    lands_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
