"""Nodes of a YAML document: positions in the text, and data.

Offsets count characters of the document's text. `start` is the offset before the node's anchor and tag. `end` is the
offset after the last character of a scalar, an alias or a flow collection. For a block collection, only its last child
has a usable end, because the parser's end mark extends to the next token.

Nodes are mutable and compared by identity, because frozen dataclasses take three times as long to create, and a file of
ten thousand nodes may be read for thousands of packages. They are private to this folder and do not change after
composition. Documents with equal text share their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

TAG_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True, eq=False)
class ScalarNode:
    """A scalar. `value` is its text without quotes. `style` is one of "", "'", '"', "|" and ">"."""

    start: int
    end: int
    value: str
    style: str
    tag: str | None
    anchor: str | None
    data: Any


@dataclass(slots=True, eq=False)
class SequenceNode:
    """A sequence and its items."""

    start: int
    end: int
    flow: bool
    tag: str | None
    anchor: str | None
    children: list[YamlNode]
    data: Any


@dataclass(slots=True, eq=False)
class MappingNode:
    """A mapping. `children` contains keys and values alternately, including merge keys.

    `value_indexes` contains the index of each key's value in `children`. It is computed on first use.
    """

    start: int
    end: int
    flow: bool
    tag: str | None
    anchor: str | None
    children: list[YamlNode]
    data: Any
    value_indexes: dict[str, int] | None = None

    def entries(self) -> Iterator[tuple[YamlNode, YamlNode]]:
        """Yield (key, value) in document order."""
        return zip(self.children[::2], self.children[1::2], strict=True)


@dataclass(slots=True, eq=False)
class AliasNode:
    """An alias `*name`. Its data is the same object as the data of its target."""

    start: int
    end: int
    target: YamlNode
    data: Any
    anchor: None = None


YamlNode: TypeAlias = ScalarNode | SequenceNode | MappingNode | AliasNode


def is_block_collection(node: YamlNode) -> bool:
    """Return whether the node is a collection in block style."""
    return isinstance(node, MappingNode | SequenceNode) and not node.flow


def is_merge_key(key: YamlNode) -> bool:
    """Return whether the key is the merge key `<<`."""
    return isinstance(key, ScalarNode) and (
        (key.value == "<<" and not key.style and key.tag is None) or key.tag == TAG_PREFIX + "merge"
    )
