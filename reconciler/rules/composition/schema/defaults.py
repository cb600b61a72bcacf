"""Whether a default is one: what a schema fills in must satisfy the schema itself (openchoreo 3.3, 3.4)."""

from __future__ import annotations

from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.schema.dialect import Schema
from reconciler.rules.composition.schema.validation import violations_once
from reconciler.rules.composition.schema.values import with_defaults


def default_violations(schema: Schema) -> tuple[Fault, ...]:
    """Return what is wrong with the default of a schema, once the defaults inside have filled it (openchoreo 3.3)."""
    return violations_once(with_defaults(schema["default"], schema), schema, ("default",))


def fills_itself(schema: Schema) -> bool:
    """Tell whether a field is {} where it is absent, so that the defaults inside apply (openchoreo 3.4)."""
    fields: dict[str, Schema] = schema.get("properties", {})
    if "default" in schema or not any("default" in one for one in fields.values()):
        return False
    return not default_violations(schema | {"default": {}})
