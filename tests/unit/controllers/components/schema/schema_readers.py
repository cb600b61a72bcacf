"""Reads schemas in shorthand from data, as the readers of component definitions and addons do."""

from __future__ import annotations

from typing import Any

from reconciler.api.base import read_model
from reconciler.api.openchoreo import COMPONENT_TEMPLATES, SchemaSections
from reconciler.controllers.components.schema.sections import ComponentSchema, build_component_schema
from reconciler.krm.yaml import DataPath


def read_component_schema(data: Any, path: DataPath) -> ComponentSchema:
    """Return the schema of valid sections. None are the sections of an object without a schema."""
    sections = read_model(SchemaSections, {} if data is None else data, COMPONENT_TEMPLATES, path).model
    assert sections is not None
    return build_component_schema(sections, path)
