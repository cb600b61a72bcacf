"""Schema of a component definition or addon, which merges the sections `parameters` and `envOverrides`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.schema.openapi import Schema, build_object_schema, sort_keywords
from reconciler.controllers.components.schema.shorthand import ShorthandReader
from reconciler.controllers.components.schema.values import overlay_values, validate_default
from reconciler.controllers.components.template_syntax import EXTENSION_PREFIX
from reconciler.krm.field_text import describe_value, format_path
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


def merge_sections(
    parameters: Schema, env_overrides: Schema, path: DataPath
) -> tuple[Schema, tuple[FieldFinding, ...]]:
    """Return a schema with the fields of both sections, and an error for each field that is in both sections.

    Each error is located at the field in `envOverrides`. `path` is the path of `envOverrides`.
    """
    findings: list[FieldFinding] = []
    return _merge_objects(parameters, env_overrides, path, findings), tuple(findings)


def _merge_objects(parameters: Schema, env_overrides: Schema, path: DataPath, findings: list[FieldFinding]) -> Schema:
    properties = dict(parameters["properties"])
    for name, node in env_overrides["properties"].items():
        properties[name] = _merge_field(properties.get(name), node, (*path, name), findings)
    required = {*parameters.get("required", ()), *env_overrides.get("required", ())}
    object_schema = build_object_schema(properties, list(required))
    merged = {
        keyword: value for keyword, value in (env_overrides | parameters).items() if keyword != "default"
    } | object_schema
    return sort_keywords(_merge_default(merged, parameters, env_overrides, path, findings))


def _merge_field(
    parameter: Schema | None, env_override: Schema, path: DataPath, findings: list[FieldFinding]
) -> Schema:
    if parameter is None:
        return env_override
    if "properties" in parameter and "properties" in env_override:
        return _merge_objects(parameter, env_override, path, findings)
    message = f"{format_path(path)} is also declared in parameters; a field must be in one section only"
    findings.append(FieldFinding(ComponentCodes.SCHEMA_FIELD_COLLISION, path, message))
    return parameter


def _merge_default(
    merged: Schema, parameters: Schema, env_overrides: Schema, path: DataPath, findings: list[FieldFinding]
) -> Schema:
    """Return the schema of an object with a default that merges the defaults of both sections.

    If the only default is `{}` and is not valid, e.g. because a field is required, return the schema without a default.
    """
    defaults = [section["default"] for section in (parameters, env_overrides) if "default" in section]
    if not defaults:
        return merged
    result = merged | {"default": _overlay_defaults(defaults, merged)}
    errors = validate_default(result)
    if errors and defaults == [{}]:
        return merged
    for error in errors:
        problem = "has a default that is not valid after it is merged with the default in parameters"
        message = f"{format_path(path)} {problem}: {error.message}"
        findings.append(FieldFinding(ComponentCodes.SHORTHAND_DEFAULT_INVALID, path, message))
    return result


def _overlay_defaults(defaults: list[Any], schema: Schema) -> Any:
    mappings = [default for default in defaults if isinstance(default, Mapping)]
    return overlay_values(*mappings, schema=schema) if mappings else None


_TYPES, _PARAMETERS, _ENV_OVERRIDES, _REQUIRED = "types", "parameters", "envOverrides", "requiredByDefault"
_KNOWN_FIELDS = (_TYPES, _PARAMETERS, _ENV_OVERRIDES, _REQUIRED)


@dataclass(frozen=True)
class ComponentSchema:
    """Schema of a component definition or addon. `full` contains the fields of both sections.

    A section with errors has no fields.
    """

    parameters: Schema
    env_overrides: Schema
    full: Schema
    field_findings: tuple[FieldFinding, ...] = ()
    """Errors and infos, in document order."""


def read_component_schema(data: Any, path: DataPath) -> ComponentSchema:
    """Read the field `spec.schema` of a component definition or addon, and collect all errors.

    `data` is None if the field is missing.
    """
    findings = list(_check_structure(data, path))
    fields = data if isinstance(data, Mapping) else {}
    types, parameters_data, env_overrides_data = (
        _get_mapping(fields.get(name)) for name in (_TYPES, _PARAMETERS, _ENV_OVERRIDES)
    )
    reader = ShorthandReader(types, (*path, _TYPES), required_by_default=fields.get(_REQUIRED) is True)
    reader.check_types()
    parameters_schema = reader.read_section(parameters_data, (*path, _PARAMETERS)) or build_object_schema({}, [])
    env_overrides_schema = reader.read_section(env_overrides_data, (*path, _ENV_OVERRIDES)) or build_object_schema(
        {}, []
    )
    full, collisions = merge_sections(parameters_schema, env_overrides_schema, (*path, _ENV_OVERRIDES))
    return ComponentSchema(
        parameters_schema, env_overrides_schema, full, (*findings, *reader.field_findings, *collisions)
    )


def _get_mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _check_structure(data: Any, path: DataPath) -> Iterator[FieldFinding]:
    if data is not None and not isinstance(data, Mapping):
        yield FieldFinding(
            ComponentCodes.SHORTHAND_FIELD_TYPE,
            path,
            f"{format_path(path)} must be a mapping, not {describe_value(data)}",
        )
        return
    for name, value in (data or {}).items():
        field_path = (*path, str(name))
        if name == _REQUIRED:
            if not isinstance(value, bool):
                message = f"{format_path(field_path)} must be true or false, not {describe_value(value)}"
                yield FieldFinding(ComponentCodes.SHORTHAND_FIELD_TYPE, field_path, message)
        elif name in _KNOWN_FIELDS:
            if value is not None and not isinstance(value, Mapping):
                message = f"{format_path(field_path)} must be a mapping of names to types, not {describe_value(value)}"
                yield FieldFinding(ComponentCodes.SHORTHAND_FIELD_TYPE, field_path, message)
        elif not str(name).startswith(EXTENSION_PREFIX):
            yield FieldFinding(
                ComponentCodes.UNKNOWN_FIELD,
                field_path,
                f"{format_path(field_path)} is unknown; {_describe_allowed(str(name))}",
            )


def _describe_allowed(name: str) -> str:
    matches = get_close_matches(name, _KNOWN_FIELDS, 1)
    return f"allowed are {', '.join(_KNOWN_FIELDS)}" + (f"; did you mean {matches[0]}?" if matches else "")
