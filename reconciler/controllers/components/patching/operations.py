"""Patch operations: reading them from addons, checks before a render, and application to a resource."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from reconciler.api.openchoreo import PatchOp, PatchOperationFields, is_template_text
from reconciler.cel import OMIT
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.locations import Location, find_locations
from reconciler.controllers.components.patching.paths import PatchPath, parse_patch_path
from reconciler.krm.field_text import describe_value, quote_value
from reconciler.krm.json_patch import apply_to_container
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class PatchOperation:
    """Patch operation that is ready to be applied.

    `value` is ABSENT for `remove`. If `value` is OMIT, the operation is skipped.
    """

    op: PatchOp
    path: PatchPath
    value: Any
    field_path: DataPath


@dataclass(frozen=True)
class OperationTemplate:
    """Patch operation as written in an addon. `path` is a string if the path contains expressions."""

    op: PatchOp
    path: PatchPath | str
    value: Any
    field_path: DataPath

    def render(self, value: Any, path: Any = None) -> PatchOperation:
        """Return the operation with a rendered value.

        `path` is the rendered path. It is required only if the path in the addon contains expressions.

        Raises:
            FieldFindingError: The rendered path is not valid for this operation.
        """
        if isinstance(self.path, PatchPath):
            return PatchOperation(self.op, self.path, value, self.field_path)
        patch_path = _read_path(self.op, path, self.field_path)
        if isinstance(patch_path, FieldFinding):
            raise FieldFindingError(patch_path)
        return PatchOperation(self.op, patch_path, value, self.field_path)


def build_operation_template(fields: PatchOperationFields, field_path: DataPath) -> OperationTemplate | FieldFinding:
    """Return a patch operation with the parsed path. Return the error if the path is not valid."""
    path = fields.path if is_template_text(fields.path) else _read_path(fields.op, fields.path, field_path)
    return path if isinstance(path, FieldFinding) else OperationTemplate(fields.op, path, fields.value, field_path)


def _read_path(op: PatchOp, text: Any, field_path: DataPath) -> PatchPath | FieldFinding:
    field_path = (*field_path, "path")
    if not isinstance(text, str):
        return build_field_finding(
            ComponentCodes.PATH_SYNTAX,
            field_path,
            f'must be a string, such as "/spec/replicas", but is {describe_value(None if text is OMIT else text)}',
        )
    path = parse_patch_path(text, field_path)
    if isinstance(path, FieldFinding):
        return path
    if path.is_append and op != "add":
        return build_field_finding(
            ComponentCodes.PATH_DASH_ONLY_ADD,
            field_path,
            f'must not end with - for the operation "{op}", because only "add" supports the position after'
            " the last item; the path is"
            f" {quote_value(text)}",
        )
    if path.can_match_many and op == "add":
        return build_field_finding(
            ComponentCodes.PATH_AMBIGUOUS_ADD,
            field_path,
            f'must not end with a filter or wildcard for the operation "add"; use - or an index; the path is'
            f" {quote_value(text)}",
        )
    return path


WriteOp = Literal["add", "replace", "remove"]


@dataclass(frozen=True)
class Write:
    """One change that a patch operation made in a resource, in the form of JSON Patch (RFC 6902).

    Attributes:
        op: Kind of the change. An `add` to a list inserts an item.
        location: Location of the changed value in the resource.
        before: Value before the change, or ABSENT. Callers must not modify this value.
        after: Value after the change, or ABSENT. Callers must not modify this value.
        is_appended: Whether the change appended an item to an existing list.
        path_in_value: Location of the written part inside the operation's value. Empty if the whole value was written.
            Only a `merge` writes parts.
        path_in_after: Location of the operation's value inside `after`. Empty if the change created no parents of the
            value.
    """

    op: WriteOp
    location: Location
    before: Any
    after: Any
    is_appended: bool = False
    path_in_value: Location = ()
    path_in_after: Location = ()


def _should_not_merge(_: Location) -> bool:
    return False


def apply_operation(
    document: Any,
    operation: PatchOperation,
    budget: PatchBudget,
    *,
    skip_missing: bool = False,
    should_merge: Callable[[Location], bool] = _should_not_merge,
) -> tuple[Write, ...]:
    """Apply a patch operation to all locations of its path in `document`, and return the changes.

    The function changes `document` in place. At a location for which `should_merge` returns True, the value is merged
    into the existing value.

    Raises:
        FieldFindingError: The operation failed. Some locations may already be changed.
    """
    if operation.value is OMIT:
        return ()
    field_path = (*operation.field_path, "path")
    budget.charge_operation(field_path)
    locations = find_locations(document, operation.path, operation.op, budget, field_path, skip_missing=skip_missing)
    run = _OperationRun(document, (*operation.field_path, "value"), budget)
    # Remove the last list items first, because a removal changes the indexes of all later items.
    locations = locations[::-1] if operation.op == "remove" else locations
    return tuple(
        write
        for location in locations
        for write in run.apply_at("merge" if should_merge(location) else operation.op, location, operation.value)
    )


@dataclass(frozen=True)
class _OperationRun:
    document: Any
    value_path: DataPath
    budget: PatchBudget

    def apply_at(self, op: PatchOp, location: Location, value: Any) -> Iterator[Write]:
        """Change the value at one location, and yield each change."""
        container, depth = self._find_container(location)
        step = location[depth]
        if depth < len(location) - 1:
            missing = location[depth + 1 :]
            yield self._write(container, location[: depth + 1], _nest_value(missing, value), path_in_after=missing)
        elif op == "remove":
            before = container[step]
            apply_to_container(container, "remove", step)
            yield Write("remove", location, before, ABSENT)
        elif op == "merge":
            yield from self._merge(container, location, value)
        elif op == "add" and isinstance(container, list):
            yield self._insert(container, location, value, is_appended=step == len(container))
        else:
            yield self._write(container, location, value)

    def _find_container(self, location: Location) -> tuple[Any, int]:
        """Return the deepest existing map or list above a location, and the number of path steps to it."""
        container = self.document
        for depth, step in enumerate(location[:-1]):
            child = container.get(step) if isinstance(container, dict) else container[step]
            if child is None:
                return container, depth
            container = child
        return container, len(location) - 1

    def _write(
        self,
        container: Any,
        location: Location,
        value: Any,
        path_in_value: Location = (),
        *,
        path_in_after: Location = (),
    ) -> Write:
        step = location[-1]
        before = container.get(step, ABSENT) if isinstance(container, dict) else container[step]
        copied = self.budget.copy_value(value, len(location), self.value_path)
        # Use `add` for a map, because `add` also replaces an existing value of a map.
        apply_to_container(container, "add" if isinstance(container, dict) else "replace", step, copied)
        return Write(
            "add" if before is ABSENT else "replace", location, before, value, False, path_in_value, path_in_after
        )

    def _insert(
        self, container: list[Any], location: Location, value: Any, path_in_value: Location = (), *, is_appended: bool
    ) -> Write:
        copied = self.budget.copy_value(value, len(location), self.value_path)
        apply_to_container(container, "add", location[-1], copied)
        return Write("add", location, ABSENT, value, is_appended, path_in_value)

    def _merge(self, container: Any, location: Location, value: Any, path_in_value: Location = ()) -> Iterator[Write]:
        """Merge a value into the value at a location. The parent of the location must exist."""
        old = container.get(location[-1]) if isinstance(container, dict) else container[location[-1]]
        match old, value:
            case dict(), dict():
                for key, item in value.items():
                    yield from self._merge(old, (*location, key), item, (*path_in_value, key))
            case list(), list():
                for index, item in enumerate(value):
                    yield self._insert(old, (*location, len(old)), item, (*path_in_value, index), is_appended=True)
            case list(), _:
                yield self._insert(old, (*location, len(old)), value, path_in_value, is_appended=True)
            case (dict(), _) | (str() | int() | float(), dict() | list()):
                expected = _describe_type(old)
                message = f"must be {expected}, because the existing value at {format_pointer(location)} is {expected}"
                raise FieldFindingError(
                    build_field_finding(ComponentCodes.MERGE_TYPE_MISMATCH, self.value_path, message)
                )
            case _:
                yield self._write(container, location, value, path_in_value)


def _nest_value(steps: Location, value: Any) -> Any:
    """Return the value inside a new map for each key, and a new list for each index, e.g. `5` -> `{"ports": [5]}`."""
    for step in reversed(steps):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _describe_type(old: Any) -> str:
    return "a map" if isinstance(old, dict) else "a scalar"
