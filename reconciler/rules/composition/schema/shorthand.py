"""The shorthand of one schema as OpenAPI, field by field; every fault is told, and reading goes on (openchoreo 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from reconciler.krm.findings import Code
from reconciler.krm.yaml import Path
from reconciler.rules.composition import codes
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.schema.defaults import default_violations, fills_itself
from reconciler.rules.composition.schema.dialect import FREE_FORM, Schema, object_of, ordered
from reconciler.rules.composition.schema.expression import Expression, read_expression
from reconciler.rules.composition.schema.markers import applied, is_deep, json_value, required_mark
from reconciler.rules.composition.schema.refusal import RefusalError
from reconciler.rules.composition.schema.types import (
    BUILT_IN,
    DEEPEST,
    FreeForm,
    ListOf,
    MapOf,
    Named,
    Scalar,
    Type,
    is_name,
    read_type,
)
from reconciler.rules.fields import dotted, named, shown

_LARGEST = 5_000
_LONGEST = 16_384
_DEFAULT = "$default"


class _BrokenError(Exception):
    """Something inside is wrong, and has been told."""


@dataclass(frozen=True)
class _Place:
    """Where reading is: at a field of the document, so many levels down, inside of these types."""

    path: Path
    depth: int = 0
    chain: tuple[str, ...] = ()

    def field(self, name: str) -> _Place:
        return _Place((*self.path, name), self.depth + 1, self.chain)

    def inside(self) -> _Place:
        return _Place(self.path, self.depth + 1, self.chain)


@dataclass
class Shorthand:
    """The reader of one schema's fields, which knows its types; `faults` are in the order of reading."""

    types: Mapping[str, Any]
    types_path: Path
    required_by_default: bool
    faults: dict[Fault, None] = field(default_factory=dict)
    left: int = _LARGEST

    def section(self, data: Mapping[Any, Any], path: Path) -> Schema | None:
        """Return the fields of a section as a root object, None when anything in it is wrong (openchoreo 3.5)."""
        place = _Place(path)
        try:
            if _DEFAULT in data:
                self._tell(codes.SHORTHAND_FIELD_TYPE, (*path, _DEFAULT), "is for objects inside of a section")
            return self._object({key: value for key, value in data.items() if key != _DEFAULT}, place)
        except _BrokenError:
            return None

    def check_types(self) -> None:
        """Read every type for itself, so that those nobody uses are checked, too."""
        for name in self.types:
            place = _Place((*self.types_path, name), chain=(name,))
            if not is_name(name) or name in BUILT_IN:
                self._tell(codes.SHORTHAND_FIELD_TYPE, place.path, _bad_type_name(name))
            else:
                with suppress(_BrokenError):
                    self._value(self.types[name], place)

    def _object(self, data: Mapping[Any, Any], place: _Place) -> Schema:
        """Return the object with these fields; raises _BrokenError when one of them is wrong."""
        self._count(place)
        properties: dict[str, Schema] = {}
        required, broken = [], False
        for key, value in data.items():
            if key == _DEFAULT:
                continue
            try:
                properties[key], is_required = self._field(key, value, place)
                required += [key] if is_required else []
            except _BrokenError:
                broken = True
        if broken:
            raise _BrokenError
        schema = object_of(properties, required)
        return self._with_own_default(schema, data[_DEFAULT], place) if _DEFAULT in data else schema

    def _field(self, key: Any, value: Any, parent: _Place) -> tuple[Schema, bool]:
        place = parent.field(str(key))
        if not is_name(key):
            raise self._broken(codes.SHORTHAND_FIELD_TYPE, place.path, _bad_name(key))
        if "-" in key:
            message = f'is reached in expressions as spec["{key}"] only; a name without "-" is easier'
            self._tell(codes.SHORTHAND_NAME_HYPHEN, place.path, message)
        schema, mark = self._value(value, place)
        if fills_itself(schema):
            schema = ordered(schema | {"default": {}})
        if mark and "default" in schema:
            self._tell(codes.REQUIRED_WITH_DEFAULT, place.path, "is required and has a default, so it is never missing")
        if mark is None:
            return schema, self.required_by_default and "default" not in schema
        return schema, mark

    def _value(self, value: Any, place: _Place) -> tuple[Schema, bool | None]:
        """Return a field or a type, and what its own marker says on whether it is required."""
        if isinstance(value, str):
            return self._line(value, place)
        if isinstance(value, Mapping):
            return self._object(value, place), None
        raise self._broken(codes.SHORTHAND_FIELD_TYPE, place.path, _no_expression(value))

    def _line(self, text: str, place: _Place) -> tuple[Schema, bool | None]:
        with self._refusals(place):
            if len(text) > _LONGEST:
                raise RefusalError(codes.SCHEMA_TOO_LARGE, f"must have at most {_LONGEST} characters")
            expression = read_expression(text)
            schema = self._typed(read_type(expression.type, expression.column), place)
            return self._marked(schema, expression, place), required_mark(expression.markers)

    def _marked(self, schema: Schema, expression: Expression, place: _Place) -> Schema:
        result = ordered(applied(schema, expression.markers))
        if expression.markers and "default" in result:
            self._check_default(result, place)
        return result

    def _typed(self, kind: Type, place: _Place) -> Schema:
        self._count(place)
        match kind:
            case Scalar(name):
                return {"type": name}
            case FreeForm():
                return {"type": "object", FREE_FORM: True}
            case ListOf(item):
                return {"type": "array", "items": _without_default(self._typed(item, place.inside()))}
            case MapOf(value):
                entries = _without_default(self._typed(value, place.inside()))
                return {"type": "object", "additionalProperties": entries}
            case Named(name):
                return self._named(name, place)

    def _named(self, name: str, place: _Place) -> Schema:
        if name in place.chain:
            raise self._cycle(place.chain[place.chain.index(name) :])
        if name not in self.types or name in BUILT_IN:
            raise RefusalError(codes.SHORTHAND_UNKNOWN_TYPE, self._unknown(name))
        inside = _Place((*self.types_path, name), place.depth + 1, (*place.chain, name))
        return self._value(self.types[name], inside)[0]

    def _unknown(self, name: str) -> str:
        known = (*BUILT_IN, *sorted(filter(is_name, self.types)))
        return f"is of the type {name}, which there is not; {_hint(name, known)}"

    def _cycle(self, chain: tuple[str, ...]) -> _BrokenError:
        first = chain.index(min(chain))
        names = (*chain[first:], *chain[:first], chain[first])
        return self._broken(
            codes.SHORTHAND_TYPE_CYCLE, (*self.types_path, names[0]), f"is made of itself: {' → '.join(names)}"
        )

    def _with_own_default(self, schema: Schema, written: Any, place: _Place) -> Schema:
        """Return an object with its `$default`, a mapping or JSON (openchoreo 3.4)."""
        inside = place.field(_DEFAULT)
        value = written
        if isinstance(written, str):
            try:
                value = json_value(written)
            except ValueError as error:
                raise self._broken(codes.SHORTHAND_VALUE, inside.path, f"must be a mapping or JSON: {error}") from None
        if not isinstance(value, Mapping) or is_deep(value):
            what = f"a mapping of at most {DEEPEST} levels, or JSON that says one"
            raise self._broken(codes.SHORTHAND_VALUE, inside.path, f"must be {what}, not {named(value)}")
        result = ordered(schema | {"default": value})
        self._check_default(result, inside)
        return result

    def _check_default(self, schema: Schema, place: _Place) -> None:
        wrong = default_violations(schema)
        for fault in wrong:
            self._tell(codes.SHORTHAND_DEFAULT_INVALID, place.path, f"cannot have this default: {fault.message}")
        if wrong:
            raise _BrokenError

    def _count(self, place: _Place) -> None:
        self.left -= 1
        if self.left < 0:
            raise self._broken(
                codes.SCHEMA_TOO_LARGE, self.types_path[:-1], f"must have at most {_LARGEST} fields in all"
            )
        if place.depth > DEEPEST:
            raise self._broken(codes.SCHEMA_TOO_LARGE, place.path, f"must be at most {DEEPEST} levels deep")

    @contextmanager
    def _refusals(self, place: _Place) -> Iterator[None]:
        try:
            yield
        except RefusalError as error:
            raise self._broken(error.code, place.path, error.message) from None

    def _broken(self, code: Code, path: Path, message: str) -> _BrokenError:
        self._tell(code, path, message)
        return _BrokenError()

    def _tell(self, code: Code, path: Path, message: str) -> None:
        # a type is read wherever it is used, and its faults are told once
        self.faults[Fault(code, path, f"{dotted(path)} {message}")] = None


def _without_default(schema: Schema) -> Schema:
    # openchoreo 4.2: an item, or an entry, that is absent is not there at all; Kubernetes would put it in place of null
    return {keyword: value for keyword, value in schema.items() if keyword != "default"}


def _hint(name: str, known: Sequence[str]) -> str:
    meant = get_close_matches(name, known, 1)
    return f"did you mean {meant[0]}?" if meant else f"known are {', '.join(known)}"


def _bad_type_name(name: object) -> str:
    if name in BUILT_IN:
        return f"cannot be a type of its own: {name} is there anyway"
    return f"must have a name of letters, digits, - and _ that begins with a letter or _, not {shown(name)}"


def _bad_name(key: object) -> str:
    if isinstance(key, str) and key.startswith("$"):
        return f"is reserved: of names that begin with $ there is only {_DEFAULT}"
    return f"must have a name of letters, digits, - and _ that begins with a letter or _, not {shown(key)}"


def _no_expression(value: object) -> str:
    said = "must be an expression, such as string, or a mapping of fields"
    match value:
        case bool():
            return f"{said}, not {shown(value)}: write boolean | default={shown(value)}"
        case [str(item)]:
            return f'{said}, not a list: write the type of a list in quotes, "[]{item}"'
        case _:
            return f"{said}, not {named(value)}"
