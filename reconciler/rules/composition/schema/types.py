"""The type of a field's expression as a tree (openchoreo 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import re2

from reconciler.rules.composition import codes
from reconciler.rules.composition.schema.refusal import RefusalError
from reconciler.rules.fields import shown

SCALARS = {"string": "string", "integer": "integer", "number": "number", "float": "number", "boolean": "boolean"}
BUILT_IN = (*SCALARS, "object")
DEEPEST = 32
"""Levels of a schema: enough for people, and few enough for every walk and for the validator."""

_NAME = re2.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Scalar:
    """A text, a number or a truth value, by its OpenAPI type."""

    name: str


@dataclass(frozen=True)
class FreeForm:
    """A map of anything."""


@dataclass(frozen=True)
class ListOf:
    """A list, all items of one type."""

    item: Type


@dataclass(frozen=True)
class MapOf:
    """A map from strings, all values of one type."""

    value: Type


@dataclass(frozen=True)
class Named:
    """One of the types that the schema names."""

    name: str


Type: TypeAlias = Scalar | FreeForm | ListOf | MapOf | Named


def is_name(text: object) -> bool:
    """Tell whether fields and types can be called this (openchoreo 3.1)."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def read_type(text: str, column: int, depth: int = 0) -> Type:
    """Return the type that a text says; raises RefusalError where there is none such (openchoreo 3.1)."""
    if depth > DEEPEST:
        raise RefusalError(codes.SCHEMA_TOO_LARGE, f"must have at most {DEEPEST} types inside of one another")
    inner, column = text.strip(), column + len(text) - len(text.lstrip())
    match _constructor(inner):
        case "[]", rest:
            return ListOf(read_type(rest, column + len(inner) - len(rest), depth + 1))
        case "array<", rest:
            return ListOf(read_type(rest, column + 6, depth + 1))
        case "map<", rest:
            return MapOf(read_type(rest, column + 4, depth + 1))
        case "map[", rest:
            return MapOf(_value_of_map(inner, rest, column, depth))
        case _:
            return _plain(inner, column)


def _constructor(text: str) -> tuple[str, str]:
    if text.startswith("[]"):
        return "[]", text[2:]
    for opening in ("array<", "map<"):
        if text.startswith(opening) and text.endswith(">"):
            return opening, text.removeprefix(opening)[:-1]
    return ("map[", text[4:]) if text.startswith("map[") else ("", text)


def _value_of_map(text: str, rest: str, column: int, depth: int) -> Type:
    key, closing, value = rest.partition("]")
    if not closing:
        raise _no_type(text, column, "write map[string]…")
    if key.strip() != "string":
        raise _no_type(text, column, f"keys of maps are of type string, not {shown(key)}")
    return read_type(value, column + len(text) - len(value), depth + 1)


def _plain(text: str, column: int) -> Type:
    if text in SCALARS:
        return Scalar(SCALARS[text])
    if text == "object":
        return FreeForm()
    if is_name(text):
        return Named(text)
    raise _no_type(text, column, _hint(text))


def _hint(text: str) -> str:
    if not text:
        return "after [] and in brackets there must be one, such as string"
    if any(character.isspace() for character in text):
        return "a | must stand between the type and its markers"
    return f"write {', '.join(BUILT_IN)}, a type of schema.types, []…, array<…>, map[string]… or map<…>"


def _no_type(text: str, column: int, hint: str) -> RefusalError:
    return RefusalError(codes.SHORTHAND_TYPE, f"has at column {column} no type, but {shown(text)}: {hint}")
