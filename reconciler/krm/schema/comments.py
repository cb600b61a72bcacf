"""Schemas in comments, by which people tell kpt of lists that it knows nothing of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.krm.schema.builtin import definition
from reconciler.krm.schema.crds import read_schema
from reconciler.krm.shapes import Shape

_DEFINITIONS = "#/definitions/"
_KUBERNETES = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.")


def may_hold_schemas(text: str) -> bool:
    """Tell whether it is worth looking for schemas in the comments of a document."""
    return '"$ref"' in text or '"x-kubernetes-' in text


def read_schema_comment(comment: str) -> Shape | None:
    """Return the shape that a comment describes: `# {"$ref": "#/definitions/…"}` or a schema; None for others."""
    text = comment.removeprefix("#").strip()
    if not text.startswith("{"):
        return None
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _shape(schema)


def _shape(schema: Any) -> Shape | None:
    if not isinstance(schema, Mapping):
        return None
    if isinstance(name := schema.get("$ref"), str):
        return _definition(name)
    shape = read_schema(schema)
    items = _shape(schema.get("items"))
    return replace(shape, items=items) if items else shape


def _definition(name: str) -> Shape | None:
    prefix = next((prefix for prefix in _KUBERNETES if name.startswith(_DEFINITIONS + prefix)), None)
    return definition(name.removeprefix(_DEFINITIONS + prefix)) if prefix else None
