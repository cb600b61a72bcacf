"""Validation of values against schemas. All errors of a value are reported, sorted by path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

import jsonschema_rs
import re2

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.schema.openapi import Schema, build_validator_schema, get_child_schema
from reconciler.krm.field_text import describe_choice, describe_value, quote_value, suggest_name
from reconciler.krm.numbers import format_count
from reconciler.krm.yaml import DataPath
from reconciler.memory import cached

_TYPE_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_MAX_CACHED_VALIDATORS = 512
# Maximum nesting depth of a value. It is above the limit of the YAML reader (100 levels), and below the limit of the
# validation library (255 levels).
_MAX_DEPTH = 200


def validate_value(value: Any, schema: Schema, path: DataPath, *, required: bool = True) -> tuple[FieldFinding, ...]:
    """Return all errors in the value at `path`, sorted by path.

    If `required` is False, fields can be missing or null, e.g. in the overrides of an environment.
    """
    return _validate(value, schema, path, _get_validator(_SchemaIdentity(schema), required))


def validate_value_uncached(value: Any, schema: Schema, path: DataPath) -> tuple[FieldFinding, ...]:
    """Return all errors in a value without caching the validator. Use this function for a schema that is used once."""
    return _validate(value, schema, path, _compile_validator(schema, required=True))


def _validate(
    value: Any, schema: Schema, path: DataPath, validator: jsonschema_rs.Validator
) -> tuple[FieldFinding, ...]:
    try:
        if validator.is_valid(value):
            return ()
        findings = [
            finding for error in validator.iter_errors(value) for finding in _convert_error(error, value, schema, path)
        ]
    except ValueError:
        # The library raises ValueError for a value that is not JSON, e.g. a number as a map key or invalid Unicode.
        return tuple(sorted(_find_non_json_values(value, path), key=_get_sort_key))
    mistyped = {finding.path for finding, keyword in findings if keyword == "type"}
    relevant = (finding for finding, keyword in findings if keyword == "type" or finding.path not in mistyped)
    return tuple(sorted(relevant, key=_get_sort_key))


class _SchemaIdentity:
    """Wrapper that compares schemas by identity, which is fast. A schema does not change after its creation."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SchemaIdentity) and self.schema is other.schema


class _Re2Keyword:
    """Validator of the keyword `re2`: a string must contain a match of this RE2 regular expression."""

    def __init__(self, parent: dict[str, Any], value: str, path: Sequence[str | int]) -> None:
        self.expression = re2.compile(value)

    def validate(self, instance: object) -> None:
        """Raise ValueError if `instance` is a string without a match."""
        if isinstance(instance, str) and not self.expression.search(instance):
            raise ValueError


@cached(_MAX_CACHED_VALIDATORS)
def _get_validator(identity: _SchemaIdentity, required: bool) -> jsonschema_rs.Validator:
    return _compile_validator(identity.schema, required=required)


def _compile_validator(schema: Schema, *, required: bool) -> jsonschema_rs.Validator:
    draft = build_validator_schema(schema, required=required)
    return jsonschema_rs.Draft202012Validator(draft, keywords={"re2": _Re2Keyword}, offline=True)


_KeywordFinding = tuple[FieldFinding, str]


def _convert_error(
    error: jsonschema_rs.ValidationError, value: Any, schema: Schema, path: DataPath
) -> Iterator[_KeywordFinding]:
    field_path, keyword, details = (*path, *error.instance_path), error.kind.name, error.kind.as_dict()
    node = _get_node(schema, error.instance_path)
    # Do not use the value in `error`, because the library replaces NaN with null in this value.
    invalid_value = reduce(getitem, error.instance_path, value)
    match keyword:
        case "additionalProperties":
            for name in sorted(details["unexpected"]):
                yield _build_unknown_field_finding((*field_path, name), sorted(node["properties"])), keyword
        case "required":
            name = details["property"]
            yield (
                _build_finding(
                    (*field_path, name), f"is missing; set it to {_TYPE_NAMES[node['properties'][name]['type']]}"
                ),
                keyword,
            )
        case _:
            yield _build_finding(field_path, _describe_error(keyword, details, node, invalid_value)), keyword


def _get_node(schema: Schema, path: Sequence[str | int]) -> Schema:
    for step in path:
        node = get_child_schema(schema, step)
        assert node is not None, "the validator checks only declared values"
        schema = node
    return schema


def _describe_error(keyword: str, details: Mapping[str, Any], node: Schema, value: Any) -> str:
    match keyword:
        case "type":
            types = f"{_TYPE_NAMES[node['type']]} or null" if node.get("nullable") else _TYPE_NAMES[node["type"]]
            return f"must be {types}, but is {describe_value(value)}"
        case "enum":
            return f"must be {describe_choice(node['enum'])}, but is {quote_value(value)}"
        case "re2":
            return f"must match {quote_value(node['pattern'])}, but is {quote_value(value)}"
        case "multipleOf":
            return f"must be a multiple of {node['multipleOf']}, but is {quote_value(value)}"
        case "uniqueItems":
            return f"must not contain the item {quote_value(_find_duplicate(value))} twice"
        case _:
            return f"must {_describe_limit(keyword, details['limit'], value)}"


def _describe_limit(keyword: str, limit: float, value: Any) -> str:
    match keyword:
        case "minLength" | "maxLength":
            return (
                f"have at {_get_limit_word(keyword)} {format_count(limit, 'character')}, but has {len(value)}:"
                f" {quote_value(value)}"
            )
        case "minItems" | "maxItems":
            return f"have at {_get_limit_word(keyword)} {format_count(limit, 'item')}, but has {len(value)}"
        case "minProperties" | "maxProperties":
            return f"have at {_get_limit_word(keyword)} {format_count(limit, 'field')}, but has {len(value)}"
        case "exclusiveMinimum":
            return f"be more than {limit}, but is {quote_value(value)}"
        case "exclusiveMaximum":
            return f"be less than {limit}, but is {quote_value(value)}"
        case _:
            return f"be at {_get_limit_word(keyword)} {limit}, but is {quote_value(value)}"


def _get_limit_word(keyword: str) -> str:
    return "least" if keyword.startswith("min") else "most"


def _find_duplicate(items: Sequence[Any]) -> Any:
    texts: set[str] = set()
    for item in items:
        text = json.dumps(_normalize_numbers(item), sort_keys=True)
        if text in texts:
            return item
        texts.add(text)
    raise AssertionError("the validator found an item twice")


def _normalize_numbers(item: Any) -> Any:
    match item:
        case dict():
            return {key: _normalize_numbers(child) for key, child in item.items()}
        case list():
            return [_normalize_numbers(child) for child in item]
        case float() if item.is_integer():
            return int(item)
        case _:
            return item


def _build_unknown_field_finding(path: DataPath, allowed: Sequence[str]) -> FieldFinding:
    known = f"allowed fields: {', '.join(allowed)}" if allowed else "the schema declares no fields for this mapping"
    return build_field_finding(
        ComponentCodes.UNKNOWN_FIELD, path, f"is an unknown field; {known}{suggest_name(str(path[-1]), allowed)}"
    )


def _build_finding(path: DataPath, message: str) -> FieldFinding:
    return build_field_finding(ComponentCodes.SCHEMA_VALIDATION, path, message)


def _find_non_json_values(value: Any, path: DataPath) -> Iterator[FieldFinding]:
    """Yield an error for each part of a value that is not valid JSON, e.g. a number as a map key or a date."""
    pending = [(value, path)]
    while pending:
        item, item_path = pending.pop()
        if len(item_path) - len(path) > _MAX_DEPTH:
            yield _build_finding(path, f"must have at most {_MAX_DEPTH} levels")
            return
        if isinstance(item, Mapping):
            invalid_keys = [key for key in item if not isinstance(key, str)]
            yield from (
                _build_finding(
                    item_path, (f"must have strings as keys, but has the key {quote_value(key)}; put the key in quotes")
                )
                for key in invalid_keys
            )
            # Check keys in the same way as values, because a key can contain invalid Unicode as well.
            pending += [
                (part, (*item_path, key))
                for key, child in item.items()
                if isinstance(key, str)
                for part in (key, child)
            ]
        elif isinstance(item, list):
            pending += [(child, (*item_path, index)) for index, child in enumerate(item)]
        elif isinstance(item, str) and not _is_encodable(item):
            yield _build_finding(item_path, f"must be text that can be encoded as UTF-8, but is {item!a}")
        elif not isinstance(item, str | int | float | None):
            yield _build_finding(item_path, f"must be a JSON value, but has the type {type(item).__name__}")


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _get_sort_key(finding: FieldFinding) -> tuple[object, str]:
    return _get_path_sort_key(finding.path), finding.message


def _get_path_sort_key(path: DataPath) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key for a path. List items are sorted by index, and fields by name."""
    return tuple((0, step, "") if isinstance(step, int) else (1, 0, step) for step in path)
