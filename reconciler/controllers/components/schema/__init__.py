"""Schemas of components: the shorthand notation, its conversion to OpenAPI, and the validation of values.

A schema does not change after its creation, so that its validator can be cached. These modules do not depend on the
config objects that contain schemas.
"""

from reconciler.controllers.components.schema.crd import (
    DeveloperAddon,
    build_crd,
    build_developer_schema,
    override_defaults,
)
from reconciler.controllers.components.schema.openapi import Schema, build_json_schema, is_declared
from reconciler.controllers.components.schema.sections import ComponentSchema, build_component_schema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.controllers.components.schema.values import apply_defaults, overlay_values

__all__ = [
    "ComponentSchema",
    "DeveloperAddon",
    "Schema",
    "apply_defaults",
    "build_component_schema",
    "build_crd",
    "build_developer_schema",
    "build_json_schema",
    "is_declared",
    "overlay_values",
    "override_defaults",
    "validate_value",
]
