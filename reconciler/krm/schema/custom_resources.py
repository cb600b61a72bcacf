"""Validation of custom resources with the schemas of their CustomResourceDefinitions.

A CustomResourceDefinition is untrusted input. A part of the schema is ignored if it has the wrong type, e.g. a list
instead of a mapping. CEL validation rules are not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reconciler.krm.schema.validation import Violation, create_draft4_validator, find_violations
from reconciler.lazy_dataclasses import dataclass, field

if TYPE_CHECKING:
    import jsonschema_rs

_API_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
# Limit the nesting and the number of nodes of a schema, because a CustomResourceDefinition is untrusted input.
_MAX_DEPTH = 100
_MAX_NODES = 200_000
# Schema keywords that are copied unchanged, because they have the same meaning in Kubernetes and in JSON Schema.
_SHARED_KEYWORDS = (
    "type", "enum", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "pattern",
)  # fmt: skip
_OBJECT = {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"}}


@dataclass(frozen=True)
class CustomResourceVersion:
    """One version of a custom resource.

    Attributes:
        served: Whether the API server serves this version.
        schema: The OpenAPI schema of this version. None if the CustomResourceDefinition contains no schema.
    """

    served: bool
    schema: Mapping[str, Any] | None

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator | None:
        if self.schema is None:
            return None
        converted = _SchemaConverter().convert_root(self.schema)
        try:
            validator: jsonschema_rs.Validator = create_draft4_validator(converted)
        except ValueError:
            # Ignore an invalid schema, e.g. a schema with an unsupported regular expression, because the API server
            # rejects such a CustomResourceDefinition.
            return None
        return validator

    def find_violations(self, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return the schema violations in a custom resource. Return None if this version has no valid schema."""
        return find_violations(self._validator, data) if self._validator else None


@dataclass(frozen=True)
class CustomResourceKinds:
    """All known kinds of custom resources. `kinds` maps (group, kind) to the versions of the kind by name."""

    kinds: Mapping[tuple[str, str], Mapping[str, CustomResourceVersion]] = field(default_factory=dict)

    def contains(self, group: str, kind: str) -> bool:
        """Return whether a CustomResourceDefinition for this kind is known."""
        return (group, kind) in self.kinds

    def get_versions(self, group: str, kind: str) -> Mapping[str, CustomResourceVersion]:
        """Return the versions of a kind by name, e.g. "v1". Return an empty mapping if the kind is unknown."""
        return self.kinds.get((group, kind), {})

    def with_overrides(self, other: CustomResourceKinds) -> CustomResourceKinds:
        """Return the kinds in `self` and `other`. If both contain a kind, use the definition in `other`."""
        return CustomResourceKinds({**self.kinds, **other.kinds})


def read_custom_resource_kinds(definitions: Iterable[Mapping[str, Any]]) -> CustomResourceKinds:
    """Return the kinds that CustomResourceDefinitions define. Ignore other objects and invalid definitions."""
    kinds: dict[tuple[str, str], Mapping[str, CustomResourceVersion]] = {}
    for definition in definitions:
        spec = _get_mapping(definition.get("spec"))
        group, kind = spec.get("group"), _get_mapping(spec.get("names")).get("kind")
        is_crd = definition.get("kind") == "CustomResourceDefinition" and definition.get("apiVersion") in _API_VERSIONS
        if is_crd and isinstance(group, str) and isinstance(kind, str) and (versions := _read_versions(spec)):
            kinds[group, kind] = versions
    return CustomResourceKinds(kinds)


def _read_versions(spec: Mapping[str, Any]) -> dict[str, CustomResourceVersion]:
    shared = _get_mapping(spec.get("validation")).get("openAPIV3Schema")
    entries = spec.get("versions") or [{"name": spec.get("version")}]
    versions: dict[str, CustomResourceVersion] = {}
    for entry in (entry for entry in entries if isinstance(entry, Mapping)) if isinstance(entries, list) else ():
        schema = _get_mapping(entry.get("schema")).get("openAPIV3Schema", shared)
        if isinstance(name := entry.get("name"), str):
            is_served = entry.get("served") is not False
            versions[name] = CustomResourceVersion(is_served, schema if isinstance(schema, Mapping) else None)
    return versions


class _SchemaConverter:
    """Converter from a structural schema (Kubernetes) to a JSON Schema.

    The JSON Schema rejects the fields that the API server would prune.
    """

    def __init__(self) -> None:
        self._remaining_nodes = _MAX_NODES

    def convert_root(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of a whole custom resource. Always allow `apiVersion`, `kind` and `metadata`."""
        converted = self.convert(schema, 0)
        return {**converted, "properties": {**_get_mapping(converted.get("properties")), **_OBJECT}}

    def convert(self, schema: Any, depth: int, *, is_closed: bool = True) -> dict[str, Any]:
        """Return the JSON Schema for a structural schema.

        If `is_closed` is true, the JSON Schema rejects unknown fields.
        """
        self._remaining_nodes -= 1
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or self._remaining_nodes < 0:
            return {}
        converted = {name: schema[name] for name in _SHARED_KEYWORDS if name in schema}
        if schema.get("x-kubernetes-int-or-string") is True:
            converted["type"] = ["integer", "string"]
        converted |= self._convert_fields(schema, depth, is_closed)
        if isinstance(schema.get("items"), Mapping):
            converted["items"] = self.convert(schema["items"], depth + 1, is_closed=is_closed)
        for name in ("allOf", "anyOf", "oneOf"):
            if isinstance(schemas := schema.get(name), list) and schemas:
                # Allow unknown fields in `allOf`, `anyOf` and `oneOf`, because other parts of the schema define the
                # fields.
                converted[name] = [self.convert(part, depth + 1, is_closed=False) for part in schemas]
        if isinstance(schema.get("not"), Mapping):
            converted["not"] = self.convert(schema["not"], depth + 1, is_closed=False)
        if schema.get("nullable") is True:
            return _make_nullable(converted)
        return converted

    def _convert_fields(self, schema: Mapping[str, Any], depth: int, is_closed: bool) -> dict[str, Any]:
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        converted: dict[str, Any] = {}
        if isinstance(properties, Mapping):
            converted["properties"] = {
                str(name): self.convert(value, depth + 1, is_closed=is_closed) for name, value in properties.items()
            }
            if schema.get("x-kubernetes-embedded-resource") is True:
                converted["properties"] |= _OBJECT
        if isinstance(additional, Mapping):
            converted["additionalProperties"] = self.convert(additional, depth + 1, is_closed=is_closed)
        elif is_closed and properties and additional is None and not _preserves_unknown_fields(schema):
            converted["additionalProperties"] = False
        return converted


def _preserves_unknown_fields(schema: Mapping[str, Any]) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True


def _make_nullable(converted: dict[str, Any]) -> dict[str, Any]:
    if (
        isinstance(converted.get("type"), str)
        and "enum" not in converted
        and not {"allOf", "anyOf", "oneOf"} & converted.keys()
    ):
        return {**converted, "type": [converted["type"], "null"]}
    return {"anyOf": [{"type": "null"}, converted]}


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
