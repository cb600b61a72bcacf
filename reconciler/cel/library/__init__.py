"""The functions of CEL: standard functions, extensions (strings, lists, math, sets, base64, optionals) and our own."""

from __future__ import annotations

from reconciler.cel.library import conversions, lists, numbers, project, strings, times
from reconciler.cel.library.signatures import FunctionTable


def _merge_tables(*tables: FunctionTable) -> FunctionTable:
    """Merge tables. A name in several tables gets all overloads, for example `reverse` for strings and lists."""
    merged: dict[str, tuple[object, ...]] = {}
    for table in tables:
        for name, overloads in table.items():
            merged[name] = (*merged.get(name, ()), *overloads)
    return merged  # type: ignore[return-value]


FUNCTIONS: FunctionTable = _merge_tables(
    conversions.FUNCTIONS,
    strings.FUNCTIONS,
    lists.FUNCTIONS,
    numbers.FUNCTIONS,
    lists.SET_FUNCTIONS,
    conversions.ENCODER_FUNCTIONS,
    conversions.OPTIONAL_FUNCTIONS,
)
"""Functions without a receiver, by full name."""

PROJECT_FUNCTIONS: FunctionTable = {**FUNCTIONS, **project.FUNCTIONS}
"""All functions without a receiver, including those of `project.py`."""

METHODS: FunctionTable = _merge_tables(
    conversions.METHODS, strings.METHODS, lists.METHODS, times.METHODS, conversions.OPTIONAL_METHODS
)
"""Functions with a receiver, which is their first parameter."""
