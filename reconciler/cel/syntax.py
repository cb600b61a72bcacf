"""Syntax tree of CEL expressions. The parser creates it with macros expanded; the checker and the compiler read it.

Chains are flat (`a + b - c`, `a.b[c].d()`, `p ? x : q ? y : z`), so that a long expression is a wide tree and not a
deep one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from reconciler.cel.errors import EvaluationError

MAX_TREE_DEPTH = 100
"""Maximum depth of a tree. Recursive functions then do not reach Python's recursion limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxNode:
    """A part of the expression.

    `offset` is its offset in the text. `depth` and `size` describe its subtree, including itself.
    """

    offset: int
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class LiteralNode(SyntaxNode):
    """A constant."""

    value: Any


@dataclass(frozen=True, slots=True)
class NameNode(SyntaxNode):
    """An identifier. With a leading dot it is absolute: local variables and the container are ignored."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class CallNode(SyntaxNode):
    """A function call without a receiver: `size(x)`."""

    function: str
    arguments: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral(SyntaxNode):
    """`[a, ?b]`: items, and whether each is optional."""

    items: tuple[tuple[SyntaxNode, bool], ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(SyntaxNode):
    """`{k: v, ?k: v}`: keys, values, and whether each entry is optional."""

    entries: tuple[tuple[SyntaxNode, SyntaxNode, bool], ...]


@dataclass(frozen=True, slots=True)
class BinaryChainNode(SyntaxNode):
    """Binary operators of one precedence, left to right: `first`, then (operator, offset of the operator, operand)."""

    first: SyntaxNode
    operations: tuple[tuple[str, int, SyntaxNode], ...]


@dataclass(frozen=True, slots=True)
class LogicalNode(SyntaxNode):
    """`&&` or `||` with two or more operands."""

    operator: str
    operands: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class UnaryNode(SyntaxNode):
    """`!` or `-`, applied `count` times."""

    operator: str
    count: int
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class ConditionalNode(SyntaxNode):
    """`c ? v : c ? v : otherwise`: the (condition, value) arms in order, and the last value."""

    arms: tuple[tuple[SyntaxNode, SyntaxNode], ...]
    otherwise: SyntaxNode


@dataclass(frozen=True, slots=True)
class BindNode(SyntaxNode):
    """`cel.bind(variable, value, body)`."""

    variable: str
    value: SyntaxNode
    body: SyntaxNode


@dataclass(frozen=True, slots=True)
class AccessNode(SyntaxNode):
    """A value and the steps applied to it, left to right: `base.field[index].method(...)`."""

    base: SyntaxNode
    steps: tuple[AccessStep, ...]


@dataclass(frozen=True, slots=True)
class AccessStep(SyntaxNode):
    """One step of an `AccessNode`."""


@dataclass(frozen=True, slots=True)
class FieldStep(AccessStep):
    """`.name`, `.?name`, or the last step of `has(...)`."""

    name: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class IndexStep(AccessStep):
    """`[index]` or `[?index]`."""

    index: SyntaxNode
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MethodStep(AccessStep):
    """`.name(arguments)`."""

    name: str
    arguments: tuple[SyntaxNode, ...]


LoopKind = Literal["all", "exists", "exists_one", "map", "filter", "transformMap", "transformMapEntry", "sortBy"]


@dataclass(frozen=True, slots=True)
class LoopStep(AccessStep):
    """A macro that iterates over a list or map.

    One variable is bound to the element or key. Two variables are bound to index and element, or key and value.

    Attributes:
        kind: What the macro does.
        name: Its name in the expression.
        variables: Names of its variables.
        condition: Selects elements; only for map and transform macros.
        body: Evaluated for each element.
    """

    kind: LoopKind
    name: str
    variables: tuple[str, ...]
    condition: SyntaxNode | None
    body: SyntaxNode


@dataclass(frozen=True, slots=True)
class AlternativeStep(AccessStep):
    """`.or(x)` and `.orValue(x)`: x is evaluated only if the optional before it is empty."""

    function: Literal["or", "orValue"]
    argument: SyntaxNode


@dataclass(frozen=True, slots=True)
class OptionalMapStep(AccessStep):
    """`.optMap(variable, body)` and `.optFlatMap(variable, body)`."""

    function: Literal["optMap", "optFlatMap"]
    variable: str
    body: SyntaxNode


class TreeTooDeepError(EvaluationError):
    """The tree is deeper than `MAX_TREE_DEPTH`."""

    def __init__(self, offset: int) -> None:
        super().__init__("CelTooDeep", f"the expression is nested more than {MAX_TREE_DEPTH} deep", offset)


class NodeMeasure(TypedDict):
    """Keyword arguments of every node."""

    offset: int
    depth: int
    size: int


def measure_node(offset: int, children: Iterable[SyntaxNode]) -> NodeMeasure:
    """Return offset, depth and size of a node with these children. Raise `TreeTooDeepError` if it is too deep."""
    depth, size = 0, 1
    for child in children:
        depth, size = max(depth, child.depth), size + child.size
    if depth >= MAX_TREE_DEPTH:
        raise TreeTooDeepError(offset)
    return {"offset": offset, "depth": depth + 1, "size": size}


def list_children(node: SyntaxNode) -> Iterable[SyntaxNode]:
    """Return the direct children of a node, in text order."""
    match node:
        case CallNode() | MethodStep():
            return node.arguments
        case ListLiteral():
            return (item for item, _ in node.items)
        case MapLiteral():
            return (part for key, value, _ in node.entries for part in (key, value))
        case BinaryChainNode():
            return (node.first, *(operand for _, _, operand in node.operations))
        case LogicalNode():
            return node.operands
        case UnaryNode():
            return (node.operand,)
        case ConditionalNode():
            return (*(part for arm in node.arms for part in arm), node.otherwise)
        case BindNode():
            return (node.value, node.body)
        case AccessNode():
            return (node.base, *node.steps)
        case IndexStep():
            return (node.index,)
        case LoopStep():
            return (node.body,) if node.condition is None else (node.condition, node.body)
        case AlternativeStep():
            return (node.argument,)
        case OptionalMapStep():
            return (node.body,)
        case _:
            return ()
