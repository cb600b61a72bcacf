"""What tests of patches are made of: operations as they are written, and what they do to an object."""

from __future__ import annotations

import copy
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.rules.composition.faults import FaultError
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.apply import apply
from reconciler.rules.composition.patching.operations import Operation, OperationTemplate, read_operation

AT = ("spec", "patches", 0, "patch")


def operation(op: str, path: str, value: Any = ABSENT) -> Operation:
    """Return an operation that can be read."""
    written = {"op": op, "path": path} | ({} if value is ABSENT else {"value": value})
    found = read_operation(written, AT)
    assert isinstance(found, OperationTemplate), found
    return found.rendered(found.value, found.path)


def patched(document: Any, op: str, path: str, value: Any = ABSENT, *, skip_missing: bool = False) -> Any:
    """Return a document after an operation, or the name of the code that it ends with."""
    one = copy.deepcopy(document)
    try:
        apply(one, operation(op, path, value), Allowance(), skip_missing=skip_missing)
    except FaultError as error:
        return error.fault.code.name
    return one
