"""Schemas of components: shorthand as OpenAPI, and values against it (openchoreo 3, 4, 11 steps 8 and 9).

A schema is never changed once it is made, so that its validator can be remembered with it. Which object has a schema,
and which values are laid over which, is not known here.
"""

from reconciler.rules.composition.schema.crd import crd
from reconciler.rules.composition.schema.developer import DeveloperAddon, defaulted, developer_schema
from reconciler.rules.composition.schema.dialect import Schema, declares
from reconciler.rules.composition.schema.draft import json_schema
from reconciler.rules.composition.schema.sections import ComponentSchema, read_schema
from reconciler.rules.composition.schema.validation import violations
from reconciler.rules.composition.schema.values import overlay, with_defaults

__all__ = [
    "ComponentSchema",
    "DeveloperAddon",
    "Schema",
    "crd",
    "declares",
    "defaulted",
    "developer_schema",
    "json_schema",
    "overlay",
    "read_schema",
    "violations",
    "with_defaults",
]
