"""Macros of CEL: calls that the parser replaces by special nodes of the syntax tree.

Macros are not functions, because they have an argument that is a variable name or that is not always evaluated.
"""

from __future__ import annotations

from typing import Literal

from reconciler.cel.errors import EvaluationError
from reconciler.cel.syntax import (
    AccessNode,
    AccessStep,
    AlternativeStep,
    BindNode,
    FieldStep,
    LoopKind,
    LoopStep,
    MethodStep,
    NameNode,
    OptionalMapStep,
    SyntaxNode,
    measure_node,
)

_LOOP_MACROS: dict[tuple[str, int], tuple[LoopKind, int, bool]] = {
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
"""The loop macros by (name, number of arguments).

A value contains the kind of the macro, the number of its variables, and whether a condition follows the variables.
"""

MACRO_NAMES = frozenset({name for name, _ in _LOOP_MACROS} | {"optMap", "optFlatMap", "or", "orValue"})
"""The macros that are called as methods, e.g. `list.map(x, x + 1)`."""


def expand_method_macro(method: MethodStep) -> AccessStep:
    """Return the node for a macro that is called as a method. Return a call of a normal method unchanged."""
    name, arguments = method.name, method.arguments
    if (name, len(arguments)) in _LOOP_MACROS:
        return _expand_loop(method)
    if name in ("optMap", "optFlatMap") and len(arguments) == 2:
        return _expand_optional_map(method)
    if name in ("or", "orValue") and len(arguments) == 1:
        return AlternativeStep(
            "or" if name == "or" else "orValue", arguments[0], **measure_node(method.offset, arguments)
        )
    return method


def _expand_loop(method: MethodStep) -> LoopStep:
    kind, variable_count, has_condition = _LOOP_MACROS[method.name, len(method.arguments)]
    variables = tuple(_read_variable(method.name, argument) for argument in method.arguments[:variable_count])
    if len(set(variables)) < variable_count:
        raise EvaluationError("CelSyntax", f"{method.name}() uses '{variables[0]}' for two variables", method.offset)
    condition = method.arguments[variable_count] if has_condition else None
    parts = method.arguments[variable_count:]
    return LoopStep(kind, method.name, variables, condition, parts[-1], **measure_node(method.offset, parts))


def _expand_optional_map(method: MethodStep) -> OptionalMapStep:
    variable, body = method.arguments
    function: Literal["optMap", "optFlatMap"] = "optMap" if method.name == "optMap" else "optFlatMap"
    return OptionalMapStep(function, _read_variable(function, variable), body, **measure_node(method.offset, (body,)))


def expand_bind(method: MethodStep) -> BindNode:
    """Return the node for `cel.bind(variable, value, body)`. `method` is the parsed call of `bind`."""
    variable, value, body = method.arguments
    return BindNode(_read_variable("cel.bind", variable), value, body, **measure_node(method.offset, (value, body)))


def expand_has(offset: int, arguments: tuple[SyntaxNode, ...]) -> AccessNode:
    """Return the node for `has(a.b)`: an access path whose last step tests whether the field exists."""
    match arguments:
        case [AccessNode(base=base, steps=(*before, FieldStep(optional=False, test=False) as field))]:
            test = FieldStep(field.name, field.end, test=True, offset=field.offset)
            return AccessNode(base, (*before, test), **measure_node(offset, (base, *before, test)))
        case _:
            raise EvaluationError("CelSyntax", "has() takes one argument: a field such as a.b", offset)


def _read_variable(macro: str, argument: SyntaxNode) -> str:
    match argument:
        case NameNode(name=name, absolute=False):
            return name
        case _:
            raise EvaluationError(
                "CelSyntax", f"{macro}() requires a name without dots as its variable", argument.offset
            )
