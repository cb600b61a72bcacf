"""Validators that read valid manifests fast.

The complete validator of a model calls Python code for each mapping, to report all errors with their finding codes.
Most manifests are valid. A fast validator calls Python code only for models with deprecated notation or with rules
about several fields. It stops at the first error. After an error, the complete validator reads the manifest again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from pydantic import BaseModel, ValidationInfo
from pydantic_core import SchemaValidator

from reconciler.lazy_dataclasses import dataclass

FieldPreparation = Callable[[Any, ValidationInfo], Any]
"""Function that returns the fields of a mapping in current notation, without null values."""
# Keys of a pydantic core schema that validators do not use.
_UNUSED_KEYS = ("serialization", "metadata")


class InvalidMappingError(Exception):
    """Raised by a fast validator if a mapping has an error."""


class ErrorHandling:
    """Base class of annotations whose method `validate` only handles errors. Fast validators skip this method."""


@dataclass(frozen=True)
class FastValidatorBuilder:
    """Builds the fast validators of models.

    Attributes:
        read_name: Name of the class method that the complete validators call for each mapping.
        create_preparation: Function that returns the `FieldPreparation` of a model, or None if no preparation is
            necessary.
    """

    read_name: str
    create_preparation: Callable[[Any], FieldPreparation | None]

    def build(self, model: type[BaseModel]) -> SchemaValidator:
        """Return the fast validator of a model."""
        model.model_rebuild()
        return SchemaValidator(self._replace(model.__pydantic_core_schema__))

    def _replace(self, node: Any) -> Any:
        """Return a copy of a core schema in which the models do not call the method `read_name`."""
        if isinstance(node, list):
            return [self._replace(item) for item in node]
        if not isinstance(node, dict):
            return node
        # Remove keys only from schemas. `node` can also be a mapping from field names to schemas. In this mapping, the
        # value of a field `type` is a schema and not a string.
        unused_keys = _UNUSED_KEYS if isinstance(node.get("type"), str) else ()
        schema = {key: self._replace(value) for key, value in node.items() if key not in unused_keys}
        if node.get("type") != "function-wrap":
            return schema
        function = node["function"]["function"]
        if isinstance(getattr(function, "__self__", None), ErrorHandling):
            return schema["schema"]
        return self._replace_model(schema) if getattr(function, "__name__", "") == self.read_name else schema

    def _replace_model(self, schema: Any) -> Any:
        model_schema = _refuse_unknown_fields(schema["schema"])
        preparation = self.create_preparation(model_schema["cls"])
        if preparation is None:
            return {**model_schema, "ref": schema["ref"]}
        function = {"type": "with-info", "function": preparation}
        return {"type": "function-before", "function": function, "schema": model_schema, "ref": schema["ref"]}


def _refuse_unknown_fields(model_schema: Any) -> Any:
    model = model_schema["cls"]
    if model.is_open or model.extension_prefix:
        return model_schema
    return {**model_schema, "schema": {**model_schema["schema"], "extra_behavior": "forbid"}}


def accepts_null_as_value(model: type[BaseModel]) -> bool:
    """Return whether a model has a field for which null and an absent field have different meanings."""
    return any(
        info.default is not None and (info.annotation is Any or type(None) in get_args(info.annotation))
        for info in model.model_fields.values()
    )
