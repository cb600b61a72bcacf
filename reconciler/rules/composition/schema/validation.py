"""Values against their schema: all that is wrong, in our words and in the order of the fields (openchoreo 4.3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from operator import getitem
from typing import Any

import jsonschema_rs
import re2

from reconciler.caching import cached
from reconciler.krm.yaml import Path
from reconciler.rules.composition import codes
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.schema.dialect import Schema, below
from reconciler.rules.composition.schema.draft import engine_schema
from reconciler.rules.fields import dotted, named, shown

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_REMEMBERED = 512
# the library follows a value for 255 levels, YAML for 100
_DEEPEST = 200


def violations(value: Any, schema: Schema, path: Path, *, required: bool = True) -> tuple[Fault, ...]:
    """Return all that is wrong with the value at `path`, sorted by path (openchoreo 4.3).

    Without `required`, fields may be missing, or null: of an environment's overrides each says only what it changes.
    """
    return _violations(value, schema, path, _validator(_Same(schema), required))


def violations_once(value: Any, schema: Schema, path: Path) -> tuple[Fault, ...]:
    """Return all that is wrong with a value under a schema that is not asked again, which nothing remembers."""
    return _violations(value, schema, path, _compiled(schema, required=True))


def _violations(value: Any, schema: Schema, path: Path, validator: jsonschema_rs.Validator) -> tuple[Fault, ...]:
    try:
        if validator.is_valid(value):
            return ()
        found = [fault for error in validator.iter_errors(value) for fault in _faults(error, value, schema, path)]
    except ValueError:
        # what the library does not take is no JSON: a key that is no string, text that no encoding has
        return tuple(sorted(_no_json(value, path), key=_order))
    mistyped = {fault.path for fault, keyword in found if keyword == "type"}
    told = (fault for fault, keyword in found if keyword == "type" or fault.path not in mistyped)
    return tuple(sorted(told, key=_order))


class _Same:
    """A schema by identity, which is free to ask: schemas are never changed, and long to read."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema


class _Pattern:
    """The keyword `re2`: expressions as Kubernetes has them, anywhere in the text, in linear time (openchoreo 3.2)."""

    def __init__(self, parent: dict[str, Any], value: str, path: Sequence[str | int]) -> None:
        self.expression = re2.compile(value)

    def validate(self, instance: object) -> None:
        """Raise ValueError for a text without a match."""
        if isinstance(instance, str) and not self.expression.search(instance):
            raise ValueError


@cached(_REMEMBERED)
def _validator(one: _Same, required: bool) -> jsonschema_rs.Validator:
    return _compiled(one.schema, required=required)


def _compiled(schema: Schema, *, required: bool) -> jsonschema_rs.Validator:
    draft = engine_schema(schema, required=required)
    return jsonschema_rs.Draft202012Validator(draft, keywords={"re2": _Pattern}, offline=True)


_Found = tuple[Fault, str]


def _faults(error: jsonschema_rs.ValidationError, value: Any, schema: Schema, path: Path) -> Iterator[_Found]:
    place, keyword, details = (*path, *error.instance_path), error.kind.name, error.kind.as_dict()
    node = _node(schema, error.instance_path)
    # the library's own copy of the value says null for NaN
    found = reduce(getitem, error.instance_path, value)
    match keyword:
        case "additionalProperties":
            for name in sorted(details["unexpected"]):
                yield _unknown((*place, name), sorted(node["properties"])), keyword
        case "required":
            name = details["property"]
            yield _fault((*place, name), f"must be given: {_TYPES[node['properties'][name]['type']]}"), keyword
        case _:
            yield _fault(place, _words(keyword, details, node, found)), keyword


def _node(schema: Schema, path: Sequence[str | int]) -> Schema:
    for step in path:
        node = below(schema, step)
        assert node is not None, "the validator descends into what is declared, and nowhere else"
        schema = node
    return schema


def _words(keyword: str, details: Mapping[str, Any], node: Schema, value: Any) -> str:
    match keyword:
        case "type":
            kinds = f"{_TYPES[node['type']]} or null" if node.get("nullable") else _TYPES[node["type"]]
            return f"must be {kinds}, not {named(value)}"
        case "enum":
            return f"must be one of {', '.join(map(_bare, node['enum']))}, not {shown(value)}"
        case "re2":
            return f"must match {node['pattern']}, not {shown(value)}"
        case "multipleOf":
            return f"must be a multiple of {node['multipleOf']}, not {shown(value)}"
        case "uniqueItems":
            return f"must not have the item {shown(_twice(value))} twice"
        case _:
            return f"must {_bound(keyword, details['limit'], value)}"


def _bound(keyword: str, limit: float, value: Any) -> str:
    match keyword:
        case "minLength" | "maxLength":
            return f"have at {_side(keyword)} {limit} characters, not {len(value)}: {shown(value)}"
        case "minItems" | "maxItems":
            return f"have at {_side(keyword)} {limit} items, not {len(value)}"
        case "minProperties" | "maxProperties":
            return f"have at {_side(keyword)} {limit} fields, not {len(value)}"
        case "exclusiveMinimum":
            return f"be more than {limit}, not {shown(value)}"
        case "exclusiveMaximum":
            return f"be less than {limit}, not {shown(value)}"
        case _:
            return f"be at {_side(keyword)} {limit}, not {shown(value)}"


def _side(keyword: str) -> str:
    return "least" if keyword.startswith("min") else "most"


def _bare(option: object) -> str:
    return option if isinstance(option, str) and option else shown(option)


def _twice(items: Sequence[Any]) -> Any:
    seen: set[str] = set()
    for item in items:
        text = json.dumps(_by_value(item), sort_keys=True)
        if text in seen:
            return item
        seen.add(text)
    raise AssertionError("the validator found an item twice")


def _by_value(item: Any) -> Any:
    match item:
        case dict():
            return {key: _by_value(one) for key, one in item.items()}
        case list():
            return [_by_value(one) for one in item]
        case float() if item.is_integer():
            return int(item)
        case _:
            return item


def _unknown(path: Path, allowed: Sequence[str]) -> Fault:
    nearest = get_close_matches(str(path[-1]), allowed, 1)
    meant = f"; did you mean {nearest[0]}?" if nearest else ""
    known = f"allowed are {', '.join(allowed)}" if allowed else "no fields are declared here"
    return Fault(codes.UNKNOWN_FIELD, path, f"{dotted(path)} is unknown; {known}{meant}")


def _fault(path: Path, message: str) -> Fault:
    return Fault(codes.SCHEMA_VALIDATION, path, f"{dotted(path)} {message}")


def _no_json(value: Any, path: Path) -> Iterator[Fault]:
    """Yield what makes a value something else than JSON: odd keys, half characters, too many levels, other types."""
    waiting = [(value, path)]
    while waiting:
        one, place = waiting.pop()
        if len(place) - len(path) > _DEEPEST:
            yield _fault(path, f"must have at most {_DEEPEST} levels")
            return
        if isinstance(one, Mapping):
            odd = [key for key in one if not isinstance(key, str)]
            yield from (_fault(place, f"must have strings for keys, not {shown(key)}: quote it") for key in odd)
            # a key is text as well
            waiting += [
                (part, (*place, key)) for key, item in one.items() if isinstance(key, str) for part in (key, item)
            ]
        elif isinstance(one, list):
            waiting += [(item, (*place, index)) for index, item in enumerate(one)]
        elif isinstance(one, str) and not _is_encodable(one):
            yield _fault(place, f"must be text that UTF-8 can write, not {one!a}")
        elif not isinstance(one, str | int | float | None):
            yield _fault(place, f"must be JSON, not {type(one).__name__}")


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _order(fault: Fault) -> tuple[object, str]:
    return _place(fault.path), fault.message


def _place(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Return what sorts paths: items by their number, before fields by their name."""
    return tuple((0, step, "") if isinstance(step, int) else (1, 0, step) for step in path)
