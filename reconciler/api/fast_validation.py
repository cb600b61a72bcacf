"""Validators for input that is probably valid.

A validator of pydantic calls `ApiModel` twice for each mapping: before and after the validation of the fields. Most
mappings are valid and need only one short check before it. The validators of this module only run this check. They
reject some valid input too, so the caller must then use the complete validator, which also reports all errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from pydantic_core import CoreSchema, SchemaValidator, core_schema

Check = Callable[[Any], Any]
"""Returns a mapping. Raises a ValueError if the complete validator must read the mapping."""
_VALUES = ("default", "cls", "config", "metadata")
"""Keys of schemas that contain no schema."""


def build_fast_validator(
    model: type[BaseModel], find_check: Callable[[Callable[..., Any]], Check | None]
) -> SchemaValidator:
    """Return a validator for a model, in which checks replace wrap validators.

    Args:
        model: The model.
        find_check: Returns the check that replaces a wrap validator, or None to keep it.
    """
    model.model_rebuild()
    schema: CoreSchema = _replace_wrap_validators(model.__pydantic_core_schema__, find_check)
    return SchemaValidator(schema)


def _replace_wrap_validators(schema: Any, find_check: Callable[[Callable[..., Any]], Check | None]) -> Any:
    if isinstance(schema, list):
        return [_replace_wrap_validators(item, find_check) for item in schema]
    if not isinstance(schema, dict):
        return schema
    check = find_check(schema["function"]["function"]) if schema.get("type") == "function-wrap" else None
    if check:
        inner = _replace_wrap_validators(schema["schema"], find_check)
        return core_schema.no_info_before_validator_function(check, inner, ref=schema.get("ref"))
    return {
        key: value if key in _VALUES else _replace_wrap_validators(value, find_check) for key, value in schema.items()
    }
