"""An entry or item as it stands: its lines and the comments that belong to it, ready to stand elsewhere."""

from __future__ import annotations

from reconciler.krm.yaml.compose import BREAK
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.nodes import AliasNode, MapNode, Node, ScalarNode, SeqNode, is_block

# a collection and, among its children, the place of an entry's value or of an item
Place = tuple[Node, int]


def standing_lines(layout: Layout, place: Place) -> list[str] | None:
    """Return the lines from the comments above to those below, beginning in column 0; None if they cannot be moved.

    They cannot if they need an anchor from elsewhere, or were not indented to begin with.
    """
    parent, index = place
    assert isinstance(parent, MapNode | SeqNode)
    node, key = parent.children[index], key_of(place)
    if not is_movable(node) or (key is not None and (not is_movable(key) or layout.after_colon(key) is None)):
        return None
    if not is_block(parent):
        return _from_flow(layout, key, node)
    start = start_of(layout, place)
    lines = _lines(layout, start, node)
    return lines and [*lines_above(layout, start), *lines]


def key_of(place: Place) -> Node | None:
    """Return the key of an entry, None for an item."""
    parent, index = place
    return parent.children[index - 1] if isinstance(parent, MapNode) else None


def start_of(layout: Layout, place: Place) -> int:
    """Return the offset of an entry's key or an item's dash."""
    parent, index = place
    key = key_of(place)
    if key is not None:
        return key.start
    after = layout.after_dash(parent, index) if isinstance(parent, SeqNode) and is_block(parent) else None
    return parent.start if after is None else after - 1


def lines_above(layout: Layout, start: int) -> list[str]:
    """Return the comment lines above an entry or item, and the blank ones above these."""
    line, column = layout.line(start), layout.column(start)
    if not layout.begins_line(start):
        return []
    first = layout.head(line, column)
    while first > 0 and not layout.line_text(first - 1).strip():
        first -= 1
    return [layout.line_text(number)[column:].rstrip() for number in range(first, line)]


def is_movable(node: Node) -> bool:
    """Tell whether the node means the same anywhere: aliases, and what they name, belong where they are."""
    if isinstance(node, AliasNode) or node.anchor is not None:
        return False
    return isinstance(node, ScalarNode) or all(map(is_movable, node.children))


def one_line(layout: Layout, node: Node) -> str:
    """Return the text of a node, but for block collections, if it stands on one line and can be moved, else ""."""
    text = layout.text[node.start : node.end]
    return text if is_movable(node) and not BREAK.search(text) else ""


def _from_flow(layout: Layout, key: Node | None, node: Node) -> list[str] | None:
    value, name = one_line(layout, node), one_line(layout, key) if key is not None else ""
    if not value or (key is not None and not name):
        return None
    return [f"{name}: {value}" if name else f"- {value}"]


def _lines(layout: Layout, start: int, node: Node) -> list[str] | None:
    column, first = layout.column(start), layout.line(start)
    last = layout.feet(layout.line(layout.tail(node)), column)
    below = [layout.line_text(number) for number in range(first + 1, last + 1)]
    if any(line[:column].strip(" ") for line in below):
        return None
    return [layout.text[start : layout.ends[first]], *(line[column:] for line in below)]
