"""JSON Schemas of every kind that a config, or a package, may hold: what editors show, complete and underline.

Whether a schema says what the readers of its kind read, tests tell: name by name, and by thousands of documents.
"""

from reconciler.output.schemas.json_schemas import (
    ALL,
    INDEX,
    KINDS,
    SETTINGS,
    Kind,
    component_kind,
    index_schema,
    kind_lines,
    kind_schema,
    kinds_data,
    schema_files,
    schema_named,
    schema_text,
)

__all__ = [
    "ALL",
    "INDEX",
    "KINDS",
    "SETTINGS",
    "Kind",
    "component_kind",
    "index_schema",
    "kind_lines",
    "kind_schema",
    "kinds_data",
    "schema_files",
    "schema_named",
    "schema_text",
]
