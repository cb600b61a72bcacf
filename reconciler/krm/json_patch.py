"""JSON patches (RFC 6902). A patch is applied completely or not at all. The input data is never changed."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import jsonpatch
import jsonpointer

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


class PatchError(ValueError):
    """A JSON patch that is invalid or cannot be applied to the data.

    Attributes:
        index: Index of the failed operation in the patch, from 0.
        pointer: The field `path` of the failed operation. "" if the operation has no valid `path`.
        reason: The reason of the failure. It does not repeat `index` and `pointer`.
    """

    def __init__(self, index: int, pointer: str, reason: str) -> None:
        super().__init__(index, pointer, reason)
        self.index = index
        self.pointer = pointer
        self.reason = reason

    def __str__(self) -> str:
        return f'operation {self.index} at "{self.pointer}": {self.reason}'


def apply_patch(data: Any, operations: Iterable[Any]) -> Any:
    """Return a copy of `data` to which the operations of a JSON patch are applied in order.

    Raises:
        PatchError: An operation is malformed, its path does not exist, or an operation `test` fails.
    """
    result = copy.deepcopy(data)
    for index, operation in enumerate(operations):
        result = _apply_one(result, operation, index)
    return result


def _apply_one(data: Any, operation: Any, index: int) -> Any:
    pointer, patch = _read(operation, index)
    try:
        return patch.apply(data, in_place=True)
    # Catch JsonPointerException too, because jsonpatch does not convert the exceptions of the jsonpointer library.
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise PatchError(index, pointer, _format_reason(error)) from error


def _read(operation: Any, index: int) -> tuple[str, jsonpatch.JsonPatch]:
    if not isinstance(operation, Mapping):
        raise PatchError(index, "", f"an operation must be a mapping, not {operation!r:.80}")
    pointer = operation.get("path")
    if not isinstance(pointer, str):
        raise PatchError(index, "", f"an operation must have a path that is a JSON pointer, not {pointer!r:.80}")
    if operation.get("op") not in _OPERATIONS:
        raise PatchError(index, pointer, f"op must be one of {', '.join(_OPERATIONS)}, not {operation.get('op')!r:.80}")
    try:
        return pointer, jsonpatch.JsonPatch([dict(operation)])
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise PatchError(index, pointer, _format_reason(error)) from error


def _format_reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
