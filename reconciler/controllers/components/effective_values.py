"""Effective values of a component or addon: merged layers of values, completed with the defaults of a schema.

This module also checks which fields an environment or a component type can set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

from reconciler.api.openchoreo import EXPRESSION_START
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import MAX_FINDINGS_PER_OBJECT, FieldFinding, build_field_finding
from reconciler.controllers.components.model import Values
from reconciler.controllers.components.schema.openapi import Schema, is_declared
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.controllers.components.schema.values import apply_defaults, overlay_values
from reconciler.controllers.nested_values import get_value
from reconciler.krm.field_text import format_path
from reconciler.krm.findings import Finding
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace


@dataclass(frozen=True, eq=False)
class ValueLayer:
    """Values that one object sets at one path. `name` is the name of the layer in the provenance, e.g. `platform`."""

    name: str
    manifest: ConfigObject
    path: DataPath
    data: Values

    def has_value(self, path: DataPath) -> bool:
        """Return whether the layer sets the value at `path`."""
        return get_value(self.data, path) is not ABSENT


@dataclass(frozen=True, eq=False)
class EffectiveValues:
    """Effective values of a component or addon, with findings about these values.

    `layers` contains the layers that the values come from. The layer with the lowest precedence is the first.
    """

    data: dict[str, Any]
    layers: tuple[ValueLayer, ...]
    schema: ComponentSchema
    findings: tuple[Finding, ...] = ()

    def find_origin(self, path: DataPath) -> ValueLayer | None:
        """Return the layer that set the value at `path`. Return None if the value is a default or is not set."""
        return next((layer for layer in reversed(self.layers) if layer.has_value(path)), None)

    @cached_property
    def bindings(self) -> Mapping[str, Any]:
        """Values of the template variables `spec`, `parameters` and `envOverrides`."""
        parts = {"parameters": self.schema.parameters, "envOverrides": self.schema.env_overrides}
        return {"spec": self.data, **{name: _extract_section(self.data, part) for name, part in parts.items()}}


def compute_effective_values(
    layers: Sequence[ValueLayer], schema: Schema, component_schema: ComponentSchema
) -> EffectiveValues:
    """Merge layers of values, add defaults, and validate the result.

    Each finding is located at the layer that sets the invalid value.

    Args:
        layers: Layers of values. The layer with the lowest precedence is the first.
        schema: `component_schema.full`, or a copy of it with other defaults.
        component_schema: Schema of the component definition or the addon.
    """
    data = apply_defaults(overlay_values(*(layer.data for layer in layers), schema=schema), schema)
    effective = EffectiveValues(data, tuple(layers), component_schema)
    findings = tuple(
        _locate_finding(finding, effective) for finding in validate_value(data, schema, ())[:MAX_FINDINGS_PER_OBJECT]
    )
    return replace(effective, findings=findings)


def _locate_finding(finding: FieldFinding, effective: EffectiveValues) -> Finding:
    """Return a finding with the location of the invalid value in the last layer that sets this value.

    If no layer sets the value, e.g. because a required field is missing, use the nearest parent that a layer sets.
    """
    layers = effective.layers
    for end in range(len(finding.path), -1, -1):
        for layer in reversed(layers):
            if layer.has_value(finding.path[:end]):
                location = layer.manifest.location_of((*layer.path, *finding.path))
                return finding.code.finding(f"{format_path(layer.path)}.{finding.message}", location)
    return finding.code.finding(finding.message)


def check_overrides(layer: ValueLayer, schema: ComponentSchema) -> Iterator[Finding]:
    """Yield the errors in the overrides of an EnvBinding. Overrides can only set fields of `envOverrides`."""
    for finding in validate_value(layer.data, schema.env_overrides, (), required=False)[:MAX_FINDINGS_PER_OBJECT]:
        location = layer.manifest.location_of((*layer.path, *finding.path))
        if finding.code is ComponentCodes.UNKNOWN_FIELD and is_declared(schema.parameters, finding.path):
            field = format_path((*layer.path, *finding.path))
            message = (
                f"{field} is declared in parameters, so environments cannot override it; only fields in envOverrides"
                " are allowed"
            )
            yield ComponentCodes.NOT_OVERRIDABLE.finding(message, location)
        else:
            yield finding.code.finding(f"{format_path(layer.path)}.{finding.message}", location)
    for path in _find_removed_mappings(layer.data, schema, ()):
        field = format_path((*layer.path, *path))
        message = f"{field} must not be null, because it contains fields that are declared in parameters"
        yield ComponentCodes.NOT_OVERRIDABLE.finding(message, layer.manifest.location_of((*layer.path, *path)))


def _find_removed_mappings(data: Values, schema: ComponentSchema, path: DataPath) -> Iterator[DataPath]:
    """Yield the path of each forbidden null in an override.

    A null removes the whole value at its path. It is forbidden if the value is a mapping that contains fields of
    `parameters`, because overrides can only change fields of `envOverrides`.
    """
    for key, value in data.items():
        field_path = (*path, str(key))
        if not (is_declared(schema.parameters, field_path) and is_declared(schema.env_overrides, field_path)):
            continue
        if value is None:
            yield field_path
        elif isinstance(value, Mapping):
            yield from _find_removed_mappings(value, schema, field_path)


def check_static_values(layer: ValueLayer, schema: Schema) -> Iterator[Finding]:
    """Yield the errors in addon values that a component type sets. These values must not contain expressions.

    A missing required field is not an error, because other layers can set the field.
    """
    groups = (validate_value(layer.data, schema, layer.path, required=False), _find_expressions(layer.data, layer.path))
    yield from (finding.to_finding(layer.manifest) for finding in islice(chain(*groups), MAX_FINDINGS_PER_OBJECT))


def _find_expressions(value: Any, path: DataPath) -> Iterator[FieldFinding]:
    match value:
        case str() if EXPRESSION_START in value:
            yield build_field_finding(
                ComponentCodes.CONFIG_EXPRESSION_NOT_ALLOWED,
                path,
                "must not contain an expression, because only templates can contain expressions",
            )
        case list():
            for index, item in enumerate(value):
                yield from _find_expressions(item, (*path, index))
        case Mapping():
            for key, item in value.items():
                yield from _find_expressions(item, (*path, str(key)))


def _extract_section(data: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return only the values that `schema` declares. `schema` is the schema of one section, e.g. `parameters`."""
    section_values: dict[str, Any] = {}
    for name, node in schema.get("properties", {}).items():
        if name in data:
            value = data[name]
            is_nested = "properties" in node and isinstance(value, Mapping)
            section_values[name] = _extract_section(value, node) if is_nested else value
    return section_values
