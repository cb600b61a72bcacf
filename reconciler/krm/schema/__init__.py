"""Schema knowledge: which lists of a kind are merged by element, and whether its objects live in a namespace."""

from reconciler.krm.schema.builtin import builtin_shapes
from reconciler.krm.schema.comments import may_hold_schemas, read_schema_comment
from reconciler.krm.schema.known import Shapes
from reconciler.krm.schema.scopes import Scope, scope
from reconciler.krm.schema.table import ListKeys, read_key_table

__all__ = [
    "ListKeys",
    "Scope",
    "Shapes",
    "builtin_shapes",
    "may_hold_schemas",
    "read_key_table",
    "read_schema_comment",
    "scope",
]
