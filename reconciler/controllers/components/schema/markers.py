"""Markers of schema fields, e.g. `minimum=1`: the types that they apply to, their values and their OpenAPI keywords."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import re2

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.schema.field_expressions import (
    MAX_SCHEMA_DEPTH,
    Marker,
    ShorthandError,
    is_quoted,
    split_items,
    unquote,
)
from reconciler.controllers.components.schema.openapi import LIST_TYPE, Schema
from reconciler.krm.field_text import quote_value, suggest_name
from reconciler.krm.findings import CommonCodes
from reconciler.lazy_dataclasses import dataclass

_IGNORED_PREFIXES = ("oc:", "x-")
_INTEGER = re2.compile(r"[+-]?[0-9]+")
_INT64_LIMIT = 2**63
_SILENT_OPTIONS = re2.Options()
_SILENT_OPTIONS.log_errors = False

_ValueReader = Callable[[str, Schema], Any]


class _ValueError(Exception):
    """The value of a marker is not valid. The error message describes valid values, e.g. "a 64-bit integer"."""


@dataclass(frozen=True)
class _MarkerRule:
    """Rule for one marker of a schema field.

    Attributes:
        kinds: OpenAPI types that the marker applies to. Empty if the marker applies to all types.
        keyword: OpenAPI keyword that the marker sets. A marker with the value False removes the keyword.
    """

    kinds: tuple[str, ...]
    read: _ValueReader
    keyword: str


def apply_markers(schema: Schema, markers: Iterable[Marker]) -> Schema:
    """Return a schema with the keywords of all markers.

    `required` is skipped, because OpenAPI lists required fields in the schema of the parent. `default` is applied last,
    because other markers influence how the value of `default` is parsed.

    Raises:
        ShorthandError: A marker is not valid.
    """
    result = dict(schema)
    for marker in sorted(markers, key=lambda marker: marker.key == "default"):
        rule = _find_rule(marker, schema)
        if rule is None:
            continue
        value = _read_value(marker, rule.read, result)
        result.pop(rule.keyword, None)
        if value is not False or rule.keyword in _TYPED_KEYWORDS:
            result[rule.keyword] = _LIST_TYPE_SET if marker.key == "uniqueItems" else value
    _check_exclusive_limits(result)
    return result


def read_required_marker(markers: Iterable[Marker]) -> bool | None:
    """Return the value of the marker `required`. Return None if there is no such marker."""
    for marker in markers:
        if marker.key == "required":
            return bool(_read_value(marker, _parse_boolean, {}))
    return None


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: The text is not valid JSON, is nested too deeply, or contains an infinite number, a duplicate field
            or text that is not valid Unicode.
    """
    try:
        value = json.loads(
            text, parse_constant=_reject_constant, parse_float=_parse_float, object_pairs_hook=_build_object
        )
    except RecursionError:
        raise ValueError(_DEPTH_ERROR) from None
    if is_too_deep(value):
        raise ValueError(_DEPTH_ERROR)
    if "\\u" in text and not _is_encodable(value):
        raise ValueError("the text cannot be encoded as UTF-8")
    return value


def _is_encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_too_deep(value: Any) -> bool:
    """Return whether the lists and maps of a value are nested more than `MAX_SCHEMA_DEPTH` levels deep."""
    values = [value]
    for _ in range(MAX_SCHEMA_DEPTH):
        values = [child for item in values for child in _iter_children(item)]
        if not values:
            return False
    return True


def _iter_children(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


_DEPTH_ERROR = f"the value has more than {MAX_SCHEMA_DEPTH} levels"


def _find_rule(marker: Marker, schema: Schema) -> _MarkerRule | None:
    """Return the rule of a marker. Return None for a marker that sets no keyword."""
    if marker.key.startswith(_IGNORED_PREFIXES) or marker.key == "required":
        return None
    if marker.key == "immutable":
        raise ShorthandError(
            CommonCodes.FEATURE_NOT_SUPPORTED, f"{marker.message_prefix}, but this marker is not supported"
        )
    rule = _MARKER_RULES.get(marker.key)
    if rule is None:
        allowed = (*_MARKER_RULES, "required")
        hint = f"; allowed markers: {', '.join(sorted(allowed))}{suggest_name(marker.key, allowed)}"
        raise ShorthandError(
            ComponentCodes.SHORTHAND_UNKNOWN_MARKER, f"{marker.message_prefix}, but this marker is unknown{hint}"
        )
    if rule.kinds and schema["type"] not in rule.kinds:
        types = " or ".join(rule.kinds)
        message = (
            f"{marker.message_prefix}, but the type is {schema['type']}; this marker applies only to the type {types}"
        )
        raise ShorthandError(ComponentCodes.SHORTHAND_MARKER_TYPE, message)
    return rule


def _read_value(marker: Marker, read_value: _ValueReader, schema: Schema) -> Any:
    try:
        if read_value is _parse_enum:
            return _parse_enum(marker.value, schema)
        text = unquote(marker.value)
        if text is None:
            raise ShorthandError(
                ComponentCodes.SHORTHAND_SYNTAX,
                f"{marker.message_prefix}, but the value has text after the closing quote",
            )
        return read_value(text, schema)
    except _ValueError as error:
        raise ShorthandError(
            ComponentCodes.SHORTHAND_VALUE, f"{marker.message_prefix}; the value must be {error}"
        ) from None


def _check_exclusive_limits(schema: Schema) -> None:
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema and limit not in schema:
            raise ShorthandError(
                ComponentCodes.SHORTHAND_MARKER_TYPE, f"has the marker {exclusive}, which requires the marker {limit}"
            )


def _parse_boolean(text: str, schema: Schema) -> bool:
    if text not in ("true", "false"):
        raise _ValueError("true or false")
    return text == "true"


def _parse_integer(text: str, schema: Schema) -> int:
    # Limit the number of digits, because int() is slow for long texts.
    value = int(text) if _INTEGER.fullmatch(text) and len(text) <= 20 else _INT64_LIMIT
    if not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise _ValueError("a 64-bit integer")
    return value


def _parse_number(text: str, schema: Schema) -> int | float:
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise _ValueError("a number")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _parse_divisor(text: str, schema: Schema) -> int | float:
    value = _parse_number(text, schema)
    if value <= 0:
        raise _ValueError("a number above 0")
    return value


def _parse_count(text: str, schema: Schema) -> int:
    value = _parse_integer(text, schema)
    if value < 0:
        raise _ValueError("a non-negative integer")
    return value


def _parse_text(text: str, schema: Schema) -> str:
    return text


def _parse_kind(text: str, schema: Schema) -> str:
    if not text:
        raise _ValueError("the name of a kind")
    return text


def _parse_pattern(text: str, schema: Schema) -> str:
    try:
        re2.compile(text, _SILENT_OPTIONS)
    except re2.error as error:
        raise _ValueError(f"a valid RE2 regular expression: {_get_error_text(error)}") from None
    return text


def _get_error_text(error: Exception) -> str:
    (text,) = error.args
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


def _parse_typed(text: str, schema: Schema) -> Any:
    """Parse a marker value that must have the type of the field, e.g. the value of `default`."""
    read_scalar = _SCALAR_READERS.get(schema["type"])
    if read_scalar is not None:
        return read_scalar(text, schema)
    try:
        value = parse_json(text)
    except ValueError as error:
        raise _ValueError(f"valid JSON: {error}") from None
    if not isinstance(value, _CONTAINER_TYPES[schema["type"]]) and not (value is None and schema.get("nullable")):
        raise _ValueError("a JSON list" if schema["type"] == "array" else "a JSON object")
    return value


def _parse_enum(value: str, schema: Schema) -> list[Any]:
    """Parse the value of the marker `enum`: `a,b`, `"a,b"` or a JSON list."""
    options = (
        _parse_json_list(value)
        if value.startswith("[")
        else [_parse_typed(item, schema) for item in _split_enum(value)]
    )
    for option in options:
        if not _has_type(option, schema["type"]):
            raise _ValueError(f"a list of values of type {schema['type']}, but it contains {quote_value(option)}")
    if not options or len(set(options)) < len(options):
        raise _ValueError("a non-empty list of unique values")
    return options


def _parse_json_list(text: str) -> list[Any]:
    try:
        value = parse_json(text)
    except ValueError as error:
        raise _ValueError(f"valid JSON: {error}") from None
    return value if isinstance(value, list) else [value]


def _split_enum(value: str) -> list[str]:
    if is_quoted(value):
        items = [item.strip() for item in split_items(unquote(value) or "", quotes=False)]
    else:
        items = [unquote(item) or "" for item in split_items(value, quotes=True)]
    if "" in items:
        raise _ValueError("a comma-separated list without empty values")
    return items


def _has_type(value: Any, type_name: str) -> bool:
    match type_name:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and -_INT64_LIMIT <= value < _INT64_LIMIT
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def _reject_constant(name: str) -> Any:
    raise ValueError(f"the number {name} is not allowed in JSON")


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is outside of the range of 64-bit floating point numbers")
    return value


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(pairs)) < len(pairs):
        raise ValueError("an object contains a field twice")
    return fields


_LIST_TYPE_SET = "set"
# Keep the value False of these keywords. For all other keywords, the value False removes the keyword.
_TYPED_KEYWORDS = ("default", "example")
_SCALAR_READERS: dict[str, _ValueReader] = {
    "string": _parse_text,
    "integer": _parse_integer,
    "number": _parse_number,
    "boolean": _parse_boolean,
}
_CONTAINER_TYPES: dict[str, type] = {"array": list, "object": dict}
_NUMBER_TYPES = ("integer", "number")
_MARKER_RULES = {
    "default": _MarkerRule((), _parse_typed, "default"),
    "enum": _MarkerRule(("string", *_NUMBER_TYPES), _parse_enum, "enum"),
    "minimum": _MarkerRule(_NUMBER_TYPES, _parse_number, "minimum"),
    "maximum": _MarkerRule(_NUMBER_TYPES, _parse_number, "maximum"),
    "multipleOf": _MarkerRule(_NUMBER_TYPES, _parse_divisor, "multipleOf"),
    "exclusiveMinimum": _MarkerRule(_NUMBER_TYPES, _parse_boolean, "exclusiveMinimum"),
    "exclusiveMaximum": _MarkerRule(_NUMBER_TYPES, _parse_boolean, "exclusiveMaximum"),
    "minLength": _MarkerRule(("string",), _parse_count, "minLength"),
    "maxLength": _MarkerRule(("string",), _parse_count, "maxLength"),
    "pattern": _MarkerRule(("string",), _parse_pattern, "pattern"),
    "format": _MarkerRule(("string",), _parse_text, "format"),
    "minItems": _MarkerRule(("array",), _parse_count, "minItems"),
    "maxItems": _MarkerRule(("array",), _parse_count, "maxItems"),
    "uniqueItems": _MarkerRule(("array",), _parse_boolean, LIST_TYPE),
    "minProperties": _MarkerRule(("object",), _parse_count, "minProperties"),
    "maxProperties": _MarkerRule(("object",), _parse_count, "maxProperties"),
    "nullable": _MarkerRule((), _parse_boolean, "nullable"),
    "title": _MarkerRule((), _parse_text, "title"),
    "description": _MarkerRule((), _parse_text, "description"),
    "example": _MarkerRule((), _parse_typed, "example"),
    "queryContainers": _MarkerRule(("string",), _parse_boolean, "x-query-containers"),
    "queryResources": _MarkerRule(("string",), _parse_kind, "x-query-resources"),
}
