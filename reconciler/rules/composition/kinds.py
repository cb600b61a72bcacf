"""The kinds that the component types of a config make, for those who write components of them (openchoreo 2, 14.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from reconciler.krm.findings import Finding, errors
from reconciler.rules.composition.library import read_library
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.read_catalogue import read_addon, read_definition
from reconciler.rules.composition.schema import json_schema
from reconciler.rules.composition.surroundings import Surroundings
from reconciler.rules.composition.types import read_types
from reconciler.snapshot.catalog import Catalog


@dataclass(frozen=True)
class MadeKind:
    """A kind that a component type makes; `schema` is the JSON Schema of its `spec`."""

    name: str
    component_type: str
    schema: Mapping[str, Any]


def made_kinds(catalog: Catalog, around: Surroundings) -> tuple[tuple[MadeKind, ...], tuple[Finding, ...]]:
    """Return the kinds of all types that are ready, and the errors of those that are not."""
    limits = around.limits
    library = read_library(catalog, partial(read_definition, limits=limits), partial(read_addon, limits=limits))
    types = read_types(catalog, library, around, Memory())
    plans = [one.compiled.plan for one in types if one.compiled.plan]
    found = tuple(MadeKind(plan.kind, plan.one.key.name, json_schema(plan.schema)) for plan in plans)
    told = (finding for one in types if one.compiled.plan is None for finding in one.compiled.findings)
    return found, tuple(errors((*library.findings, *told)))
