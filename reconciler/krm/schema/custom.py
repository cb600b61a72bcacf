"""Custom resources: what is wrong with one, by the schema of its CustomResourceDefinition.

A definition is anybody's text. What has the wrong type says nothing, and its rules in CEL are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reconciler.krm.schema.validation import Violation, draft4_validator, violations_of

if TYPE_CHECKING:
    import jsonschema_rs

_API_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
# of one schema in another, and of all that is read of one
_DEEPEST = 100
_MOST_NODES = 200_000
# what Kubernetes' schemas and JSON Schema say alike
_COPIED = (
    "type", "enum", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "pattern",
)  # fmt: skip
_OBJECT = {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"}}


@dataclass(frozen=True)
class CustomVersion:
    """One version of a custom kind: whether clusters serve it, and its schema, None where it has none."""

    served: bool
    schema: Mapping[str, Any] | None

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator | None:
        if self.schema is None:
            return None
        converted = _Conversion().root(self.schema)
        try:
            validator: jsonschema_rs.Validator = draft4_validator(converted)
        except ValueError:
            # a pattern, say, that no engine takes: the API server would refuse the definition
            return None
        return validator

    def violations(self, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return what is wrong with a resource; None where the definition does not say."""
        return violations_of(self._validator, data) if self._validator else None


@dataclass(frozen=True)
class CustomKinds:
    """The versions of custom kinds, by group and kind, of a few definitions."""

    kinds: Mapping[tuple[str, str], Mapping[str, CustomVersion]] = field(default_factory=dict)

    def knows(self, group: str, kind: str) -> bool:
        """Tell whether a kind is defined."""
        return (group, kind) in self.kinds

    def versions(self, group: str, kind: str) -> Mapping[str, CustomVersion]:
        """Return the versions of a kind."""
        return self.kinds.get((group, kind), {})

    def overlaid(self, other: CustomKinds) -> CustomKinds:
        """Return these kinds with others over them."""
        return CustomKinds({**self.kinds, **other.kinds})


def read_custom_kinds(definitions: Iterable[Mapping[str, Any]]) -> CustomKinds:
    """Return what CustomResourceDefinitions define; other documents, and what is no definition, say nothing."""
    found: dict[tuple[str, str], Mapping[str, CustomVersion]] = {}
    for one in definitions:
        spec = _mapping(one.get("spec"))
        group, kind = spec.get("group"), _mapping(spec.get("names")).get("kind")
        is_crd = one.get("kind") == "CustomResourceDefinition" and one.get("apiVersion") in _API_VERSIONS
        if is_crd and isinstance(group, str) and isinstance(kind, str) and (versions := _versions(spec)):
            found[group, kind] = versions
    return CustomKinds(found)


def _versions(spec: Mapping[str, Any]) -> dict[str, CustomVersion]:
    shared = _mapping(spec.get("validation")).get("openAPIV3Schema")
    listed = spec.get("versions") or [{"name": spec.get("version")}]
    found: dict[str, CustomVersion] = {}
    for one in (each for each in listed if isinstance(each, Mapping)) if isinstance(listed, list) else ():
        schema = _mapping(one.get("schema")).get("openAPIV3Schema", shared)
        if isinstance(name := one.get("name"), str):
            found[name] = CustomVersion(one.get("served") is not False, schema if isinstance(schema, Mapping) else None)
    return found


class _Conversion:
    """Turns a structural schema into JSON Schema that knows no other fields than those that clusters keep."""

    def __init__(self) -> None:
        self._left = _MOST_NODES

    def root(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of whole resources: what all objects have is none of a definition's business."""
        converted = self.convert(schema, 0)
        return {**converted, "properties": {**_mapping(converted.get("properties")), **_OBJECT}}

    def convert(self, schema: Any, depth: int, *, closes: bool = True) -> dict[str, Any]:
        """Return the JSON Schema of a structural one; `closes`: fields that it does not name are none."""
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self._left < 0:
            return {}
        found = {name: schema[name] for name in _COPIED if name in schema}
        if schema.get("x-kubernetes-int-or-string") is True:
            found["type"] = ["integer", "string"]
        found |= self._fields(schema, depth, closes)
        if isinstance(schema.get("items"), Mapping):
            found["items"] = self.convert(schema["items"], depth + 1, closes=closes)
        for name in ("allOf", "anyOf", "oneOf"):
            if isinstance(listed := schema.get(name), list) and listed:
                # these only restrict values of what is declared beside them
                found[name] = [self.convert(one, depth + 1, closes=False) for one in listed]
        if isinstance(schema.get("not"), Mapping):
            found["not"] = self.convert(schema["not"], depth + 1, closes=False)
        if schema.get("nullable") is True:
            return _nullable(found)
        return found

    def _fields(self, schema: Mapping[str, Any], depth: int, closes: bool) -> dict[str, Any]:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        found: dict[str, Any] = {}
        if isinstance(properties, Mapping):
            found["properties"] = {
                str(name): self.convert(one, depth + 1, closes=closes) for name, one in properties.items()
            }
            if schema.get("x-kubernetes-embedded-resource") is True:
                found["properties"] |= _OBJECT
        if isinstance(others, Mapping):
            found["additionalProperties"] = self.convert(others, depth + 1, closes=closes)
        elif closes and properties and others is None and not _keeps_unknown(schema):
            found["additionalProperties"] = False
        return found


def _keeps_unknown(schema: Mapping[str, Any]) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True


def _nullable(found: dict[str, Any]) -> dict[str, Any]:
    if isinstance(found.get("type"), str) and "enum" not in found and not {"allOf", "anyOf", "oneOf"} & found.keys():
        return {**found, "type": [found["type"], "null"]}
    return {"anyOf": [{"type": "null"}, found]}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
