"""Helpers for tests of patches: build operations and apply them to objects."""

from __future__ import annotations

import copy
from typing import Any

from reconciler.api.base import read_model
from reconciler.api.openchoreo import COMPONENT_TEMPLATES, PatchOperationFields
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.operations import (
    OperationTemplate,
    PatchOperation,
    apply_operation,
    build_operation_template,
)
from reconciler.krm.merge3.rules import ABSENT

AT = ("spec", "patches", 0, "patch")


def read_operation(written: Any) -> OperationTemplate | tuple[FieldFinding, ...]:
    """Read an operation. Return its errors if it is invalid."""
    result = read_model(PatchOperationFields, written, COMPONENT_TEMPLATES, AT)
    if result.model is None:
        codes = ComponentCodes.by_name
        return tuple(
            FieldFinding(codes[error.code or "AddonInvalid"], error.path, error.text) for error in result.errors
        )
    operation = build_operation_template(result.model, AT)
    return (operation,) if isinstance(operation, FieldFinding) else operation


def build_operation(op: str, path: str, value: Any = ABSENT) -> PatchOperation:
    """Build a valid patch operation."""
    written = {"op": op, "path": path} | ({} if value is ABSENT else {"value": value})
    result = read_operation(written)
    assert isinstance(result, OperationTemplate), result
    return result.render(result.value, result.path)


def patch_copy(document: Any, op: str, path: str, value: Any = ABSENT, *, skip_missing: bool = False) -> Any:
    """Return a copy of a document after an operation, or the name of the finding code."""
    result = copy.deepcopy(document)
    try:
        apply_operation(result, build_operation(op, path, value), PatchBudget(), skip_missing=skip_missing)
    except FieldFindingError as error:
        return error.field_finding.code.name
    return result
