"""Syntax tree of CEL expressions, with macros expanded.

The parser creates the tree. The static check and the compiler read the tree.

A chain of operators or accesses, e.g. `a + b - c` or `a.b[c].d()`, is one node. A long expression is therefore not a
deep tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypedDict

from reconciler.cel.errors import EvaluationError
from reconciler.lazy_dataclasses import dataclass

MAX_TREE_DEPTH = 100
"""The maximum number of levels of a syntax tree. It prevents a RecursionError in recursive functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxNode:
    """A node of the syntax tree.

    Attributes:
        offset: Offset of the node in the text of the expression.
        depth: Number of levels of the subtree, including this node.
        size: Number of nodes of the subtree, including this node.
    """

    offset: int
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class LiteralNode(SyntaxNode):
    """A literal, such as `1`, `"a"` or `true`."""

    value: Any


@dataclass(frozen=True, slots=True)
class NameNode(SyntaxNode):
    """An identifier.

    Attributes:
        name: The identifier.
        start: Offset of the identifier or, if `absolute` is true, of its leading dot.
        end: Offset after the identifier.
        absolute: Whether the identifier has a leading dot, e.g. `.name`. Such an identifier is not a local variable,
            and has no implicit prefix.
        is_grouped: Whether the identifier is in parentheses, e.g. `(name)`.
    """

    name: str
    start: int
    end: int
    absolute: bool = False
    is_grouped: bool = False


@dataclass(frozen=True, slots=True)
class CallNode(SyntaxNode):
    """A function call that is not a method call, e.g. `size(x)`."""

    function: str
    arguments: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral(SyntaxNode):
    """A list literal, e.g. `[a, ?b]`. Each item contains a node, and whether the item is optional (`?b`)."""

    items: tuple[tuple[SyntaxNode, bool], ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(SyntaxNode):
    """A map literal, e.g. `{k: v, ?k: v}`. Each entry contains key, value, and whether it is optional (`?k: v`)."""

    entries: tuple[tuple[SyntaxNode, SyntaxNode, bool], ...]


@dataclass(frozen=True, slots=True)
class BinaryChainNode(SyntaxNode):
    """Binary operators of the same precedence, from left to right, e.g. `a + b - c`.

    `first` is the first operand. Each operation contains an operator, its offset in the text, and its right operand.
    """

    first: SyntaxNode
    operations: tuple[tuple[str, int, SyntaxNode], ...]


@dataclass(frozen=True, slots=True)
class LogicalNode(SyntaxNode):
    """The operator `&&` or `||` with two or more operands."""

    operator: str
    operands: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class UnaryNode(SyntaxNode):
    """The operator `!` or `-`, applied `count` times, e.g. `!!x`."""

    operator: str
    count: int
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class ConditionalNode(SyntaxNode):
    """A conditional, e.g. `a ? b : c ? d : e`. `arms` contains (a, b) and (c, d). `otherwise` is e."""

    arms: tuple[tuple[SyntaxNode, SyntaxNode], ...]
    otherwise: SyntaxNode


@dataclass(frozen=True, slots=True)
class BindNode(SyntaxNode):
    """The macro `cel.bind(variable, value, body)`, which defines a local variable for `body`."""

    variable: str
    value: SyntaxNode
    body: SyntaxNode


@dataclass(frozen=True, slots=True)
class AccessNode(SyntaxNode):
    """A value and the accesses that are applied to it from left to right, e.g. `base.field[index].method(x)`."""

    base: SyntaxNode
    steps: tuple[AccessStep, ...]


@dataclass(frozen=True, slots=True)
class AccessStep(SyntaxNode):
    """One field access, index access, method call or method macro in an `AccessNode`."""


@dataclass(frozen=True, slots=True)
class FieldStep(AccessStep):
    """A field access: `.name`, `.?name` (`optional`), or the last field in `has(a.name)` (`test`).

    `end` is the offset after the field.
    """

    name: str
    end: int
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class IndexStep(AccessStep):
    """An index access: `[index]` or `[?index]` (`optional`). `end` is the offset after the closing bracket."""

    index: SyntaxNode
    end: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MethodStep(AccessStep):
    """A method call: `.name(arguments)`."""

    name: str
    arguments: tuple[SyntaxNode, ...]


LoopKind = Literal["all", "exists", "exists_one", "map", "filter", "transformMap", "transformMapEntry", "sortBy"]


@dataclass(frozen=True, slots=True)
class LoopStep(AccessStep):
    """A macro that iterates over a list or map, e.g. `list.filter(x, x > 1)`.

    A single variable contains the list element or map key. Two variables contain index and element of a list, or key
    and value of a map.

    Attributes:
        kind: The operation of the macro. Macros with different names can have the same operation.
        name: Name of the macro in the expression.
        condition: Condition that selects elements. Only `map` and the `transform…` macros can have a condition.
        body: Expression that is evaluated for each element.
    """

    kind: LoopKind
    name: str
    variables: tuple[str, ...]
    condition: SyntaxNode | None
    body: SyntaxNode


@dataclass(frozen=True, slots=True)
class AlternativeStep(AccessStep):
    """The macro `.or(x)` or `.orValue(x)`. `x` is evaluated only if the optional before the dot is empty."""

    function: Literal["or", "orValue"]
    argument: SyntaxNode


@dataclass(frozen=True, slots=True)
class OptionalMapStep(AccessStep):
    """The macro `.optMap(variable, body)` or `.optFlatMap(variable, body)` of an optional."""

    function: Literal["optMap", "optFlatMap"]
    variable: str
    body: SyntaxNode


class TreeTooDeepError(EvaluationError):
    """An expression whose syntax tree has more than `MAX_TREE_DEPTH` levels."""

    def __init__(self, offset: int) -> None:
        super().__init__("CelTooDeep", f"the expression is nested more than {MAX_TREE_DEPTH} levels deep", offset)


class NodeMeasure(TypedDict):
    """Offset, depth and size of a node, as keyword arguments for the constructor of each node class."""

    offset: int
    depth: int
    size: int


def measure_node(offset: int, children: Iterable[SyntaxNode]) -> NodeMeasure:
    """Return offset, depth and size of a node with these children.

    Raises:
        TreeTooDeepError: The node has more than `MAX_TREE_DEPTH` levels.
    """
    depth, size = 0, 1
    for child in children:
        depth, size = max(depth, child.depth), size + child.size
    if depth >= MAX_TREE_DEPTH:
        raise TreeTooDeepError(offset)
    return {"offset": offset, "depth": depth + 1, "size": size}


def find_name_offset(node: SyntaxNode) -> int:
    """Return the offset of the identifier at the start of a node."""
    return node.base.offset if isinstance(node, AccessNode) else node.offset


def list_children(node: SyntaxNode) -> Iterable[SyntaxNode]:
    """Return the direct children of a node, in the order of the text."""
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
