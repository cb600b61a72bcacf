"""The functions: the standard ones, the extensions (strings, lists, math, sets, base64, optionals) and ours."""

from __future__ import annotations

from reconciler.expressions.library import (
    conversions,
    encoders,
    lists,
    numbers,
    optionals,
    project,
    sets,
    strings,
    times,
)
from reconciler.expressions.library.signatures import Functions


def _merged(*tables: Functions) -> Functions:
    """Return one table; a name in several tables has the overloads of all, like `reverse` of strings and lists."""
    merged: dict[str, tuple[object, ...]] = {}
    for table in tables:
        for name, overloads in table.items():
            merged[name] = (*merged.get(name, ()), *overloads)
    return merged  # type: ignore[return-value]


FUNCTIONS: Functions = _merged(
    conversions.FUNCTIONS,
    strings.FUNCTIONS,
    lists.FUNCTIONS,
    numbers.FUNCTIONS,
    sets.FUNCTIONS,
    encoders.FUNCTIONS,
    optionals.FUNCTIONS,
)
"""The functions without a receiver, by their full names."""

PROJECT_FUNCTIONS: Functions = {**FUNCTIONS, **project.FUNCTIONS}
"""Those and the functions that composition adds."""

METHODS: Functions = _merged(conversions.METHODS, strings.METHODS, lists.METHODS, times.METHODS, optionals.METHODS)
"""The functions with a receiver, which is their first parameter."""
