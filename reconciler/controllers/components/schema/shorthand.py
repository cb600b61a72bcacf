"""Conversion of the schema shorthand to OpenAPI. After an error, the conversion continues with the next field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.schema.field_expressions import (
    BUILT_IN_TYPES,
    MAX_SCHEMA_DEPTH,
    FieldExpression,
    FieldType,
    FreeFormType,
    ListType,
    MapType,
    NamedType,
    ScalarType,
    ShorthandError,
    is_field_name,
    parse_field_expression,
    parse_field_type,
)
from reconciler.controllers.components.schema.markers import (
    apply_markers,
    is_too_deep,
    parse_json,
    read_required_marker,
)
from reconciler.controllers.components.schema.openapi import FREE_FORM, Schema, build_object_schema, sort_keywords
from reconciler.controllers.components.schema.values import has_implied_default, validate_default
from reconciler.krm.field_text import describe_value, quote_value, suggest_name
from reconciler.krm.findings import FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

_MAX_FIELDS = 5_000
_MAX_EXPRESSION_LENGTH = 16_384
_DEFAULT_KEY = "$default"


class _InvalidSchemaError(Exception):
    """A part of the schema is not valid. `ShorthandReader` has already recorded a finding about this part."""


@dataclass(frozen=True)
class _Position:
    """Position in a schema that is being read.

    Attributes:
        path: Path of the current field.
        depth: Number of nested fields and types.
        chain: Names of the named types that contain the current field. A name that occurs again is a cycle.
    """

    path: DataPath
    depth: int = 0
    chain: tuple[str, ...] = ()

    def enter_field(self, name: str) -> _Position:
        return _Position((*self.path, name), self.depth + 1, self.chain)

    def descend(self) -> _Position:
        return _Position(self.path, self.depth + 1, self.chain)


@dataclass
class ShorthandReader:
    """Converts the sections of one schema from shorthand to OpenAPI, and collects the findings in document order."""

    types: Mapping[str, Any]
    types_path: DataPath
    required_by_default: bool
    field_findings: dict[FieldFinding, None] = field(default_factory=dict)
    remaining_fields: int = _MAX_FIELDS

    def read_section(self, data: Mapping[Any, Any], path: DataPath) -> Schema | None:
        """Return the object schema with the fields of a section. Return None if the section has errors."""
        position = _Position(path)
        try:
            if _DEFAULT_KEY in data:
                self._add_finding(
                    ComponentCodes.SHORTHAND_FIELD_TYPE,
                    (*path, _DEFAULT_KEY),
                    "is not allowed here; only objects inside parameters or envOverrides can have $default",
                )
            return self._read_object({key: value for key, value in data.items() if key != _DEFAULT_KEY}, position)
        except _InvalidSchemaError:
            return None

    def check_types(self) -> None:
        """Check all named types, including types that no field uses."""
        for name in self.types:
            position = _Position((*self.types_path, name), chain=(name,))
            if not is_field_name(name) or name in BUILT_IN_TYPES:
                self._add_finding(ComponentCodes.SHORTHAND_FIELD_TYPE, position.path, _describe_bad_type_name(name))
            else:
                with suppress(_InvalidSchemaError):
                    self._read_value(self.types[name], position)

    def _read_object(self, data: Mapping[Any, Any], position: _Position) -> Schema:
        """Return the object schema for the fields in `data`.

        Raises:
            _InvalidSchemaError: At least one field is not valid.
        """
        self._charge_field(position)
        properties: dict[str, Schema] = {}
        required, has_errors = [], False
        for key, value in data.items():
            if key == _DEFAULT_KEY:
                continue
            try:
                properties[key], is_required = self._read_field(key, value, position)
                required += [key] if is_required else []
            except _InvalidSchemaError:
                has_errors = True
        if has_errors:
            raise _InvalidSchemaError
        schema = build_object_schema(properties, required)
        return self._set_own_default(schema, data[_DEFAULT_KEY], position) if _DEFAULT_KEY in data else schema

    def _read_field(self, key: Any, value: Any, parent: _Position) -> tuple[Schema, bool]:
        position = parent.enter_field(str(key))
        if not is_field_name(key):
            raise self._build_error(ComponentCodes.SHORTHAND_FIELD_TYPE, position.path, _describe_bad_name(key))
        if "-" in key:
            message = f'can only be accessed as spec["{key}"] in expressions; prefer a name without "-"'
            self._add_finding(ComponentCodes.SHORTHAND_NAME_HYPHEN, position.path, message)
        schema, required_marker = self._read_value(value, position)
        if has_implied_default(schema):
            schema = sort_keywords(schema | {"default": {}})
        if required_marker and "default" in schema:
            self._add_finding(
                ComponentCodes.REQUIRED_WITH_DEFAULT,
                position.path,
                "has a default, so `required` has no effect",
            )
        if required_marker is None:
            return schema, self.required_by_default and "default" not in schema
        return schema, required_marker

    def _read_value(self, value: Any, position: _Position) -> tuple[Schema, bool | None]:
        """Return the schema of a field or type, and the value of its marker `required` (None without this marker)."""
        if isinstance(value, str):
            return self._read_line(value, position)
        if isinstance(value, Mapping):
            return self._read_object(value, position), None
        raise self._build_error(ComponentCodes.SHORTHAND_FIELD_TYPE, position.path, _describe_wrong_value(value))

    def _read_line(self, text: str, position: _Position) -> tuple[Schema, bool | None]:
        with self._convert_errors(position):
            if len(text) > _MAX_EXPRESSION_LENGTH:
                raise ShorthandError(
                    ComponentCodes.SCHEMA_TOO_LARGE, f"must have at most {_MAX_EXPRESSION_LENGTH} characters"
                )
            expression = parse_field_expression(text)
            schema = self._build_type_schema(parse_field_type(expression.type, expression.column), position)
            return self._apply_markers(schema, expression, position), read_required_marker(expression.markers)

    def _apply_markers(self, schema: Schema, expression: FieldExpression, position: _Position) -> Schema:
        result = sort_keywords(apply_markers(schema, expression.markers))
        if expression.markers and "default" in result:
            self._check_default(result, position)
        return result

    def _build_type_schema(self, kind: FieldType, position: _Position) -> Schema:
        self._charge_field(position)
        match kind:
            case ScalarType(name):
                return {"type": name}
            case FreeFormType():
                return {"type": "object", FREE_FORM: True}
            case ListType(item):
                return {"type": "array", "items": _remove_default(self._build_type_schema(item, position.descend()))}
            case MapType(value):
                entries = _remove_default(self._build_type_schema(value, position.descend()))
                return {"type": "object", "additionalProperties": entries}
            case NamedType(name):
                return self._read_named_type(name, position)

    def _read_named_type(self, name: str, position: _Position) -> Schema:
        if name in position.chain:
            raise self._build_cycle_error(position.chain[position.chain.index(name) :])
        if name not in self.types or name in BUILT_IN_TYPES:
            raise ShorthandError(ComponentCodes.SHORTHAND_UNKNOWN_TYPE, self._describe_unknown_type(name))
        inside = _Position((*self.types_path, name), position.depth + 1, (*position.chain, name))
        return self._read_value(self.types[name], inside)[0]

    def _describe_unknown_type(self, name: str) -> str:
        known = (*BUILT_IN_TYPES, *sorted(filter(is_field_name, self.types)))
        return f"has the unknown type {quote_value(name)}; allowed types: {', '.join(known)}{suggest_name(name, known)}"

    def _build_cycle_error(self, chain: tuple[str, ...]) -> _InvalidSchemaError:
        first = chain.index(min(chain))
        names = (*chain[first:], *chain[:first], chain[first])
        return self._build_error(
            ComponentCodes.SHORTHAND_TYPE_CYCLE, (*self.types_path, names[0]), f"contains itself: {' → '.join(names)}"
        )

    def _set_own_default(self, schema: Schema, declared: Any, position: _Position) -> Schema:
        """Return the object schema with a default. `declared` is the value of `$default`: a mapping or a JSON text."""
        position = position.enter_field(_DEFAULT_KEY)
        value = declared
        if isinstance(declared, str):
            try:
                value = parse_json(declared)
            except ValueError as error:
                raise self._build_error(
                    ComponentCodes.SHORTHAND_VALUE, position.path, f"must be a mapping or valid JSON: {error}"
                ) from None
        if not isinstance(value, Mapping) or is_too_deep(value):
            requirement = f"a mapping of at most {MAX_SCHEMA_DEPTH} levels, or its JSON text"
            raise self._build_error(
                ComponentCodes.SHORTHAND_VALUE, position.path, f"must be {requirement}, but is {describe_value(value)}"
            )
        result = sort_keywords(schema | {"default": value})
        self._check_default(result, position)
        return result

    def _check_default(self, schema: Schema, position: _Position) -> None:
        default_errors = validate_default(schema)
        for error in default_errors:
            self._add_finding(
                ComponentCodes.SHORTHAND_DEFAULT_INVALID, position.path, f"has an invalid default: {error.message}"
            )
        if default_errors:
            raise _InvalidSchemaError

    def _charge_field(self, position: _Position) -> None:
        self.remaining_fields -= 1
        if self.remaining_fields < 0:
            raise self._build_error(
                ComponentCodes.SCHEMA_TOO_LARGE,
                self.types_path[:-1],
                f"must have at most {_MAX_FIELDS} fields in total",
            )
        if position.depth > MAX_SCHEMA_DEPTH:
            raise self._build_error(
                ComponentCodes.SCHEMA_TOO_LARGE, position.path, f"must be at most {MAX_SCHEMA_DEPTH} levels deep"
            )

    @contextmanager
    def _convert_errors(self, position: _Position) -> Iterator[None]:
        try:
            yield
        except ShorthandError as error:
            raise self._build_error(error.code, position.path, error.message) from None

    def _build_error(self, code: FindingCode, path: DataPath, message: str) -> _InvalidSchemaError:
        self._add_finding(code, path, message)
        return _InvalidSchemaError()

    def _add_finding(self, code: FindingCode, path: DataPath, message: str) -> None:
        # Store each finding once, because a named type is read again for each field that uses it.
        self.field_findings[build_field_finding(code, path, message)] = None


def _remove_default(schema: Schema) -> Schema:
    # Remove the default of list items and map values, because Kubernetes would replace a null with this default.
    return {keyword: value for keyword, value in schema.items() if keyword != "default"}


def _describe_bad_type_name(name: object) -> str:
    if name in BUILT_IN_TYPES:
        return f"must not redefine the built-in type {quote_value(name)}"
    return (
        "must have a name of letters, digits, - and _ that begins with a letter or _, but has the name"
        f" {quote_value(name)}"
    )


def _describe_bad_name(key: object) -> str:
    if isinstance(key, str) and key.startswith("$"):
        return f"is reserved; the only name that begins with $ is {_DEFAULT_KEY}"
    return (
        "must have a name of letters, digits, - and _ that begins with a letter or _, but has the name"
        f" {quote_value(key)}"
    )


def _describe_wrong_value(value: object) -> str:
    requirement = 'must be an expression such as "string", or a mapping of fields'
    match value:
        case bool():
            return f'{requirement}, but is {quote_value(value)}; write "boolean | default={quote_value(value)}"'
        case [str(item)]:
            return f'{requirement}, but is a list; write a list type in quotes: "[]{item}"'
        case _:
            return f"{requirement}, but is {describe_value(value)}"
