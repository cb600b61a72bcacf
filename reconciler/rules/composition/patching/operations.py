"""Operations of patches as addons write them: faults are told before anything is rendered (openchoreo 8.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from reconciler.expressions import OMIT
from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import (
    ADDON_INVALID,
    PATCH_OP_UNSUPPORTED,
    PATH_AMBIGUOUS_ADD,
    PATH_DASH_ONLY_ADD,
    PATH_SYNTAX,
    UNKNOWN_FIELD,
)
from reconciler.rules.composition.faults import Fault, FaultError, fault_of
from reconciler.rules.composition.marks import OPEN, OWN
from reconciler.rules.composition.patching.locate import Op
from reconciler.rules.composition.patching.paths import PatchPath, parse_path
from reconciler.rules.fields import meant, named, shown

OPS: tuple[Op, ...] = get_args(Op)
_FIELDS = ("op", "path", "value")


@dataclass(frozen=True)
class Operation:
    """One operation that can be applied; `value` is ABSENT for `remove`, and OMIT where it is to do nothing."""

    op: Op
    path: PatchPath
    value: Any
    at: Path


@dataclass(frozen=True)
class OperationTemplate:
    """One operation as it is written in an addon; `path` is text where only a render tells what it is."""

    op: Op
    path: PatchPath | str
    value: Any
    at: Path

    def rendered(self, value: Any, path: Any = None) -> Operation:
        """Return the operation with what its value, and its path if that is a template, render to.

        Raises FaultError for a path that is none, or not one for this operation.
        """
        if isinstance(self.path, PatchPath):
            return Operation(self.op, self.path, value, self.at)
        found = _read_path(self.op, path, self.at)
        if isinstance(found, Fault):
            raise FaultError(found)
        return Operation(self.op, found, value, self.at)


def read_operation(data: Any, at: Path) -> OperationTemplate | tuple[Fault, ...]:
    """Return the operation at `at`, or all that is wrong with it (openchoreo 8.3)."""
    if not isinstance(data, Mapping):
        return (fault_of(ADDON_INVALID, at, f"must be a mapping of op, path and value, not {named(data)}"),)
    faults = [*_unknown(data, at)]
    op, text = data.get("op"), data.get("path")
    if op not in OPS:
        faults.append(fault_of(PATCH_OP_UNSUPPORTED, (*at, "op"), f"must be one of {', '.join(OPS)}, not {named(op)}"))
        return tuple(faults)
    is_templated = isinstance(text, str) and OPEN in text
    path = text if is_templated else _read_path(op, text, at)
    if isinstance(path, Fault):
        faults.append(path)
    if ("value" in data) == (op == "remove"):
        need = "must be left out: remove has" if op == "remove" else f"must be there: {op} has"
        faults.append(fault_of(ADDON_INVALID, (*at, "value"), f"{need} {'none' if op == 'remove' else 'one'}"))
    if faults or isinstance(path, Fault) or path is None:
        return tuple(faults)
    return OperationTemplate(op, path, data.get("value", ABSENT), at)


def _unknown(data: Mapping[Any, Any], at: Path) -> Iterator[Fault]:
    for name in map(str, data):
        if name not in _FIELDS and not name.startswith(OWN):
            message = f"is unknown; allowed are {', '.join(_FIELDS)}{meant(name, _FIELDS)}"
            yield fault_of(UNKNOWN_FIELD, (*at, name), message)


def _read_path(op: Op, text: Any, at: Path) -> PatchPath | Fault:
    at = (*at, "path")
    if not isinstance(text, str):
        return fault_of(
            PATH_SYNTAX, at, f"must be a string, such as /spec/replicas, not {named(None if text is OMIT else text)}"
        )
    path = parse_path(text, at)
    if isinstance(path, Fault):
        return path
    if path.ends_behind and op != "add":
        return fault_of(
            PATH_DASH_ONLY_ADD,
            at,
            f"must lead to an item: only add can go behind the last one, not {op}: {shown(text)}",
        )
    if path.ends_open and op == "add":
        return fault_of(PATH_AMBIGUOUS_ADD, at, f"must say where an item is added, as - or [0] do: {shown(text)}")
    return path
