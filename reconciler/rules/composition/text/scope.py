"""Scopes: which variables the templates of a place may use, and what is known of them (openchoreo 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from reconciler.expressions import Environment, Limits

BASE: Final = ("metadata", "spec", "parameters", "envOverrides", "build", "workload", "env")
"""What the templates of a component see."""

ADDON: Final = (*BASE, "instanceId", "addon", "resources")
"""What an addon sees in what it creates, in its conditions and rules, and where it looks for what it patches."""

PATCH: Final = (*ADDON, "target")
"""What an addon sees in the operations of a patch."""

RESERVED: Final = frozenset({*PATCH, "component"})
"""What no variable of a loop may be called. `component` is not offered: an addon must not know what it works on."""

Shape = Mapping[str, Any] | None
"""What is known of a value: its fields and their shapes; None where anything may be, {} where no field can be."""

_SCALAR: Final[Shape] = {}
_KNOWN: Final[Mapping[str, Shape]] = {
    "metadata": {"name": _SCALAR, "namespace": _SCALAR, "labels": None, "annotations": None},
    "instanceId": _SCALAR,
    "addon": {"name": _SCALAR, "instanceId": _SCALAR},
    "resources": _SCALAR,
}
_DEFAULT_LIMITS: Final = Limits()
_DEEPEST: Final = 16
"""How deep fields are checked before a render."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The variables of a place with their shapes, and what one render of it may cost."""

    shapes: Mapping[str, Shape]
    limits: Limits = _DEFAULT_LIMITS

    @cached_property
    def environment(self) -> Environment:
        """What expressions are compiled in."""
        return Environment(self.shapes, project_functions=True, limits=self.limits)

    def including(self, variable: str) -> Scope:
        """Return the scope inside of a loop, whose variable may be anything."""
        return replace(self, shapes={**self.shapes, variable: None})


def declare(
    variables: tuple[str, ...],
    spec: Mapping[str, Any],
    parameters: Mapping[str, Any],
    env_overrides: Mapping[str, Any],
    limits: Limits = _DEFAULT_LIMITS,
) -> Scope:
    """Return the scope of `BASE`, `ADDON` or `PATCH`; the values are described by OpenAPI schemas."""
    schemas = {"spec": spec, "parameters": parameters, "envOverrides": env_overrides}
    known = {**_KNOWN, **{name: shape_of(schema) for name, schema in schemas.items()}}
    return Scope({name: known.get(name) for name in variables}, limits)


def shape_of(schema: Mapping[str, Any], depth: int = 0) -> Shape:
    """Return what an OpenAPI schema says of a value's fields; maps and what is free-form may have any."""
    kind = schema.get("type")
    if kind is None or depth == _DEEPEST:
        return None
    if kind != "object":
        return _SCALAR
    if "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    return {name: shape_of(field, depth + 1) for name, field in schema.get("properties", {}).items()}
