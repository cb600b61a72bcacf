"""Merge of the schema sections `parameters` and `envOverrides` of a component definition or addon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.api.openchoreo import SchemaSections
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.schema.openapi import Schema, build_object_schema, sort_keywords
from reconciler.controllers.components.schema.shorthand import ShorthandReader
from reconciler.controllers.components.schema.values import overlay_values, validate_default
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


def merge_sections(
    parameters: Schema, env_overrides: Schema, path: DataPath
) -> tuple[Schema, tuple[FieldFinding, ...]]:
    """Merge the schemas of `parameters` and `envOverrides`. Return an error for each field that both schemas contain.

    The location of an error is the field in `envOverrides`. `path` is the path of `envOverrides`.
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
    message = "is also declared in parameters; declare each field in only one section"
    findings.append(build_field_finding(ComponentCodes.SCHEMA_FIELD_COLLISION, path, message))
    return parameter


def _merge_default(
    merged: Schema, parameters: Schema, env_overrides: Schema, path: DataPath, findings: list[FieldFinding]
) -> Schema:
    """Merge the defaults of the sections `parameters` and `env_overrides`, and add the result to the schema `merged`.

    If only one section has a default, and this default is `{}` and not valid, e.g. because a field is required, add no
    default.
    """
    defaults = [section["default"] for section in (parameters, env_overrides) if "default" in section]
    if not defaults:
        return merged
    result = merged | {"default": _overlay_defaults(defaults, merged)}
    errors = validate_default(result)
    if errors and defaults == [{}]:
        return merged
    for error in errors:
        problem = "has a default that is not valid after the merge with the default in parameters"
        message = f"{problem}: {error.message}"
        findings.append(build_field_finding(ComponentCodes.SHORTHAND_DEFAULT_INVALID, path, message))
    return result


def _overlay_defaults(defaults: list[Any], schema: Schema) -> Any:
    mappings = [default for default in defaults if isinstance(default, Mapping)]
    return overlay_values(*mappings, schema=schema) if mappings else None


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


def build_component_schema(sections: SchemaSections, path: DataPath) -> ComponentSchema:
    """Convert the field `spec.schema` of a component definition or addon, and collect all errors."""
    types_path, parameters_path, env_overrides_path = (
        (*path, name) for name in ("types", "parameters", "envOverrides")
    )
    reader = ShorthandReader(sections.types, types_path, required_by_default=sections.required_by_default)
    reader.check_types()
    parameters = reader.read_section(sections.parameters, parameters_path) or build_object_schema({}, [])
    env_overrides = reader.read_section(sections.env_overrides, env_overrides_path) or build_object_schema({}, [])
    full, collisions = merge_sections(parameters, env_overrides, env_overrides_path)
    return ComponentSchema(parameters, env_overrides, full, (*reader.field_findings, *collisions))
