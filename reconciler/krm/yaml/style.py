"""How a document is written: its indentation, and whether it is JSON."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.caching import cached
from reconciler.krm.yaml.emit import Style
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.nodes import MapNode, Node, ScalarNode, SeqNode

# the documents in flight that are edited differently for every cluster
_REMEMBERED_STYLES = 256


def is_json(root: Node) -> bool:
    """Tell whether the document is written as JSON, which every edit must leave it."""
    if isinstance(root, MapNode) and root.flow and root.children:
        return isinstance(key := root.children[0], ScalarNode) and key.style == '"'
    return isinstance(root, SeqNode) and root.flow and any(is_json(child) for child in root.children)


@cached(_REMEMBERED_STYLES)
def find_style(layout: Layout, root: Node) -> Style:
    """Return how the document indents, after the first mapping and the first sequence that stand in a mapping."""
    step: int | None = None
    inner: int | None = None
    for key, value in _block_pairs(root):
        if isinstance(value, MapNode) and step is None:
            step = layout.column(value.children[0].start) - layout.column(key.start)
        elif isinstance(value, SeqNode) and inner is None and (dash := layout.after_dash(value, 0)):
            inner = layout.column(dash - 1) - layout.column(key.start)
        if step is not None and inner is not None:
            break
    return Style(step if step and step > 0 else 2, not inner)


def _block_pairs(root: Node) -> Iterator[tuple[Node, MapNode | SeqNode]]:
    """Yield (key, block collection), in the order of the text."""
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, MapNode) and not node.flow:
            for key, value in node.entries():
                if isinstance(value, MapNode | SeqNode) and not value.flow:
                    yield key, value
        if isinstance(node, MapNode | SeqNode):
            stack += reversed(node.children)
