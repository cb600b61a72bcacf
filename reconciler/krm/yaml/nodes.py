"""Nodes: what stands where in a document's text, and the data it means.

Offsets count characters of the document's own text. `start` lies before a node's properties (anchor, tag); `end` lies
behind the last character of a scalar, an alias or a flow collection. Where a block collection ends only its last
child knows, because the parser's end mark runs on to the next token.

Mutable and compared by identity: a file of ten thousand nodes is read for each of thousands of packages, and frozen
dataclasses cost three times as much to build. Nobody outside this room sees them, and nobody changes them once they are
composed: equal texts share theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

TAG_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True, eq=False)
class ScalarNode:
    """A scalar; `value` is its raw text after unquoting, `style` one of "", "'", '"', "|", ">"."""

    start: int
    end: int
    value: str
    style: str
    tag: str | None
    anchor: str | None
    data: Any


@dataclass(slots=True, eq=False)
class SeqNode:
    """A sequence and its items."""

    start: int
    end: int
    flow: bool
    tag: str | None
    anchor: str | None
    children: list[Node]
    data: Any


@dataclass(slots=True, eq=False)
class MapNode:
    """A mapping; `children` alternates keys and values as they stand, merge keys included.

    `places` is where the values of its keys stand among them, once somebody has asked.
    """

    start: int
    end: int
    flow: bool
    tag: str | None
    anchor: str | None
    children: list[Node]
    data: Any
    places: dict[str, int] | None = None

    def entries(self) -> Iterator[tuple[Node, Node]]:
        """Yield (key, value) as written."""
        return zip(self.children[::2], self.children[1::2], strict=True)


@dataclass(slots=True, eq=False)
class AliasNode:
    """A `*name`; its data is the very object of its target."""

    start: int
    end: int
    target: Node
    data: Any
    anchor: None = None


Node: TypeAlias = ScalarNode | SeqNode | MapNode | AliasNode


def is_block(node: Node) -> bool:
    """Tell whether the node is a collection in block style."""
    return isinstance(node, MapNode | SeqNode) and not node.flow


def is_merge(key: Node) -> bool:
    """Tell whether the key is the merge key `<<`."""
    return isinstance(key, ScalarNode) and (
        (key.value == "<<" and not key.style and key.tag is None) or key.tag == TAG_PREFIX + "merge"
    )
