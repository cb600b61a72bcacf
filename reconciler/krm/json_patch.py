"""JSON patches (RFC 6902), applied with the library jsonpatch.

Policies and addons have their own path syntax, with filters and wildcards. Their code resolves such a path to a
container and a key, and applies the operation with `apply_to_container`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import jsonpatch
import jsonpointer

from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.json_pointer import format_pointer

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


def apply_patch(data: Any, operations: Iterable[Any], *, in_place: bool = False) -> Any:
    """Return a copy of `data` to which the operations of a JSON patch are applied in order.

    Args:
        in_place: Whether to change `data` itself. If an operation fails, the earlier operations are already applied.

    Raises:
        PatchError: An operation is malformed, its path does not exist, or an operation `test` fails.
    """
    result = data if in_place else copy.deepcopy(data)
    for index, operation in enumerate(operations):
        result = _apply_operation(result, _read(operation, index), index)
    return result


def apply_to_container(
    container: Any, op: Literal["add", "replace", "remove"], step: str | int, value: Any = None
) -> None:
    """Apply one operation to the entry `step` of a mapping or list. The mapping or list is changed in place.

    Args:
        step: The key or index of the entry. In a list, `add` inserts the value before this index, or appends it if the
            index is the length of the list.
        value: The new value. The operation `remove` does not use this value.

    Raises:
        PatchError: The entry for `replace` or `remove` does not exist, or the index for `add` is out of range.
    """
    apply_patch(container, [{"op": op, "path": format_pointer((step,)), "value": value}], in_place=True)


def _apply_operation(data: Any, operation: Mapping[str, Any], index: int) -> Any:
    try:
        return jsonpatch.JsonPatch.operations[operation["op"]](operation).apply(data)
    # Catch JsonPointerException too, because jsonpatch does not convert the exceptions of the jsonpointer library.
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise PatchError(index, operation["path"], _format_reason(error)) from error


def _read(operation: Any, index: int) -> Mapping[str, Any]:
    if not isinstance(operation, Mapping):
        raise PatchError(index, "", f"an operation must be a mapping, but is {quote_value(operation)}")
    pointer = operation.get("path")
    if not isinstance(pointer, str):
        raise PatchError(index, "", f"the path of an operation must be a JSON pointer, but is {quote_value(pointer)}")
    if operation.get("op") not in _OPERATIONS:
        raise PatchError(
            index, pointer, f"op must be {describe_choice(_OPERATIONS)}, but is {quote_value(operation.get('op'))}"
        )
    return dict(operation)


def _format_reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
