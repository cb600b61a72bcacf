"""JSON Schemas of every kind that a config, or a package, may hold: what editors show, complete and underline.

Whether a schema says what the readers of its kind read, tests tell: name by name, and by thousands of documents.
"""

from reconciler.reporting.schemas.files import INDEX, index_schema, schema_files, schema_text
from reconciler.reporting.schemas.kinds import KINDS, Kind, component_kind, kind_schema
from reconciler.reporting.schemas.listing import ALL, SETTINGS, kind_lines, kinds_data, schema_named

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
