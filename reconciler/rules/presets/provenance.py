"""Provenance: which layer gave each option of a Plugin, and what it won over (greenhouse 14, design 10.28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.digest import canonical_json
from reconciler.krm.identity import ObjectKey
from reconciler.krm.secrets import MASK, holds_secret
from reconciler.rules.presets.layers import DEFAULTS, NOT_OVERRIDES, Statement
from reconciler.rules.presets.model import Expression, Given, SecretRef
from reconciler.rules.presets.resolved import Resolution, ResolvedOption
from reconciler.snapshot.catalog import ConfigObject

SHOWN_BYTES = 1024


@dataclass(frozen=True, eq=False)
class PluginProvenance:
    """Where every option of one Plugin comes from; worked out when somebody wants to read it.

    `made_of` are the objects that it depends on, each with a digest of what it says to it.
    """

    file: str
    resource: str
    resolution: Resolution
    made_of: Mapping[ConfigObject, str]

    def layers(self) -> list[dict[str, Any]]:
        """Return `layers` of a status file: for each option the steps that led to its value, the last of which won."""
        return [
            {
                "file": self.file,
                "resource": self.resource,
                "pointer": f"/spec/optionValues/{index}",
                "option": one.name,
                "steps": list(_steps(one)),
            }
            for index, one in enumerate(self.resolution.options)
        ]

    def applied(self) -> list[dict[str, str]]:
        """Return `appliedOverrides`: the objects that changed what the Plugin would be, in the order of application."""
        return [
            {"layer": one.layer, "kind": one.one.key.kind, "name": one.one.key.name}
            for one in self.resolution.applied
            if one.layer not in NOT_OVERRIDES and one.options.entries
        ]

    def objects(self) -> list[dict[str, str]]:
        """Return what it was made of: a hash is that of what the object says to this Plugin, masked with a secret."""
        return [
            {
                "kind": one.key.kind,
                "namespace": one.key.namespace,
                "name": one.key.name,
                "file": one.file,
                "hash": MASK if one.key in self._secretive else hashed,
            }
            for one, hashed in sorted(self.made_of.items(), key=lambda each: each[0].key)
        ]

    @property
    def _secretive(self) -> frozenset[ObjectKey]:
        """The objects whose hash would tell of what a secret option holds; of a definition that is nothing."""
        return frozenset(
            one.winner.by
            for one in self.resolution.options
            if one.hides and isinstance(one.source, Given) and one.winner.layer != DEFAULTS
        )


def _steps(option: ResolvedOption) -> Iterator[dict[str, Any]]:
    before: Any = ABSENT
    for index, one in enumerate(option.said):
        is_last = index == len(option.said) - 1
        after = shown_source(option.source if is_last else one.source, hides=option.hides)
        step = {
            "layer": one.layer, "by": str(one.by), "file": one.one.file, "where": one.field,
            "op": "added" if before is ABSENT else "replaced", "before": before, "after": after,
            "expression": _expression(one, hides=option.hides),
        }  # fmt: skip
        yield {name: value for name, value in step.items() if value is not ABSENT and value != ""}
        before = after


def _expression(one: Statement, *, hides: bool) -> Any:
    if not isinstance(one.source, Expression):
        return ABSENT
    return MASK if hides else one.source.text


def shown_source(source: Given | SecretRef | Expression, *, hides: bool) -> Any:
    """Return a value as people may see it: that of a secret is masked, a long one shortened (design 10.29)."""
    match source:
        case SecretRef():
            return {"secretRef": {"name": source.name, "key": source.key}}
        case Expression(text=text):
            return MASK if hides else {"expression": text}
        case Given(value=value):
            return MASK if hides or holds_secret(value) else _short(value)


def _short(value: Any) -> Any:
    text = canonical_json(value)
    if len(text) <= SHOWN_BYTES:
        return value
    start = (value if isinstance(value, str) else text.decode(errors="replace"))[: SHOWN_BYTES // 4]
    return f"{start}… ({len(text)} bytes)"
