"""Effective values: what each layer says, what schemas fill in, and who may say what (openchoreo 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import CONFIG_EXPRESSION_NOT_ALLOWED, NOT_OVERRIDABLE, UNKNOWN_FIELD
from reconciler.rules.composition.faults import MOST_TOLD, Fault, fault_of
from reconciler.rules.composition.marks import OPEN
from reconciler.rules.composition.model import Values
from reconciler.rules.composition.schema import (
    ComponentSchema,
    Schema,
    declares,
    overlay,
    violations,
    with_defaults,
)
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True, eq=False)
class Layer:
    """What one object says of values at a place of its own; `name` is what provenance calls the layer."""

    name: str
    one: ConfigObject
    path: Path
    data: Values

    def holds(self, path: Path) -> bool:
        """Tell whether it says anything of the value at `path`."""
        return value_at(self.data, path) is not ABSENT


@dataclass(frozen=True, eq=False)
class Effective:
    """The values that are in effect, the layers that made them, lowest first, and what is wrong with them."""

    data: dict[str, Any]
    layers: tuple[Layer, ...]
    schema: ComponentSchema
    findings: tuple[Finding, ...] = ()

    def origin(self, path: Path) -> Layer | None:
        """Return the layer that gave the value at `path`, None where that is a default."""
        return next((one for one in reversed(self.layers) if one.holds(path)), None)

    @cached_property
    def bindings(self) -> Mapping[str, Any]:
        """The variables by which templates see them."""
        parts = {"parameters": self.schema.parameters, "envOverrides": self.schema.env_overrides}
        return {"spec": self.data, **{name: _section(self.data, part) for name, part in parts.items()}}


def effective_values(layers: Sequence[Layer], schema: Schema, of: ComponentSchema) -> Effective:
    """Return the values of layers, the lowest first, with defaults; `schema` is `of.full`, or that with other defaults.

    Everything that is wrong is told at the layer that says it.
    """
    data = with_defaults(overlay(*(one.data for one in layers), schema=schema), schema)
    effective = Effective(data, tuple(layers), of)
    found = tuple(_placed(fault, effective) for fault in violations(data, schema, ())[:MOST_TOLD])
    return replace(effective, findings=found)


def _placed(fault: Fault, effective: Effective) -> Finding:
    """Return a fault of effective values at the layer that is to blame: that which says it, or holds what lacks it."""
    layers = effective.layers
    for end in range(len(fault.path), -1, -1):
        for one in reversed(layers):
            if one.holds(fault.path[:end]):
                where = one.one.where_at((*one.path, *fault.path))
                return fault.code.finding(f"{dotted(one.path)}.{fault.message}", where)
    return fault.code.finding(fault.message)


def override_findings(layer: Layer, schema: ComponentSchema) -> Iterator[Finding]:
    """Yield what is wrong with values that an environment gives: it may give those of envOverrides (openchoreo 4.4)."""
    for fault in violations(layer.data, schema.env_overrides, (), required=False)[:MOST_TOLD]:
        where = layer.one.where_at((*layer.path, *fault.path))
        if fault.code is UNKNOWN_FIELD and declares(schema.parameters, fault.path):
            message = (
                f"{dotted((*layer.path, *fault.path))} is declared in parameters, and the same in all environments"
            )
            yield NOT_OVERRIDABLE.finding(message, where)
        else:
            yield fault.code.finding(f"{dotted(layer.path)}.{fault.message}", where)
    for path in _taken_away(layer.data, schema, ()):
        field = dotted((*layer.path, *path))
        message = f"{field} has fields that are declared in parameters, and null would take them away as well"
        yield NOT_OVERRIDABLE.finding(message, layer.one.where_at((*layer.path, *path)))


def _taken_away(data: Values, schema: ComponentSchema, path: Path) -> Iterator[Path]:
    """Yield where null stands for a mapping that has fields of both sections."""
    for key, value in data.items():
        place = (*path, str(key))
        if not (declares(schema.parameters, place) and declares(schema.env_overrides, place)):
            continue
        if value is None:
            yield place
        elif isinstance(value, Mapping):
            yield from _taken_away(value, schema, place)


def static_findings(layer: Layer, schema: Schema) -> Iterator[Finding]:
    """Yield what is wrong with values in a type, whatever else is not said yet: they are values, and no templates."""
    found = (violations(layer.data, schema, layer.path, required=False), _expressions(layer.data, layer.path))
    yield from (fault.finding(layer.one) for fault in islice(chain(*found), MOST_TOLD))


def _expressions(value: Any, path: Path) -> Iterator[Fault]:
    match value:
        case str() if OPEN in value:
            yield fault_of(CONFIG_EXPRESSION_NOT_ALLOWED, path, "must be a value: expressions are for templates")
        case list():
            for index, item in enumerate(value):
                yield from _expressions(item, (*path, index))
        case Mapping():
            for key, one in value.items():
                yield from _expressions(one, (*path, str(key)))


def _section(data: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the part of values that a section of the schema declares (openchoreo 5.4)."""
    found: dict[str, Any] = {}
    for name, node in schema.get("properties", {}).items():
        if name in data:
            value = data[name]
            nested = "properties" in node and isinstance(value, Mapping)
            found[name] = _section(value, node) if nested else value
    return found
