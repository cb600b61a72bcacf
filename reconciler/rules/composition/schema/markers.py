"""Markers: what each may stand on, what its value must be, and which keyword it becomes (openchoreo 3.2, 3.3)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import re2

from reconciler.rules.composition import codes
from reconciler.rules.composition.schema.dialect import LIST_TYPE, Schema
from reconciler.rules.composition.schema.expression import Marker, is_quoted, split_items, unquoted
from reconciler.rules.composition.schema.refusal import RefusalError
from reconciler.rules.composition.schema.types import DEEPEST
from reconciler.rules.fields import shown

_IGNORED = ("oc:", "x-")
_INTEGER = re2.compile(r"[+-]?[0-9]+")
_WIDEST = 2**63
_QUIET = re2.Options()
_QUIET.log_errors = False

_Reader = Callable[[str, Schema], Any]


class _OddError(Exception):
    """A value is none that its marker takes; the message says what it takes."""


@dataclass(frozen=True)
class _Rule:
    """One marker: the types that it goes with, none for all, what reads its value, and the keyword it sets.

    A value of False takes the keyword away, which a named type may have brought.
    """

    kinds: tuple[str, ...]
    read: _Reader
    keyword: str


def applied(schema: Schema, markers: Iterable[Marker]) -> Schema:
    """Return a schema with all that markers say on top; raises RefusalError (openchoreo 3.2).

    `required` is not the field's own, and a default can be judged only when the rest is done.
    """
    result = dict(schema)
    for marker in sorted(markers, key=lambda marker: marker.key == "default"):
        rule = _rule(marker, schema)
        if rule is None:
            continue
        value = _read(marker, rule.read, result)
        result.pop(rule.keyword, None)
        if value is not False or rule.keyword in _TYPED:
            result[rule.keyword] = _SET if marker.key == "uniqueItems" else value
    _refuse_lonely_limits(result)
    return result


def required_mark(markers: Iterable[Marker]) -> bool | None:
    """Return what the marker `required` says; None where there is none."""
    for marker in markers:
        if marker.key == "required":
            return bool(_read(marker, _boolean, {}))
    return None


def json_value(text: str) -> Any:
    """Return the value that JSON text says; raises ValueError with what is wrong with it.

    Numbers that no double holds, half characters, fields that are there twice, and too many levels are refused.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_float, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if is_deep(value):
        raise ValueError(_TOO_DEEP)
    if "\\u" in text and not _is_encodable(value):
        raise ValueError("it has text that UTF-8 cannot write")
    return value


def _is_encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_deep(value: Any) -> bool:
    """Tell whether a value has more levels than schemas have, so that walks over it end."""
    level = [value]
    for _ in range(DEEPEST):
        level = [one for item in level for one in _members(item)]
        if not level:
            return False
    return True


def _members(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


_TOO_DEEP = f"it has more than {DEEPEST} levels"


def _rule(marker: Marker, schema: Schema) -> _Rule | None:
    """Return what is to be done with a marker on a type; None for nothing."""
    if marker.key.startswith(_IGNORED) or marker.key == "required":
        return None
    if marker.key == "immutable":
        raise RefusalError(codes.FEATURE_NOT_SUPPORTED, f"{marker.where}, but no field is kept from changing")
    rule = _RULES.get(marker.key)
    if rule is None:
        known = (*_RULES, "required")
        meant = get_close_matches(marker.key, known, 1)
        hint = f"; did you mean {meant[0]}?" if meant else f"; known are {', '.join(sorted(known))}"
        raise RefusalError(codes.SHORTHAND_UNKNOWN_MARKER, f"{marker.where}, which is no marker{hint}")
    if rule.kinds and schema["type"] not in rule.kinds:
        goes = " or ".join(rule.kinds)
        message = f"{marker.where}, which goes with {goes} only, not with {schema['type']}"
        raise RefusalError(codes.SHORTHAND_MARKER_TYPE, message)
    return rule


def _read(marker: Marker, read: _Reader, schema: Schema) -> Any:
    try:
        if read is _enum:
            return _enum(marker.value, schema)
        text = unquoted(marker.value)
        if text is None:
            raise RefusalError(codes.SHORTHAND_SYNTAX, f"{marker.where}, where more follows the closing quote")
        return read(text, schema)
    except _OddError as error:
        raise RefusalError(codes.SHORTHAND_VALUE, f"{marker.where}, which must be {error}") from None


def _refuse_lonely_limits(schema: Schema) -> None:
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema and limit not in schema:
            raise RefusalError(codes.SHORTHAND_MARKER_TYPE, f"has the marker {exclusive}, which needs a {limit}")


def _boolean(text: str, schema: Schema) -> bool:
    if text not in ("true", "false"):
        raise _OddError("true or false")
    return text == "true"


def _integer(text: str, schema: Schema) -> int:
    # int() reads twenty digits at most here, so that long ones cost nothing
    value = int(text) if _INTEGER.fullmatch(text) and len(text) <= 20 else _WIDEST
    if not -_WIDEST <= value < _WIDEST:
        raise _OddError("an integer of 64 bits")
    return value


def _number(text: str, schema: Schema) -> int | float:
    try:
        value = json_value(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise _OddError("a number")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _divisor(text: str, schema: Schema) -> int | float:
    value = _number(text, schema)
    if value <= 0:
        raise _OddError("a number above 0")
    return value


def _count(text: str, schema: Schema) -> int:
    value = _integer(text, schema)
    if value < 0:
        raise _OddError("an integer of at least 0")
    return value


def _text(text: str, schema: Schema) -> str:
    return text


def _kind(text: str, schema: Schema) -> str:
    if not text:
        raise _OddError("the name of a kind")
    return text


def _pattern(text: str, schema: Schema) -> str:
    try:
        re2.compile(text, _QUIET)
    except re2.error as error:
        raise _OddError(f"a regular expression of RE2: {_reason(error)}") from None
    return text


def _reason(error: Exception) -> str:
    (said,) = error.args
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _typed(text: str, schema: Schema) -> Any:
    """Return a value as the field's type writes it (openchoreo 3.3)."""
    read = _SCALARS.get(schema["type"])
    if read is not None:
        return read(text, schema)
    try:
        value = json_value(text)
    except ValueError as error:
        raise _OddError(f"JSON: {error}") from None
    if not isinstance(value, _CONTAINERS[schema["type"]]) and not (value is None and schema.get("nullable")):
        raise _OddError("a JSON list" if schema["type"] == "array" else "a JSON object")
    return value


def _enum(value: str, schema: Schema) -> list[Any]:
    """Return the values that a field may have, written in one of three ways (openchoreo 3.3)."""
    options = _listed(value) if value.startswith("[") else [_typed(item, schema) for item in _split(value)]
    for option in options:
        if not _is_of(option, schema["type"]):
            raise _OddError(f"a list of values of type {schema['type']}, not with {shown(option)}")
    if not options or len(set(options)) < len(options):
        raise _OddError("a list of values, each there once")
    return options


def _listed(text: str) -> list[Any]:
    try:
        value = json_value(text)
    except ValueError as error:
        raise _OddError(f"JSON: {error}") from None
    return value if isinstance(value, list) else [value]


def _split(value: str) -> list[str]:
    if is_quoted(value):
        items = [item.strip() for item in split_items(unquoted(value) or "", quotes=False)]
    else:
        items = [unquoted(item) or "" for item in split_items(value, quotes=True)]
    if "" in items:
        raise _OddError("values between commas, none of them empty")
    return items


def _is_of(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and -_WIDEST <= value < _WIDEST
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"it has the number {name}")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it has the number {text}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("it has a field twice")
    return found


_SET = "set"
# where false is a value like others
_TYPED = ("default", "example")
_SCALARS: dict[str, _Reader] = {"string": _text, "integer": _integer, "number": _number, "boolean": _boolean}
_CONTAINERS: dict[str, type] = {"array": list, "object": dict}
_NUMBERS = ("integer", "number")
_RULES = {
    "default": _Rule((), _typed, "default"),
    "enum": _Rule(("string", *_NUMBERS), _enum, "enum"),
    "minimum": _Rule(_NUMBERS, _number, "minimum"),
    "maximum": _Rule(_NUMBERS, _number, "maximum"),
    "multipleOf": _Rule(_NUMBERS, _divisor, "multipleOf"),
    "exclusiveMinimum": _Rule(_NUMBERS, _boolean, "exclusiveMinimum"),
    "exclusiveMaximum": _Rule(_NUMBERS, _boolean, "exclusiveMaximum"),
    "minLength": _Rule(("string",), _count, "minLength"),
    "maxLength": _Rule(("string",), _count, "maxLength"),
    "pattern": _Rule(("string",), _pattern, "pattern"),
    "format": _Rule(("string",), _text, "format"),
    "minItems": _Rule(("array",), _count, "minItems"),
    "maxItems": _Rule(("array",), _count, "maxItems"),
    "uniqueItems": _Rule(("array",), _boolean, LIST_TYPE),
    "minProperties": _Rule(("object",), _count, "minProperties"),
    "maxProperties": _Rule(("object",), _count, "maxProperties"),
    "nullable": _Rule((), _boolean, "nullable"),
    "title": _Rule((), _text, "title"),
    "description": _Rule((), _text, "description"),
    "example": _Rule((), _typed, "example"),
    "queryContainers": _Rule(("string",), _boolean, "x-query-containers"),
    "queryResources": _Rule(("string",), _kind, "x-query-resources"),
}
