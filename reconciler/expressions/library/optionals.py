"""The functions that make and read optionals; those that evaluate an argument lazily are macros."""

from __future__ import annotations

from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.signatures import ANY, LIST, Functions, overload
from reconciler.expressions.timestamps import Duration, Timestamp
from reconciler.expressions.values import NONE, Optional, type_name


def none(budget: Budget) -> Optional:
    """`optional.none()`."""
    return NONE


def of(budget: Budget, value: Any) -> Optional:
    """`optional.of(value)`."""
    return Optional(present=True, value=value)


def of_non_zero(budget: Budget, value: Any) -> Optional:
    """`optional.ofNonZeroValue(value)`: empty for null, false, 0, "" and for what has no elements or length.

    An optional is no zero value, whether or not there is anything in it, as in the engines for Go and for C++.
    """
    if isinstance(value, Timestamp | Duration):
        return of(budget, value) if value.nanoseconds else NONE
    return of(budget, value) if isinstance(value, Optional) or value else NONE


def has_value(budget: Budget, optional: Optional) -> bool:
    """`optional.hasValue()`."""
    return optional.present


def value_of(budget: Budget, optional: Optional) -> Any:
    """`optional.value()`."""
    if not optional.present:
        raise Fault("CelNone", "the optional is empty and has no value()")
    return optional.value


def unwrap(budget: Budget, optionals: list[Any]) -> list[Any]:
    """`optional.unwrap(list)` and `list.unwrapOpt()`: the values of those that have one."""
    for one in optionals:
        if type(one) is not Optional:
            raise Fault("CelNoOverload", f"a list of optionals is needed, one element is of type {type_name(one)}")
    budget.make_list(len(optionals))
    return [one.value for one in optionals if one.present]


_OPTIONAL = frozenset({Optional})

FUNCTIONS: Functions = {
    "optional.none": (overload(none),),
    "optional.of": (overload(of, ANY),),
    "optional.ofNonZeroValue": (overload(of_non_zero, ANY),),
    "optional.unwrap": (overload(unwrap, LIST),),
}

METHODS: Functions = {
    "hasValue": (overload(has_value, _OPTIONAL),),
    "value": (overload(value_of, _OPTIONAL),),
    "unwrapOpt": (overload(unwrap, LIST),),
}
