"""Macros: calls that the parser rewrites because an argument is a name to bind or is not always evaluated."""

from __future__ import annotations

from typing import Literal

from reconciler.expressions.errors import Fault
from reconciler.expressions.syntax import (
    Access,
    Alternative,
    Bind,
    Field,
    Loop,
    LoopKind,
    Method,
    Name,
    Node,
    OptionalMap,
    Step,
    measured,
)

_LOOPS: dict[tuple[str, int], tuple[LoopKind, int, bool]] = {
    ("all", 2): ("all", 1, False),
    ("all", 3): ("all", 2, False),
    ("exists", 2): ("exists", 1, False),
    ("exists", 3): ("exists", 2, False),
    ("exists_one", 2): ("exists_one", 1, False),
    ("exists_one", 3): ("exists_one", 2, False),
    ("existsOne", 2): ("exists_one", 1, False),
    ("existsOne", 3): ("exists_one", 2, False),
    ("map", 2): ("map", 1, False),
    ("map", 3): ("map", 1, True),
    ("filter", 2): ("filter", 1, False),
    ("transformList", 3): ("map", 2, False),
    ("transformList", 4): ("map", 2, True),
    ("transformMap", 3): ("transformMap", 2, False),
    ("transformMap", 4): ("transformMap", 2, True),
    ("transformMapEntry", 3): ("transformMapEntry", 2, False),
    ("transformMapEntry", 4): ("transformMapEntry", 2, True),
    ("sortBy", 2): ("sortBy", 1, False),
}
"""(name, number of arguments): what it does, how many variables it binds, whether a condition follows them."""

MACRO_NAMES = frozenset({name for name, _ in _LOOPS} | {"optMap", "optFlatMap", "or", "orValue"})
"""The macros written as methods."""


def expand_method(method: Method) -> Step:
    """Return the step that a method call stands for: itself, when it is no macro."""
    name, arguments = method.name, method.arguments
    if (name, len(arguments)) in _LOOPS:
        return _loop(method)
    if name in ("optMap", "optFlatMap") and len(arguments) == 2:
        return _optional_map(method)
    if name in ("or", "orValue") and len(arguments) == 1:
        return Alternative("or" if name == "or" else "orValue", arguments[0], **measured(method.at, arguments))
    return method


def _loop(method: Method) -> Loop:
    kind, bound, conditional = _LOOPS[method.name, len(method.arguments)]
    variables = tuple(_variable(method.name, argument) for argument in method.arguments[:bound])
    if len(set(variables)) < bound:
        raise Fault("CelSyntax", f"{method.name}() binds '{variables[0]}' twice", method.at)
    condition = method.arguments[bound] if conditional else None
    parts = method.arguments[bound:]
    return Loop(kind, method.name, variables, condition, parts[-1], **measured(method.at, parts))


def _optional_map(method: Method) -> OptionalMap:
    variable, body = method.arguments
    function: Literal["optMap", "optFlatMap"] = "optMap" if method.name == "optMap" else "optFlatMap"
    return OptionalMap(function, _variable(function, variable), body, **measured(method.at, (body,)))


def bind(method: Method) -> Bind:
    """Return `cel.bind(variable, value, body)`; the method is its part after the dot."""
    variable, value, body = method.arguments
    return Bind(_variable("cel.bind", variable), value, body, **measured(method.at, (value, body)))


def has(at: int, arguments: tuple[Node, ...]) -> Access:
    """Return the test of `has(a.b)`: its access path, with the last step made a test."""
    match arguments:
        case [Access(base=base, steps=(*before, Field(optional=False, test=False) as field))]:
            test = Field(field.name, test=True, at=field.at)
            return Access(base, (*before, test), **measured(at, (base, *before, test)))
        case _:
            raise Fault("CelSyntax", "has() takes one argument, a field like a.b", at)


def _variable(macro: str, argument: Node) -> str:
    match argument:
        case Name(name=name, absolute=False):
            return name
        case _:
            raise Fault("CelSyntax", f"{macro}() needs a plain name for its variable here", argument.at)
