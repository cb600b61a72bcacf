"""The syntax tree: what the parser makes, macros expanded, and the checker and the compiler read.

Chains are flat (`a + b - c`, `a.b[c].d()`, `p ? x : q ? y : z`): a long expression is a wide tree, not a deep one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from reconciler.expressions.errors import Fault

DEEPEST_TREE = 100
"""How deep nodes may stand in one another: keeps every walk far from Python's recursion limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of the expression. `at` is its offset in the text, `depth` and `size` count the nodes below and itself."""

    at: int
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class Literal_(Node):  # noqa: N801  typing has a Literal too
    """A constant."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An identifier; absolute when written with a leading dot, which skips local variables and the container."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A call without a receiver: `size(x)`."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    """`[a, ?b]`: items and whether each is optional."""

    items: tuple[tuple[Node, bool], ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(Node):
    """`{k: v, ?k: v}`: keys, values and whether each entry is optional."""

    entries: tuple[tuple[Node, Node, bool], ...]


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """Binary operators of one level, left to right: `first`, then (operator, its offset, operand)."""

    first: Node
    rest: tuple[tuple[str, int, Node], ...]


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """`&&` or `||` over two or more operands."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`!` or `-`, `count` times."""

    operator: str
    count: int
    operand: Node


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`c ? v : c ? v : otherwise`: the arms in order, and what is left."""

    arms: tuple[tuple[Node, Node], ...]
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`cel.bind(variable, value, body)`."""

    variable: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True)
class Access(Node):
    """A value and what is done to it, left to right: `base.field[index].method(...)`."""

    base: Node
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Step(Node):
    """One link of an `Access`."""


@dataclass(frozen=True, slots=True)
class Field(Step):
    """`.name`, `.?name`, or the last step of `has(...)`."""

    name: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index(Step):
    """`[index]` or `[?index]`."""

    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Method(Step):
    """`.name(arguments)`."""

    name: str
    arguments: tuple[Node, ...]


LoopKind = Literal["all", "exists", "exists_one", "map", "filter", "transformMap", "transformMapEntry", "sortBy"]


@dataclass(frozen=True, slots=True)
class Loop(Step):
    """A macro that walks through a list or map; `name` is how it was written.

    One variable is bound to the element or key, two to index or key and value; `condition` lets elements pass (map
    and transform only) and `body` is evaluated for each.
    """

    kind: LoopKind
    name: str
    variables: tuple[str, ...]
    condition: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class Alternative(Step):
    """`.or(x)` and `.orValue(x)`: x is evaluated only when the optional before is empty."""

    function: Literal["or", "orValue"]
    argument: Node


@dataclass(frozen=True, slots=True)
class OptionalMap(Step):
    """`.optMap(variable, body)` and `.optFlatMap(variable, body)`."""

    function: Literal["optMap", "optFlatMap"]
    variable: str
    body: Node


class TooDeep(Fault):
    """The tree would be deeper than `DEEPEST_TREE`."""

    def __init__(self, at: int) -> None:
        super().__init__("CelTooDeep", f"the expression is nested more than {DEEPEST_TREE} deep", at)


class Measure(TypedDict):
    """The keywords that every node takes."""

    at: int
    depth: int
    size: int


def measured(at: int, children: Iterable[Node]) -> Measure:
    """Return the measure of a node over `children`; raises TooDeep."""
    depth, size = 0, 1
    for child in children:
        depth, size = max(depth, child.depth), size + child.size
    if depth >= DEEPEST_TREE:
        raise TooDeep(at)
    return {"at": at, "depth": depth + 1, "size": size}


def children(node: Node) -> Iterable[Node]:
    """Return the nodes directly below a node, in the order of the text."""
    match node:
        case Call() | Method():
            return node.arguments
        case ListLiteral():
            return (item for item, _ in node.items)
        case MapLiteral():
            return (part for key, value, _ in node.entries for part in (key, value))
        case Chain():
            return (node.first, *(operand for _, _, operand in node.rest))
        case Logical():
            return node.operands
        case Unary():
            return (node.operand,)
        case Conditional():
            return (*(part for arm in node.arms for part in arm), node.otherwise)
        case Bind():
            return (node.value, node.body)
        case Access():
            return (node.base, *node.steps)
        case Index():
            return (node.index,)
        case Loop():
            return (node.body,) if node.condition is None else (node.condition, node.body)
        case Alternative():
            return (node.argument,)
        case OptionalMap():
            return (node.body,)
        case _:
            return ()
