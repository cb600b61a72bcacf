"""Search for the names in an expression, without declarations of variables. An invalid expression has no results."""

from __future__ import annotations

from typing import Final

from reconciler.cel.errors import EvaluationError
from reconciler.cel.syntax import AccessNode, CallNode, FieldStep, NameNode, SyntaxNode, list_children
from reconciler.memory import cached

_MAX_CACHED_EXPRESSIONS: Final = 1024


@cached(_MAX_CACHED_EXPRESSIONS)
def list_called_functions(text: str) -> frozenset[str]:
    """Return the names of the functions that an expression calls. Methods are not included."""
    tree = _parse(text)
    return frozenset(_list_functions(tree)) if tree else frozenset()


def _list_functions(node: SyntaxNode) -> set[str]:
    names = {node.function} if isinstance(node, CallNode) else set()
    return names.union(*map(_list_functions, list_children(node)))


@cached(_MAX_CACHED_EXPRESSIONS)
def find_field_path(text: str) -> tuple[str, ...]:
    """Return the path of an expression that only reads one field, e.g. ("a", "b") for `a.b`. Otherwise, return ()."""
    match _parse(text):
        case AccessNode(base=NameNode(name=name), steps=steps):
            fields = [step for step in steps if isinstance(step, FieldStep) and not step.optional and not step.test]
            return (name, *(step.name for step in fields)) if len(fields) == len(steps) else ()
    return ()


def _parse(text: str) -> SyntaxNode | None:
    # Import the parser here, because the import is slow, and most commands do not need the parser.
    from reconciler.cel.parser import parse_expression

    try:
        return parse_expression(text)
    except EvaluationError:
        return None
