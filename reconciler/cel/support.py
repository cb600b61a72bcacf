"""Functions and names that the generated code of an expression uses.

The generated code evaluates frequent cases with Python operators, and calls these functions for all other cases. A
function has the same result and the same cost in steps and bytes as the Python operators that replace it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from reconciler.cel.budget import CONTAINER_BYTES, ELEMENT_BYTES, ENTRY_BYTES, ExpressionBudget
from reconciler.cel.code_writer import locate_error
from reconciler.cel.errors import BudgetExceededError, EvaluationError
from reconciler.cel.library.lists import sort_by_keys
from reconciler.cel.library.signatures import call_overload
from reconciler.cel.operators import (
    BINARY_OPERATORS,
    create_not_bool_error,
    find_optional_field,
    has_field,
    invert,
    negate,
    read_field,
    read_index,
    read_optional_index,
    sort_keys,
)
from reconciler.cel.values import (
    EMPTY_OPTIONAL,
    KEY_TYPES,
    MAX_VALUE_DEPTH,
    MISSING,
    OMIT,
    TYPE_NAMES,
    CelOptional,
    check_int_range,
    create_no_overload_error,
    create_too_deep_error,
    decode_map_key,
    encode_map_key,
    format_map_key,
    get_type_name,
)

PENDING: Final = object()
"""The value of a `cel.bind` variable before its first evaluation."""

ConstantPath = tuple[tuple[str, bool, int], ...]
"""Accesses with constant keys. Each access contains the key, whether it has the form `["key"]`, and its offset."""


def read_path(budget: ExpressionBudget, value: Any, path: ConstantPath) -> Any:
    """Evaluate a chain of accesses with constant keys, e.g. `.a["b"].c`."""
    for key, is_index, offset in path:
        try:
            value = read_index(budget, value, key) if is_index else read_field(value, key)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error
    return value


def absorb_error(
    first_error: EvaluationError | None, error: EvaluationError, offsets: tuple[int, ...]
) -> EvaluationError:
    """Return the first error of an operator such as `||`, or of a macro such as `exists`.

    The caller raises this error only if no other operand or element determines the result. The first error is
    `first_error`, or `error` if `first_error` is None. A `BudgetExceededError` is raised at once.
    """
    if isinstance(error, BudgetExceededError):
        raise error
    # Remove the traceback, because it keeps the variables of the evaluation in memory.
    return first_error or locate_error(error, offsets).with_traceback(None)


def absorb_not_bool(first_error: EvaluationError | None, operation: str, value: Any, offset: int) -> EvaluationError:
    """Return the error of an expression `a && b` or `a || b` in which the operand `value` is not a bool.

    If an earlier operand failed, return its error, `first_error`. Otherwise, return a new error about `value`. The
    caller must not raise the error if another operand determines the result, as in `1 && false`.
    """
    return first_error or create_not_bool_error(operation, value).with_offset(offset)


def raise_not_bool(operation: str, value: Any) -> NoReturn:
    """Raise the error for a condition that is not a bool."""
    raise create_not_bool_error(operation, value)


def raise_no_value(name: str) -> NoReturn:
    """Raise the error for a variable to which the caller has bound no value."""
    raise EvaluationError("CelUndeclared", f"the variable '{name}' has no value in this expression")


def raise_failure(code: str, message: str) -> NoReturn:
    """Raise an error that the compiler found, when the evaluation reaches the invalid part of the expression."""
    raise EvaluationError(code, message)


def negate_repeatedly(value: Any, count: int) -> Any:
    """Evaluate `-` with several signs, e.g. `--value`."""
    for _ in range(count):
        value = negate(value)
    return value


def check_optional(value: Any, operation: str) -> None:
    """Raise `EvaluationError` if a value is not an optional."""
    if type(value) is not CelOptional:
        raise EvaluationError(
            "CelNoOverload", f"{operation} requires an optional, not a value of type {get_type_name(value)}"
        )


def unwrap_item(value: Any, syntax: str) -> Any:
    """Return the value of an optional in a list or map literal. Return `OMIT` if the optional is empty."""
    check_optional(value, syntax)
    return value.value if value.is_present else OMIT


def remove_omitted(elements: list[Any]) -> list[Any]:
    """Return the elements without the value `OMIT`."""
    return [element for element in elements if element is not OMIT]


def list_members(budget: ExpressionBudget, value: Any, macro: str) -> list[Any]:
    """Return the elements of a list, or the keys of a map in sorted order."""
    if type(value) is list:
        return value
    if type(value) is dict:
        return sort_keys(budget, value)
    raise _create_range_error(macro, value)


def list_pairs(budget: ExpressionBudget, value: Any, macro: str) -> Iterable[tuple[Any, Any]]:
    """Return pairs: the index and value of each list element, or the key and value of each map entry.

    Map entries are sorted by key.
    """
    if type(value) is list:
        return enumerate(value)
    if type(value) is dict:
        return ((key, _read_entry(value, key)) for key in sort_keys(budget, value))
    raise _create_range_error(macro, value)


def _read_entry(entries: dict[Any, Any], key: Any) -> Any:
    # Try both forms of a bool key. A map from the caller has Python bools, and a map from the evaluation has `BoolKey`.
    stored = encode_map_key(key)
    return entries[stored if stored in entries else key]


def _create_range_error(macro: str, value: Any) -> EvaluationError:
    message = f"{macro}() requires a list or map, not a value of type {get_type_name(value)}"
    return EvaluationError("CelNoOverload", message)


def check_sortable(value: Any) -> None:
    """Raise `EvaluationError` if the macro `sortBy` does not accept a value."""
    if type(value) is not list:
        raise create_no_overload_error("sortBy", value)


def add_checked_entry(budget: ExpressionBudget, entries: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry of a map literal. Raise `EvaluationError` if the key is invalid or exists already."""
    if type(key) not in KEY_TYPES:
        raise EvaluationError("CelNoOverload", f"a value of type {get_type_name(key)} cannot be the key of a map")
    add_entry(budget, entries, key, value)


def add_entries(budget: ExpressionBudget, results: dict[Any, Any], entries: Any, macro: str) -> None:
    """Add the entries of one iteration of the macro `transformMapEntry`."""
    if type(entries) is not dict:
        message = f"{macro}() requires a map for each element, not a value of type {get_type_name(entries)}"
        raise EvaluationError("CelNoOverload", message)
    for key, result in entries.items():
        add_entry(budget, results, key, result)


def add_entry(budget: ExpressionBudget, entries: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a map that the evaluation creates. Raise `EvaluationError` if the key exists already."""
    budget.allocate(ENTRY_BYTES)
    stored = encode_map_key(key)
    if stored in entries:
        key_text = format_map_key(stored)
        raise EvaluationError(
            "CelDuplicateKey", f"the map has the key {key_text if len(key_text) <= 60 else key_text[:60] + '…'} twice"
        )
    entries[stored] = value


def copy_result(budget: ExpressionBudget, value: Any, depth: int = 0) -> Any:
    """Return a deep copy of the result of an expression, and subtract its size from the budget.

    The size of a value that occurs twice, e.g. in `[a, a]`, is subtracted twice.
    """
    if depth > MAX_VALUE_DEPTH:
        raise create_too_deep_error()
    kind = type(value)
    if kind is str or kind is bytes:
        budget.allocate(len(value))
        return value
    if kind is list:
        budget.spend(len(value))
        budget.allocate(CONTAINER_BYTES + ELEMENT_BYTES * len(value))
        return [copy_result(budget, element, depth + 1) for element in value]
    if kind is dict:
        budget.spend(len(value))
        budget.allocate(CONTAINER_BYTES + ENTRY_BYTES * len(value))
        result = {decode_map_key(key): copy_result(budget, element, depth + 1) for key, element in value.items()}
        if len(result) < len(value):
            raise EvaluationError(
                "CelNoOverload", "a result cannot be a map that has both a boolean key and the number 0 or 1"
            )
        return result
    if kind is CelOptional:
        return CelOptional(value.is_present, copy_result(budget, value.value, depth + 1))
    if kind not in TYPE_NAMES:
        get_type_name(value)
    return value


NO_ENTRY: Final = (KeyError, TypeError)
"""The Python errors of `value["key"]` if the value is not a map, or if the map does not contain the key."""

SUPPORT: Final[dict[str, Any]] = {
    **{
        value.__name__: value
        for value in (
            *(type, len, str, int, bool, list, dict, enumerate, EvaluationError, CelOptional),
            *(read_path, read_index, read_optional_index, find_optional_field, has_field, invert, negate),
            *(absorb_error, absorb_not_bool, raise_not_bool, raise_no_value, raise_failure, negate_repeatedly),
            *(check_optional, unwrap_item, remove_omitted, list_members, list_pairs, check_sortable, sort_by_keys),
            *(add_checked_entry, add_entries, encode_map_key, copy_result, call_overload, check_int_range),
        )
    },
    **{function.__name__: function for function in BINARY_OPERATORS.values()},
    "__builtins__": {},
    "EMPTY_OPTIONAL": EMPTY_OPTIONAL,
    "MISSING": MISSING,
    "OMIT": OMIT,
    "PENDING": PENDING,
    "NO_ENTRY": NO_ENTRY,
}
"""All names that the generated code can use, in addition to its own variables, functions and constants."""
