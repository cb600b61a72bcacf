"""JSON Schemas of all kinds that a config or a package can contain, for editors and validators."""

from reconciler.output.schemas.json_schemas import (
    ALL,
    INDEX,
    KINDS,
    SETTINGS,
    Kind,
    build_component_kind,
    build_index_schema,
    build_kind_schema,
    build_schema_files,
    find_schema,
    format_kind_lines,
    format_schema,
)

__all__ = [
    "ALL",
    "INDEX",
    "KINDS",
    "SETTINGS",
    "Kind",
    "build_component_kind",
    "build_index_schema",
    "build_kind_schema",
    "build_schema_files",
    "find_schema",
    "format_kind_lines",
    "format_schema",
]
