"""Nodes of a YAML document. A node contains its data and its position in the text.

Offsets are counted in characters from the start of the document's text. `start` is the offset before the anchor and the
tag of the node. `end` is the offset after the last character of a scalar, an alias or a flow collection. Do not use
`end` of a block collection, because the parser extends it to the next token. Use the `end` of its last child.

Nodes are not frozen dataclasses, because creation of a frozen dataclass takes three times as long, and a pass reads
large files for thousands of packages. Only this folder uses nodes. No code changes a node after composition, because
documents with the same text share their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from reconciler.lazy_dataclasses import dataclass

TAG_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True, eq=False)
class ScalarNode:
    """A scalar. `value` is the text of the scalar without quotes. `style` is "" (no quotes), "'", '"', "|" or ">"."""

    start: int
    end: int
    value: str
    style: str
    tag: str | None
    anchor: str | None
    data: Any


@dataclass(slots=True, eq=False)
class SequenceNode:
    """A sequence. `children` contains the items. `flow` is true for `[a, b]` and false for items with dashes."""

    start: int
    end: int
    flow: bool
    tag: str | None
    anchor: str | None
    children: list[YamlNode]
    data: Any


@dataclass(slots=True, eq=False)
class MappingNode:
    """A mapping. `children` contains key, value, key, value and so on, including the merge key `<<`.

    `value_indexes` contains the index in `children` of each key's value. It is None until the first use.
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
        """Yield key and value of each entry, in document order."""
        return zip(self.children[::2], self.children[1::2], strict=True)


@dataclass(slots=True, eq=False)
class AliasNode:
    """An alias `*name`.

    `target` is the node with the anchor `&name`. `data` is the same object as the data of `target`.
    """

    start: int
    end: int
    target: YamlNode
    data: Any
    anchor: None = None


YamlNode: TypeAlias = ScalarNode | SequenceNode | MappingNode | AliasNode


def is_block_collection(node: YamlNode) -> bool:
    """Return whether the node is a mapping or sequence in block style, i.e. without braces or brackets."""
    return isinstance(node, MappingNode | SequenceNode) and not node.flow


def is_merge_key(key: YamlNode) -> bool:
    """Return whether the key is the merge key `<<`."""
    return isinstance(key, ScalarNode) and (
        (key.value == "<<" and not key.style and key.tag is None) or key.tag == TAG_PREFIX + "merge"
    )
