"""Schemas of Kubernetes kinds: list merge keys, scopes of kinds, validation, and removed API versions."""

from reconciler.krm.schema.builtin import load_builtin_merge_schemas, may_contain_schemas, read_schema_comment
from reconciler.krm.schema.kubernetes_apis import KindScope, find_kind_scope
from reconciler.krm.schema.merge_schemas import ListKeys, MergeSchemas, read_list_key_table

__all__ = [
    "KindScope",
    "ListKeys",
    "MergeSchemas",
    "find_kind_scope",
    "load_builtin_merge_schemas",
    "may_contain_schemas",
    "read_list_key_table",
    "read_schema_comment",
]
