"""Comments of values in YAML documents.

A line comment is on the same line as its value, e.g. a kpt setter. Leading comments are on the lines above an entry of
a mapping or an item of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from reconciler.krm.yaml.emit import indent_lines
from reconciler.krm.yaml.errors import YamlError
from reconciler.krm.yaml.layout import REST_OF_LINE, TextLayout, TextSpan
from reconciler.krm.yaml.nodes import (
    AliasNode,
    MappingNode,
    ScalarNode,
    SequenceNode,
    YamlNode,
    is_block_collection,
    is_merge_key,
)
from reconciler.krm.yaml.resolve import convert_key_to_text
from reconciler.lazy_dataclasses import dataclass

DataPath: TypeAlias = tuple[str | int, ...]

_HEADER_COMMENT = re.compile(r"[|>][0-9+-]*[ \t]+(#.*)")
_ONLY_COLON_AND_PROPERTIES = re.compile(r"[ \t]*:(?:[ \t]+[&!]\S*)*[ \t]+\Z")
_ONLY_INDICATORS = re.compile(r"[ \t]*(?:[-?:][ \t]+)+(?:[&!]\S*[ \t]+)*\Z")
_ONLY_CLOSERS = re.compile(r"[\s,\]}]*\Z")
_OPTIONAL_COMMA = re.compile(r"[ \t]*,?")
_COMMENT = re.compile("#[^\n\r\x85\u2028\u2029]*")


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A node without children: a key, a scalar, an alias or an empty flow collection.

    `chain` contains the (path, node) pairs from the root of the document to the leaf. The chain of a key ends with the
    mapping that contains the key.
    """

    start: int
    end: int
    chain: tuple[tuple[DataPath, YamlNode], ...]
    is_key: bool


def get_key_name(key: YamlNode) -> str | None:
    """Return a key of a mapping as a string, e.g. "1" for `1: a`. Return None for the merge key `<<`."""
    return None if is_merge_key(key) else convert_key_to_text(key.data)


def _add_leaves(
    leaves: list[_Leaf], node: YamlNode, path: DataPath, chain: tuple[tuple[DataPath, YamlNode], ...]
) -> None:
    chain = (*chain, (path, node))
    if isinstance(node, ScalarNode | AliasNode) or not node.children:
        leaves.append(_Leaf(node.start, node.end, chain, is_key=False))
    elif isinstance(node, SequenceNode):
        for index, child in enumerate(node.children):
            _add_leaves(leaves, child, (*path, index), chain)
    else:
        for key, value in node.entries():
            leaves.append(_Leaf(key.start, key.end, chain, is_key=True))
            _add_leaves(leaves, value, (*path, get_key_name(key) or "<<"), chain)


def find_comments(layout: TextLayout, root: YamlNode) -> Mapping[DataPath, TextSpan]:
    """Return the text span of the line comment of each value. Comments on separate lines are not included."""
    spans: dict[DataPath, TextSpan] = {}
    if "#" in layout.text:
        leaves: list[_Leaf] = []
        _add_leaves(leaves, root, (), ())
        for before, after in zip([None, *leaves], [*leaves, None], strict=True):
            # Search for "#" before the text is parsed further, because most scalars have no comment.
            if layout.text.find("#", before.start if before else 0, after.start if after else None) >= 0:
                for path, span in _find_comments_between(layout, before, after):
                    spans.setdefault(path, span)
    return spans


def _find_comments_between(
    layout: TextLayout, before: _Leaf | None, after: _Leaf | None
) -> Iterator[tuple[DataPath, TextSpan]]:
    """Yield the line comments between two adjacent leaves (see `_Leaf`).

    Each comment is a pair: the path of the value that the comment belongs to, and the text span of the comment. If
    `before` is a block scalar, a comment after its `|` or `>` is included.

    Args:
        before: The leaf before the comments. None at the start of the text.
        after: The leaf after the comments. None at the end of the text.
    """
    text = layout.text
    if before:
        yield from _find_header_comment(layout, before)
    position = before.end if before else 0
    end = after.start if after else len(text)
    closers = 0
    while (start := text.find("#", position, end)) >= 0:
        closers += text.count("]", position, start) + text.count("}", position, start)
        match = _COMMENT.match(text, start)
        position = match.end() if match else end
        path = _find_owner(layout, before, after, start, closers)
        if path is not None:
            yield path, (start, start + len(text[start:position].rstrip()))


def _find_header_comment(layout: TextLayout, leaf: _Leaf) -> Iterator[tuple[DataPath, TextSpan]]:
    path, node = leaf.chain[-1]
    if not leaf.is_key and isinstance(node, ScalarNode) and node.style in ("|", ">"):
        start = layout.find_content_start(node)
        if match := _HEADER_COMMENT.match(layout.text, start, layout.line_end(start)):
            yield path, (match.start(1), match.start(1) + len(match[1].rstrip()))


def _find_owner(
    layout: TextLayout, before: _Leaf | None, after: _Leaf | None, offset: int, closers: int
) -> DataPath | None:
    start = layout.line_start(offset)
    if before and before.end > start:
        text = layout.text[before.end : offset]
        if before.is_key:
            return _find_collection_below(layout, after, offset) if _ONLY_COLON_AND_PROPERTIES.match(text) else None
        return before.chain[-1 - closers][0] if _ONLY_CLOSERS.match(text) else None
    line = layout.text[start:offset]
    if not line.strip():
        return None
    if before and _ONLY_CLOSERS.match(line):
        return before.chain[-1 - closers][0]
    return _find_collection_below(layout, after, offset) if _ONLY_INDICATORS.match(line) else None


def _find_collection_below(layout: TextLayout, leaf: _Leaf | None, offset: int) -> DataPath | None:
    """Return the path of the block collection that starts on the lines below a line comment.

    For example, the path of the mapping `b: 1` if this mapping is below `a: # comment`. Return None if the value below
    the comment is not a block collection.

    Args:
        leaf: The first key, scalar, alias or empty collection after the comment.
        offset: The offset of the comment.
    """
    line = layout.line_start(offset)
    for path, node in leaf.chain if leaf else ():
        has_properties = node.start >= line and layout.text[node.start] in "&!"
        if node.start > offset or has_properties:
            return path if is_block_collection(node) else None
    return None


def find_node(root: YamlNode, path: DataPath) -> tuple[YamlNode, tuple[YamlNode, int] | None]:
    """Return the node at `path`, and its position: its parent node and its index in the children of the parent.

    The position of the root is None.

    Raises:
        KeyError: The text contains no node at `path`. Entries that a merge key adds have no node.
    """
    node: YamlNode = root
    parent: tuple[YamlNode, int] | None = None
    for segment in path:
        index = _find_child_index(node, segment)
        parent = (node, index)
        node = node.children[index]  # type: ignore[union-attr]  # _find_child_index raises for scalars
    return node, parent


def _find_child_index(node: YamlNode, segment: Any) -> int:
    match node, segment:
        case SequenceNode(), int() if 0 <= segment < len(node.children):
            return segment
        case MappingNode(), str():
            node.value_indexes = node.value_indexes or index_values(node)
            return node.value_indexes[segment]
    raise KeyError(segment)


def index_values(node: MappingNode) -> dict[str, int]:
    """Return a mapping from each key name of a mapping node to the index of the key's value in `node.children`."""
    indexes: dict[str, int] = {}
    for number, key in enumerate(node.children[::2]):
        name = get_key_name(key)
        if name is not None:
            indexes.setdefault(name, 2 * number + 1)
    return indexes


def find_comment_offset(layout: TextLayout, root: YamlNode, path: DataPath) -> int:
    """Return the offset at which a line comment for the value at `path` can be inserted.

    Raises:
        YamlError: There is no value at `path`, or other text follows the value on its line (code YamlComment).
    """
    try:
        node, parent = find_node(root, path)
    except KeyError as error:
        raise YamlError("YamlComment", f"there is no value at {path!r}") from error
    offset = _find_value_end(layout, node) if not is_block_collection(node) else _find_header_end(layout, node, parent)
    rest_of_line = REST_OF_LINE.match(layout.text, offset) if offset is not None else None
    if offset is None or rest_of_line is None or rest_of_line[1]:
        raise YamlError(
            "YamlComment", f"the value at {path!r} cannot have a line comment, because other text follows on its line"
        )
    return offset


def create_line_comment_edit(text: str, span: TextSpan, comment: str | None) -> tuple[int, int, str]:
    """Return the edit (start, end, new text) that replaces the line comment at `span`.

    If `comment` is None or empty, the edit removes the line comment.
    """
    start, end = span
    if not comment:
        return len(text[:start].rstrip(" \t")), end, ""
    return start, end, comment if text[start - 1 : start] in (" ", "\t", "") else f" {comment}"


def _find_value_end(layout: TextLayout, node: YamlNode) -> int:
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        start = layout.find_content_start(node)
        return start + len(layout.text[start : layout.line_end(start)].rstrip(" \t"))
    match = _OPTIONAL_COMMA.match(layout.text, node.end)
    end = match.end() if match else node.end
    return end if layout.text[node.end : end].strip() else node.end


def _find_header_end(layout: TextLayout, node: YamlNode, parent: tuple[YamlNode, int] | None) -> int | None:
    match parent:
        case MappingNode() as mapping, index:
            offset = layout.find_colon_end(mapping.children[index - 1])
        case SequenceNode() as sequence, index:
            offset = layout.find_dash_end(sequence, index)
        case _:
            return None
    if offset is not None and node.start < layout.line_end(offset):
        return layout.find_properties_end(node)
    return offset


@dataclass(frozen=True, slots=True)
class LeadingComments:
    """The lines of the leading comments of an entry or item: line `first` to line `end` (exclusive).

    `column` is the column of the entry or item. New comment lines are indented to this column.
    """

    first: int
    end: int
    column: int

    def lines(self, layout: TextLayout) -> tuple[str, ...]:
        """Return the comment lines without indentation. The comments above the document can contain blank lines."""
        return tuple(layout.line_text(number).strip() for number in range(self.first, self.end))


def find_leading_comments(layout: TextLayout, root: YamlNode) -> Mapping[DataPath, LeadingComments]:
    """Return a mapping from the path of each entry and item in block collections to its leading comments.

    An entry or item without leading comments has an empty range of lines. The path () stands for the comments above the
    whole document, such as a license. The lines of these comments end with the last blank line above the first entry.
    """
    comments: dict[DataPath, LeadingComments] = {}
    starts: list[tuple[DataPath, int]] = []
    _add_starts(starts, layout, root, ())
    for path, start in starts:
        line = layout.line(start)
        line_start = layout.starts[line]
        if not layout.text[line_start:start].strip(" \t"):
            column = start - line_start
            comments[path] = LeadingComments(layout.find_first_comment_above(line, column), line, column)
    top = layout.line(root.start)
    end = min((block.first for block in comments.values()), default=top)
    if layout.is_first_on_line(root.start) and all(
        _is_comment_or_blank(layout.line_text(number)) for number in range(end)
    ):
        comments[()] = LeadingComments(0, end, 0)
    return comments


def _is_comment_or_blank(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")


def _add_starts(starts: list[tuple[DataPath, int]], layout: TextLayout, node: YamlNode, path: DataPath) -> None:
    """Add the path and the start offset of each entry and item in block collections to `starts`."""
    if isinstance(node, MappingNode) and is_block_collection(node):
        for key, value in node.entries():
            child_path = (*path, get_key_name(key) or "<<")
            starts.append((child_path, key.start))
            _add_starts(starts, layout, value, child_path)
    elif isinstance(node, SequenceNode) and is_block_collection(node):
        for index, child in enumerate(node.children):
            dash_end = layout.find_dash_end(node, index)
            if dash_end is not None:
                starts.append(((*path, index), dash_end - 1))
            _add_starts(starts, layout, child, (*path, index))


def create_leading_comments_edit(
    layout: TextLayout, comments: LeadingComments, lines: Sequence[str]
) -> tuple[int, int, str]:
    """Return the edit (start, end, new text) that replaces the leading comments of an entry or item."""
    text = "".join(line + layout.newline for line in indent_lines(lines, comments.column))
    return layout.starts[comments.first], layout.starts[comments.end], text
