"""Line comments: which value each belongs to, and where a new one would stand (kpt 5.4 and its setters read them)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.layout import REST, Layout
from reconciler.krm.yaml.nodes import AliasNode, MapNode, Node, ScalarNode, SeqNode, is_block, is_merge
from reconciler.krm.yaml.resolve import key_text

Path: TypeAlias = tuple[str | int, ...]
Span: TypeAlias = tuple[int, int]

_HEADER_COMMENT = re.compile(r"[|>][0-9+-]*[ \t]+(#.*)")
_AFTER_KEY = re.compile(r"[ \t]*:(?:[ \t]+[&!]\S*)*[ \t]+\Z")
_DASHES = re.compile(r"[ \t]*(?:[-?:][ \t]+)+(?:[&!]\S*[ \t]+)*\Z")
_AFTER_VALUE = re.compile(r"[\s,\]}]*\Z")
_AFTER_ITEM = re.compile(r"[ \t]*,?")
_COMMENT = re.compile("#[^\n\r\x85\u2028\u2029]*")


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A scalar, alias or empty flow collection, and the (path, node) pairs from the root down to itself."""

    start: int
    end: int
    chain: tuple[tuple[Path, Node], ...]
    is_key: bool


def key_name(key: Node) -> str | None:
    """Return the name of a mapping's key in the data, None for a merge key."""
    return None if is_merge(key) else key_text(key.data)


def _add_leaves(found: list[_Leaf], node: Node, path: Path, chain: tuple[tuple[Path, Node], ...]) -> None:
    chain = (*chain, (path, node))
    if isinstance(node, ScalarNode | AliasNode) or not node.children:
        found.append(_Leaf(node.start, node.end, chain, is_key=False))
    elif isinstance(node, SeqNode):
        for index, child in enumerate(node.children):
            _add_leaves(found, child, (*path, index), chain)
    else:
        for key, value in node.entries():
            found.append(_Leaf(key.start, key.end, chain, is_key=True))
            _add_leaves(found, value, (*path, key_name(key) or "<<"), chain)


def find_comments(layout: Layout, root: Node) -> Mapping[Path, Span]:
    """Return where the line comment of each value stands; comments on lines of their own belong to nobody."""
    found: dict[Path, Span] = {}
    if "#" in layout.text:
        leaves: list[_Leaf] = []
        _add_leaves(leaves, root, (), ())
        for before, after in zip([None, *leaves], [*leaves, None], strict=True):
            # most leaves have no comment near them, and this is the cheapest way to know
            if layout.text.find("#", before.start if before else 0, after.start if after else None) >= 0:
                for path, span in _between(layout, before, after):
                    found.setdefault(path, span)
    return found


def _between(layout: Layout, before: _Leaf | None, after: _Leaf | None) -> Iterator[tuple[Path, Span]]:
    """Yield the comments from the beginning of one leaf to that of the next."""
    text = layout.text
    if before:
        yield from _in_header(layout, before)
    position = before.end if before else 0
    end = after.start if after else len(text)
    closers = 0
    while (start := text.find("#", position, end)) >= 0:
        closers += text.count("]", position, start) + text.count("}", position, start)
        match = _COMMENT.match(text, start)
        position = match.end() if match else end
        path = _owner(layout, before, after, start, closers)
        if path is not None:
            yield path, (start, start + len(text[start:position].rstrip()))


def _in_header(layout: Layout, leaf: _Leaf) -> Iterator[tuple[Path, Span]]:
    path, node = leaf.chain[-1]
    if not leaf.is_key and isinstance(node, ScalarNode) and node.style in ("|", ">"):
        start = layout.content(node)
        if match := _HEADER_COMMENT.match(layout.text, start, layout.line_end(start)):
            yield path, (match.start(1), match.start(1) + len(match[1].rstrip()))


def _owner(layout: Layout, before: _Leaf | None, after: _Leaf | None, offset: int, closers: int) -> Path | None:
    start = layout.line_start(offset)
    if before and before.end > start:
        between = layout.text[before.end : offset]
        if before.is_key:
            return _collection_below(layout, after, offset) if _AFTER_KEY.match(between) else None
        return before.chain[-1 - closers][0] if _AFTER_VALUE.match(between) else None
    line = layout.text[start:offset]
    if not line.strip():
        return None
    if before and _AFTER_VALUE.match(line):
        return before.chain[-1 - closers][0]
    return _collection_below(layout, after, offset) if _DASHES.match(line) else None


def _collection_below(layout: Layout, leaf: _Leaf | None, offset: int) -> Path | None:
    """Return the path of the outermost collection that begins with `leaf`, behind `offset`."""
    line = layout.line_start(offset)
    for path, node in leaf.chain if leaf else ():
        with_properties = node.start >= line and layout.text[node.start] in "&!"
        if node.start > offset or with_properties:
            return path if is_block(node) else None
    return None


def node_at(root: Node, path: Path) -> tuple[Node, tuple[Node, int] | None]:
    """Return the node at `path` and (the collection that holds it, its place among the children).

    Raises KeyError or IndexError when nothing stands there in this document's own text.
    """
    node: Node = root
    holder: tuple[Node, int] | None = None
    for segment in path:
        index = _child_index(node, segment)
        holder = (node, index)
        node = node.children[index]  # type: ignore[union-attr]  # _child_index raises for scalars
    return node, holder


def _child_index(node: Node, segment: Any) -> int:
    match node, segment:
        case SeqNode(), int() if 0 <= segment < len(node.children):
            return segment
        case MapNode(), str():
            node.places = node.places or places_of(node)
            return node.places[segment]
    raise KeyError(segment)


def places_of(node: MapNode) -> dict[str, int]:
    """Return the index of each key's value in the children of a mapping."""
    found: dict[str, int] = {}
    for number, key in enumerate(node.children[::2]):
        name = key_name(key)
        if name is not None:
            found.setdefault(name, 2 * number + 1)
    return found


def comment_place(layout: Layout, root: Node, path: Path) -> int:
    """Return the offset where a line comment for the value at `path` goes, behind everything on its line.

    Raises YamlError (YamlComment) where the path does not exist or has no line of its own to end.
    """
    try:
        node, holder = node_at(root, path)
    except KeyError as error:
        raise YamlError("YamlComment", f"nothing stands at {path!r}") from error
    offset = _value_end(layout, node) if not is_block(node) else _header_end(layout, node, holder)
    rest = REST.match(layout.text, offset) if offset is not None else None
    if offset is None or rest is None or rest[1]:
        raise YamlError("YamlComment", f"the value at {path!r} has no end of line of its own for a comment")
    return offset


def beside_value(text: str, place: Span, comment: str | None) -> tuple[int, int, str]:
    """Return the edit that puts a comment, or none, in the place of a line comment: (start, end, new text)."""
    start, end = place
    if not comment:
        return len(text[:start].rstrip(" \t")), end, ""
    return start, end, comment if text[start - 1 : start] in (" ", "\t", "") else f" {comment}"


def _value_end(layout: Layout, node: Node) -> int:
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        start = layout.content(node)
        return start + len(layout.text[start : layout.line_end(start)].rstrip(" \t"))
    match = _AFTER_ITEM.match(layout.text, node.end)
    end = match.end() if match else node.end
    return end if layout.text[node.end : end].strip() else node.end


def _header_end(layout: Layout, node: Node, holder: tuple[Node, int] | None) -> int | None:
    match holder:
        case MapNode() as parent, index:
            offset = layout.after_colon(parent.children[index - 1])
        case SeqNode() as parent, index:
            offset = layout.after_dash(parent, index)
        case _:
            return None
    if offset is not None and node.start < layout.line_end(offset):
        return layout.properties_end(node)
    return offset
