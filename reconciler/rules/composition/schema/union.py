"""Two sections of a schema as one, where each field is in one of them only (openchoreo 3.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.composition import codes
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.schema.defaults import default_violations
from reconciler.rules.composition.schema.dialect import Schema, object_of, ordered
from reconciler.rules.composition.schema.values import overlay
from reconciler.rules.fields import dotted


def united(parameters: Schema, env_overrides: Schema, path: Path) -> tuple[Schema, tuple[Fault, ...]]:
    """Return the schema with the fields of both, and what collides, at its place below `path` of the second."""
    faults: list[Fault] = []
    return _united(parameters, env_overrides, path, faults), tuple(faults)


def _united(left: Schema, right: Schema, path: Path, faults: list[Fault]) -> Schema:
    properties = dict(left["properties"])
    for name, node in right["properties"].items():
        properties[name] = _field(properties.get(name), node, (*path, name), faults)
    required = {*left.get("required", ()), *right.get("required", ())}
    fields = object_of(properties, list(required))
    merged = {keyword: value for keyword, value in (right | left).items() if keyword != "default"} | fields
    return ordered(_with_default(merged, left, right, path, faults))


def _field(left: Schema | None, right: Schema, path: Path, faults: list[Fault]) -> Schema:
    if left is None:
        return right
    if "properties" in left and "properties" in right:
        return _united(left, right, path, faults)
    message = f"{dotted(path)} is declared among the parameters as well; a field must be in one section only"
    faults.append(Fault(codes.SCHEMA_FIELD_COLLISION, path, message))
    return left


def _with_default(merged: Schema, left: Schema, right: Schema, path: Path, faults: list[Fault]) -> Schema:
    """Return an object with what both sides fill in; {} goes where a field of the other side is required (3.4)."""
    given = [side["default"] for side in (left, right) if "default" in side]
    if not given:
        return merged
    result = merged | {"default": _overlaid(given, merged)}
    wrong = default_violations(result)
    if wrong and given == [{}]:
        return merged
    for fault in wrong:
        message = f"{dotted(path)} cannot have this default beside the parameters of that name: {fault.message}"
        faults.append(Fault(codes.SHORTHAND_DEFAULT_INVALID, path, message))
    return result


def _overlaid(given: list[Any], schema: Schema) -> Any:
    maps = [one for one in given if isinstance(one, Mapping)]
    return overlay(*maps, schema=schema) if maps else None
