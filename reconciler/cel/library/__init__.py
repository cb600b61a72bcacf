"""The functions of CEL.

These are the standard functions, the extensions (strings, lists, math, sets, base64, optionals), and the functions of
OpenChoreo.
"""

from __future__ import annotations

from reconciler.cel.library import conversions, lists, numbers, openchoreo, strings, times
from reconciler.cel.library.signatures import FunctionTable


def _merge_tables(*tables: FunctionTable) -> FunctionTable:
    """Merge tables of functions.

    If several tables contain a name, e.g. `reverse`, the function gets all their overloads.
    """
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
"""Functions that are called as `f(x)`, by name. A name can contain dots, e.g. `math.abs`."""

OPENCHOREO_FUNCTIONS: FunctionTable = {**FUNCTIONS, **openchoreo.FUNCTIONS}
"""Functions that are called as `f(x)`, including the functions of `openchoreo.py`."""

METHODS: FunctionTable = _merge_tables(
    conversions.METHODS, strings.METHODS, lists.METHODS, times.METHODS, conversions.OPTIONAL_METHODS
)
"""Functions that are called as `x.f(y)`, by name. `x` is their first parameter."""
