"""How functions are declared: by the types of their arguments, checked in one place before a function runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.timestamps import Duration, Timestamp
from reconciler.expressions.values import Uint, no_overload, signed

Kind = frozenset[type] | None
"""The classes of the values that a parameter takes; None takes every value."""

ANY: Kind = None
BOOL: Kind = frozenset({bool})
INT: Kind = frozenset({int})
UINT: Kind = frozenset({Uint})
DOUBLE: Kind = frozenset({float})
NUMBER: Kind = frozenset({int, Uint, float})
STRING: Kind = frozenset({str})
BYTES: Kind = frozenset({bytes})
LIST: Kind = frozenset({list})
MAP: Kind = frozenset({dict})
TIMESTAMP: Kind = frozenset({Timestamp})
DURATION: Kind = frozenset({Duration})


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function: `apply(budget, *arguments)` for arguments of the given kinds.

    When `repeated`, the last parameter stands for one argument or more.
    """

    apply: Callable[..., Any]
    parameters: tuple[Kind, ...]
    repeated: bool = False

    def takes_count(self, count: int) -> bool:
        """Tell whether it can be called with that many arguments."""
        return count >= len(self.parameters) if self.repeated else count == len(self.parameters)

    def takes(self, arguments: tuple[Any, ...]) -> bool:
        """Tell whether the arguments, of which there are the right number, have the right types."""
        kinds = self.parameters
        if self.repeated:
            kinds += kinds[-1:] * (len(arguments) - len(kinds))
        return all(kind is None or type(argument) in kind for kind, argument in zip(kinds, arguments, strict=True))


Functions = Mapping[str, tuple[Overload, ...]]
"""The overloads of each function; those of a method have the receiver as their first parameter."""


def overload(apply: Callable[..., Any], *parameters: Kind, repeated: bool = False) -> Overload:
    """Return the overload; see there."""
    return Overload(apply, parameters, repeated)


def dispatch(name: str, overloads: tuple[Overload, ...], budget: Budget, arguments: tuple[Any, ...]) -> Any:
    """Call the first overload that takes the arguments; raises Fault when none does."""
    for argument in arguments:
        if type(argument) is int:
            signed(argument)  # values from outside may be larger than any int
    for candidate in overloads:
        if candidate.takes(arguments):
            return candidate.apply(budget, *arguments)
    raise no_overload(name, *arguments)
