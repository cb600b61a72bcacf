"""JSON Schemas of manifests, generated from the models.

The schemas contain no references, because some editors do not resolve them. Deprecated names and notations are
included with a `deprecationMessage`, which editors show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema

from reconciler.api.base import ApiModel
from reconciler.api.manifest import KrmObject, Manifest

_DEFINITIONS = "#/$defs/"
_NAMESPACES = {
    "namespaced": {"type": ["string", "null"], "description": "Namespace of the object."},
    "default": {"type": ["string", "null"], "description": 'Namespace of the object. The default is "default".'},
    "cluster": {"enum": ["", None], "description": "Objects of this kind have no namespace."},
}
_ANY_SCALAR = {"type": ["string", "number", "boolean", "null"]}


class SchemaOf:
    """Annotation of a field whose JSON Schema is the schema of another model."""

    def __init__(self, model: type[ApiModel]) -> None:
        self.model = model

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        self.model.model_rebuild()
        return handler(self.model.__pydantic_core_schema__)


class _Generator(GenerateJsonSchema):
    """Generates the schema of a model. In this schema, unknown fields are invalid, and optional fields can be null."""

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        result = super().model_schema(schema)
        model = schema["cls"]
        if not issubclass(model, ApiModel):
            return result
        properties, required = result.get("properties", {}), result.get("required", [])
        for name, deprecation in model.deprecated_names.items():
            described = properties.get(deprecation.field) or TypeAdapter(deprecation.type).json_schema()
            properties[name] = {**described, "deprecationMessage": deprecation.advice}
        for name in model.deprecated_lists:
            properties[name] = _allow_single_item(properties[name])
        for name, aliases in _list_required_aliases(model, required).items():
            required.remove(name)
            result["anyOf"] = [_require(alternative) for alternative in (name, *aliases)]
        for name in properties:
            if name not in required:
                properties[name] = _allow_empty(properties[name], allow_text=name in model.blank_fields)
        for name, values in model.deprecated_values.items():
            properties[name] = _allow_values(properties[name], tuple(values))
        if not model.is_open:
            result["additionalProperties"] = False
        if model.extension_prefix:
            result["patternProperties"] = {f"^{model.extension_prefix}": {}}
        return result


def _list_required_aliases(model: type[ApiModel], required: Sequence[str]) -> dict[str, list[str]]:
    """Return a mapping from each required field with deprecated names to these names."""
    aliases: dict[str, list[str]] = {}
    for alias, deprecation in model.deprecated_names.items():
        if deprecation.field in required:
            aliases.setdefault(deprecation.field, []).append(alias)
    return aliases


def _require(name: str) -> JsonSchemaValue:
    # `properties` contains the descriptions of the fields. This rule has no description. Therefore, write the rule to
    # `patternProperties`.
    return {"required": [name], "patternProperties": {f"^{name}$": {"not": {"type": "null"}}}}


def _allow_single_item(schema: JsonSchemaValue) -> JsonSchemaValue:
    described: dict[str, Any] = {
        name: schema[name] for name in ("description", "default", "deprecationMessage") if name in schema
    }
    array = {name: value for name, value in schema.items() if name not in described}
    return {**described, "anyOf": [array, {**array["items"], "deprecationMessage": "Use a list."}]}


def _allow_empty(schema: JsonSchemaValue, *, allow_text: bool) -> JsonSchemaValue:
    """Return a schema that also accepts null and, if `allow_text`, the empty string."""
    if "$ref" in schema:
        return {**{key: value for key, value in schema.items() if key != "$ref"},
                "anyOf": [{"$ref": schema["$ref"]}, {"type": "null"}]}  # fmt: skip
    if "const" in schema:
        schema = {"enum": [schema["const"]], **{key: value for key, value in schema.items() if key != "const"}}
    if "enum" in schema and allow_text:
        # Allow null and the empty string outside of `enum`, because editors suggest all values in `enum`.
        values, rest = schema["enum"], {key: value for key, value in schema.items() if key not in ("enum", "type")}
        return {**rest, "anyOf": [{"enum": values}, {"type": ["string", "null"], "maxLength": 0}]}
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        if all(option.keys() == {"type"} for option in options):
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**rest, "type": [*(option["type"] for option in options), "null"]}
        if len(options) == 1:
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return _allow_empty({**options[0], **rest}, allow_text=allow_text)
        return {**schema, "anyOf": [*options, {"type": "null"}]}
    if "enum" in schema:
        return {**{key: value for key, value in schema.items() if key != "type"}, "enum": [*schema["enum"], None]}
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": [*dict.fromkeys([*types, "null"])]}
    return schema


def _allow_values(schema: JsonSchemaValue, values: tuple[str, ...]) -> JsonSchemaValue:
    options = [
        {**option, "enum": [*option["enum"], *values]} if "enum" in option else option for option in schema["anyOf"]
    ]
    return {**schema, "anyOf": options}


def build_model_schema(model: type[ApiModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model, without references."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    definitions = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inline(schema, definitions)
    return inlined


def _inline(node: Any, definitions: Mapping[str, Any], *, is_property_map: bool = False) -> Any:
    """Return a copy of a schema in which each reference is replaced by its definition.

    Titles and empty defaults are removed.
    """
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, Mapping):
        return node
    if is_property_map:
        return {name: _inline(schema, definitions) for name, schema in node.items()}
    if "$ref" in node:
        target = dict(definitions[node["$ref"].removeprefix(_DEFINITIONS)])
        target["description"] = target.get("description", "").partition("\n\n")[0]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _inline({**target, **rest}, definitions)
    schema = {
        key: _inline(value, definitions, is_property_map=key in ("properties", "patternProperties"))
        for key, value in node.items()
        if key != "title" and not (key == "default" and (value in (None, "", []) or isinstance(value, dict)))
    }
    options = schema.get("anyOf")
    if options and {"type": "null"} in options and len(options) == 2 and "properties" in options[0]:
        # If a mapping can be null, write `type: [object, null]` instead of `anyOf`.
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**options[0], "type": ["object", "null"], **rest}
    return schema


def build_manifest_schema(model: type[KrmObject]) -> dict[str, Any]:
    """Return the JSON Schema for objects of a kind. The keyword `$schema` is not included."""
    schema = build_model_schema(model)
    kind, description = model.__name__, schema["description"]
    properties = schema["properties"]
    properties["apiVersion"] = {"enum": [*model.api_versions], "description": "API group and version."}
    properties["kind"] = {"const": kind, "description": description}
    properties["metadata"] = _build_metadata_schema(model)
    optional = {"metadata"} if model.is_name_optional else set()
    if issubclass(model, Manifest):
        if model.is_open:
            del properties["status"]
        if model.model_fields["spec"].annotation is Any:
            del properties["spec"]
        optional |= {"spec"} if model.is_spec_optional else set()
    required = [
        name for name in ("apiVersion", "kind", "metadata", "spec") if name in properties and name not in optional
    ]
    rest = {key: value for key, value in schema.items() if key not in ("title", "description", "type", "required")}
    return {"title": kind, "description": description, "type": "object", "required": required, **rest}


def _build_metadata_schema(model: type[KrmObject]) -> dict[str, Any]:
    """Return the schema of `metadata`. Other fields are allowed, because Kubernetes defines them."""
    # YAML reads a version without quotes, e.g. 1.31, as a number. The reconciler accepts a number in a label, but
    # ignores an annotation that is not a string. Therefore, the schema must report such an annotation.
    annotations = {name: {"type": ["string", "null"], **schema} for name, schema in model.annotation_schemas.items()}
    is_optional = model.is_name_optional
    name = {"type": ["string", "null"]} if is_optional else {"type": "string", "minLength": 1}
    return {
        "description": "Metadata of the object.",
        "type": ["object", "null"] if is_optional else "object",
        "required": [] if is_optional else ["name"],
        "properties": {
            "name": {**name, "description": "Name of the object."},
            "namespace": _NAMESPACES[model.scope],
            "labels": {
                "description": "Labels of the object.",
                "type": ["object", "null"],
                "properties": {**model.label_schemas},
                "additionalProperties": _ANY_SCALAR,
            },
            "annotations": {
                "description": "Annotations of the object.",
                "type": ["object", "null"],
                "properties": annotations,
                "additionalProperties": _ANY_SCALAR,
            },
        },
    }
