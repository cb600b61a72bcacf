"""Scopes of resources: whether their kind lives in a namespace (kpt.md 15.2)."""

from __future__ import annotations

from typing import Literal

from reconciler.krm.schema import Scope, scope
from reconciler.packages.resource import Described


def scope_of(resource: Described) -> Scope | Literal["unknown"]:
    """Return the scope of a resource's kind; custom resources are `unknown`."""
    return scope(resource.group, resource.kind) or "unknown"
