"""Fields of an addon that is baked in: which are fixed for good, and what is left to be set (openchoreo 13.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.composition.schema import Schema
from reconciler.rules.composition.schema.dialect import object_of, ordered

# what counts the fields of an object, or lets it be null, holds of all of them together only
_WHOLE = ("nullable", "minProperties", "maxProperties")


@dataclass(frozen=True, eq=False)
class Part:
    """An object that some fields of are fixed: a field that is none of `closed` is left open as it is.

    A closed one is fixed as a whole, and None, or an object that is there in any case, and itself a part.
    """

    closed: Mapping[str, Part | None]
    has_open: bool


def fixed_part(schema: Schema, config: Mapping[str, Any], used: Collection[Path]) -> Part:
    """Return what is fixed of an object: what `config` gives, and what placement uses, where `()` is all of it.

    A field that is used and has no value is fixed to have none.
    """
    properties: dict[str, Schema] = schema["properties"]
    if () in used:
        return Part(dict.fromkeys(properties), has_open=False)
    closed: dict[str, Part | None] = {}
    for name, node in properties.items():
        below = [path[1:] for path in used if path[0] == name]
        given = config.get(name) if name in config and (config[name] is not None or node.get("nullable")) else _UNGIVEN
        if given is not _UNGIVEN or below:
            part = _part_below(node, given, below)
            closed[name] = part if part and part.has_open else None
    return Part(closed, any(closed.get(name, _OPEN) for name in properties))


def part_in(section: Schema, part: Part) -> Part:
    """Return the part with those fields alone that a section of the schema declares."""
    properties: dict[str, Schema] = section["properties"]
    inner = {
        name: part_in(properties[name], below) for name, below in part.closed.items() if below and name in properties
    }
    open_ones = {name: one for name, one in inner.items() if one.has_open}
    closed = {name: open_ones.get(name) for name in part.closed if name in properties}
    return Part(closed, any(closed.get(name, _OPEN) for name in properties))


def remaining(section: Schema, part: Part) -> Schema | None:
    """Return the object that is left of one in a section of a schema, None where nothing is (openchoreo 13.3.2).

    It is there without being set, as it is for the addon itself, and whatever is required of it has a default.
    """
    properties: dict[str, Schema] = {}
    for name, node in section["properties"].items():
        below = part.closed.get(name)
        left = remaining(node, below) if below else None if name in part.closed else node
        if left is not None:
            properties[name] = left
    if not properties:
        return None
    return ordered(object_of(properties, []) | {"default": {}})


_UNGIVEN = object()
_OPEN = Part({}, has_open=True)


def _part_below(node: Schema, given: Any, used: Collection[Path]) -> Part | None:
    """Return the parts of a field that is there in any case, None where it can be fixed as a whole only."""
    is_given = isinstance(given, Mapping)
    # openchoreo 3.4: a default with content goes away as a whole once any field is set
    is_there = is_given or (given is _UNGIVEN and node.get("default") == {})
    if "properties" not in node or not is_there or any(one in node for one in _WHOLE):
        return None
    return fixed_part(node, given if is_given else {}, used)
