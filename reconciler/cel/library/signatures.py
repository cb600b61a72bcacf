"""Signatures of CEL functions. The types of the arguments are checked here, before a function is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.timestamps import Duration, Timestamp
from reconciler.cel.values import Uint, check_int_range, create_no_overload_error
from reconciler.lazy_dataclasses import dataclass

TypeSet = frozenset[type] | None
"""The Python classes that a parameter accepts. None means that the parameter accepts every value."""

ANY: TypeSet = None
BOOL: TypeSet = frozenset({bool})
INT: TypeSet = frozenset({int})
UINT: TypeSet = frozenset({Uint})
DOUBLE: TypeSet = frozenset({float})
NUMBER: TypeSet = frozenset({int, Uint, float})
STRING: TypeSet = frozenset({str})
BYTES: TypeSet = frozenset({bytes})
LIST: TypeSet = frozenset({list})
MAP: TypeSet = frozenset({dict})
TIMESTAMP: TypeSet = frozenset({Timestamp})
DURATION: TypeSet = frozenset({Duration})


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a CEL function, and the Python function `apply(budget, *arguments)` that evaluates it.

    If `repeated` is true, the last parameter accepts one or more arguments.
    """

    apply: Callable[..., Any]
    parameters: tuple[TypeSet, ...]
    repeated: bool = False

    def accepts_count(self, count: int) -> bool:
        """Return whether this overload accepts `count` arguments."""
        return count >= len(self.parameters) if self.repeated else count == len(self.parameters)

    def accepts(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether the argument types match this overload. The caller must check the number of arguments."""
        kinds = self.parameters
        if self.repeated:
            kinds += kinds[-1:] * (len(arguments) - len(kinds))
        return all(kind is None or type(argument) in kind for kind, argument in zip(kinds, arguments, strict=True))


FunctionTable = Mapping[str, tuple[Overload, ...]]
"""The overloads of each function, by name. The first parameter of a method is the value before the dot."""


def create_overload(apply: Callable[..., Any], *parameters: TypeSet, repeated: bool = False) -> Overload:
    """Create an overload from the Python function and the types of its parameters."""
    return Overload(apply, parameters, repeated)


def call_overload(
    name: str, overloads: tuple[Overload, ...], budget: ExpressionBudget, arguments: tuple[Any, ...]
) -> Any:
    """Call the first overload that accepts the arguments. Raise `EvaluationError` if no overload accepts them."""
    for argument in arguments:
        if type(argument) is int:
            # Check that an int has at most 64 bits, because the caller can bind a larger Python int to a variable.
            check_int_range(argument)
    for candidate in overloads:
        if candidate.accepts(arguments):
            return candidate.apply(budget, *arguments)
    raise create_no_overload_error(name, *arguments)
