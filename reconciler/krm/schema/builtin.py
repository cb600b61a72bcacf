"""Merge schemas of built-in Kubernetes kinds, and merge schemas in YAML comments.

`scripts/make_schema_data.py` generates the data about built-in kinds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from reconciler.krm.schema.merge_schemas import (
    ATOMIC_SCHEMA,
    UNKNOWN_SCHEMA,
    MergeSchema,
    MergeSchemas,
    read_openapi_merge_schema,
)
from reconciler.lazy_dataclasses import dataclass, field, replace

_BY_NAME = MergeSchema(items=UNKNOWN_SCHEMA, keys=("name",))
# Merge keys of a Kustomization. As in kyaml (openapi/kustomizationapi), only the lists of generators have merge keys.
_KUSTOMIZATION = MergeSchema({"configMapGenerator": _BY_NAME, "secretGenerator": _BY_NAME})


@cache
def load_builtin_merge_schemas() -> MergeSchemas:
    """Return the merge schemas of all built-in kinds and of kustomize's Kustomization."""
    definitions = _load_definitions()
    kinds = _load_data()["kinds"].items()
    schemas = {
        (version, kind): definitions.find_schema(name) for version, names in kinds for kind, name in names.items()
    }
    return MergeSchemas({**schemas, ("kustomize.config.k8s.io/v1beta1", "Kustomization"): _KUSTOMIZATION})


def find_builtin_definition(name: str) -> MergeSchema | None:
    """Return the merge schema of a built-in type such as `core.v1.PodSpec`.

    Return None if the type is unknown or contains no list with merge keys.
    """
    definitions = _load_definitions()
    return definitions.find_schema(name) if name in definitions.fields else None


@cache
def _load_data() -> Any:
    return json.loads(resources.files(__package__).joinpath("merge_schemas.json").read_bytes())


@cache
def _load_definitions() -> _Definitions:
    return _Definitions(_load_data()["fields"])


@dataclass(frozen=True)
class _Definitions:
    """The data about built-in types, and a cache of the merge schemas that were created from the data."""

    fields: Mapping[str, Mapping[str, Any]]
    created: dict[str, MergeSchema] = field(default_factory=dict)

    def find_schema(self, name: str) -> MergeSchema:
        if name not in self.created:
            fields = {field_name: self._create_field(data) for field_name, data in self.fields[name].items()}
            self.created[name] = MergeSchema(fields, is_closed=True)
        return self.created[name]

    def _create_field(self, data: Any) -> MergeSchema:
        if isinstance(data, str):
            return self.find_schema(data)
        items = self.find_schema(data["items"]) if "items" in data else ATOMIC_SCHEMA
        return MergeSchema(items=items, keys=tuple(data["keys"]), defaults=data.get("defaults", {}), is_closed=True)


_REF_PREFIX = "#/definitions/"
_KUBERNETES_PREFIXES = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.")


def may_contain_schemas(text: str) -> bool:
    """Return whether a YAML text may contain a schema in a comment. This is fast, because the text is not parsed."""
    return '"$ref"' in text or '"x-kubernetes-' in text


def read_schema_comment(comment: str) -> MergeSchema | None:
    """Return the merge schema in a YAML comment. Return None if the comment contains no schema.

    The comment contains an OpenAPI schema or a reference to a built-in type, e.g. `# {"$ref": "#/definitions/…"}`.
    """
    text = comment.removeprefix("#").strip()
    if not text.startswith("{"):
        return None
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _read_schema(schema)


def _read_schema(schema: Any) -> MergeSchema | None:
    if not isinstance(schema, Mapping):
        return None
    if isinstance(name := schema.get("$ref"), str):
        return _find_definition(name)
    merge_schema = read_openapi_merge_schema(schema)
    items = _read_schema(schema.get("items"))
    return replace(merge_schema, items=items) if items else merge_schema


def _find_definition(name: str) -> MergeSchema | None:
    prefix = next((prefix for prefix in _KUBERNETES_PREFIXES if name.startswith(_REF_PREFIX + prefix)), None)
    return find_builtin_definition(name.removeprefix(_REF_PREFIX + prefix)) if prefix else None
