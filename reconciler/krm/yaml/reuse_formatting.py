"""Reuse of formatting: new entries and items copy comments, quotes and line breaks from another document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from reconciler.krm.yaml.comments import DataPath, find_node
from reconciler.krm.yaml.compose import LINE_BREAK
from reconciler.krm.yaml.emit import (
    IndentStyle,
    format_entry_lines,
    format_item_lines,
    format_key_line,
    format_value_lines,
    indent_lines,
)
from reconciler.krm.yaml.layout import TextLayout
from reconciler.krm.yaml.nodes import AliasNode, MappingNode, ScalarNode, SequenceNode, YamlNode, is_block_collection
from reconciler.lazy_dataclasses import dataclass

# The position of a node: its parent node, and the index of the node in the `children` of the parent.
ChildPosition = tuple[YamlNode, int]


def copy_lines(layout: TextLayout, position: ChildPosition) -> list[str] | None:
    """Return the lines of an entry or item with its comments, without indentation.

    Return None if the lines cannot be moved to another position. Reasons are an anchor, an alias, or a line with less
    indentation than the entry.
    """
    parent, index = position
    assert isinstance(parent, MappingNode | SequenceNode)
    node, key = parent.children[index], find_key(position)
    if not is_movable(node) or (key is not None and (not is_movable(key) or layout.find_colon_end(key) is None)):
        return None
    if not is_block_collection(parent):
        return _copy_from_flow(layout, key, node)
    start = find_start(layout, position)
    lines = _copy_block_lines(layout, start, node)
    return lines and [*copy_comment_lines_above(layout, start), *lines]


def find_key(position: ChildPosition) -> YamlNode | None:
    """Return the key of an entry. Return None for an item of a sequence."""
    parent, index = position
    return parent.children[index - 1] if isinstance(parent, MappingNode) else None


def find_start(layout: TextLayout, position: ChildPosition) -> int:
    """Return the offset of the key of an entry, or of the dash of an item."""
    parent, index = position
    key = find_key(position)
    if key is not None:
        return key.start
    if not isinstance(parent, SequenceNode) or not is_block_collection(parent):
        return parent.start
    dash_end = layout.find_dash_end(parent, index)
    return parent.start if dash_end is None else dash_end - 1


def copy_comment_lines_above(layout: TextLayout, start: int) -> list[str]:
    """Return the comment lines above an entry or item, and the blank lines above the comment lines."""
    line, column = layout.line(start), layout.column(start)
    if not layout.is_first_on_line(start):
        return []
    first = layout.find_first_comment_above(line, column)
    while first > 0 and not layout.line_text(first - 1).strip():
        first -= 1
    return [layout.line_text(number)[column:].rstrip() for number in range(first, line)]


def is_movable(node: YamlNode) -> bool:
    """Return whether the text of the node can be moved. A node with an anchor or alias cannot be moved."""
    if isinstance(node, AliasNode) or node.anchor is not None:
        return False
    return isinstance(node, ScalarNode) or all(map(is_movable, node.children))


def copy_single_line(layout: TextLayout, node: YamlNode) -> str:
    """Return the text of a node. Return "" if the text has several lines, or contains an anchor or alias."""
    text = layout.text[node.start : node.end]
    return text if is_movable(node) and not LINE_BREAK.search(text) else ""


def _copy_from_flow(layout: TextLayout, key: YamlNode | None, node: YamlNode) -> list[str] | None:
    value, name = copy_single_line(layout, node), copy_single_line(layout, key) if key is not None else ""
    if not value or (key is not None and not name):
        return None
    return [f"{name}: {value}" if name else f"- {value}"]


def _copy_block_lines(layout: TextLayout, start: int, node: YamlNode) -> list[str] | None:
    column, first = layout.column(start), layout.line(start)
    last = layout.find_last_comment_below(layout.line(layout.find_content_end(node)), column)
    below = [layout.line_text(number) for number in range(first + 1, last + 1)]
    if any(line[:column].strip(" ") for line in below):
        return None
    return [layout.text[start : layout.ends[first]], *(line[column:] for line in below)]


@dataclass(frozen=True, slots=True)
class FormattingSource:
    """The entry, item or scalar in another document whose formatting a new value copies.

    If `whole` is true, the lines of the source are copied unchanged. If `whole` is false, only the key and the comments
    are copied, and the value is written in block style. Values inside this value can have their own sources.
    """

    path: DataPath
    whole: bool = True


@dataclass(frozen=True)
class ReusedFormatting:
    """Writer of new entries and items that copies the formatting of values in another document.

    `sources` maps paths of new values to the values in the other document whose formatting is copied. If the
    lines of such a value cannot be copied, e.g. because they contain an alias, only key and comments are copied.
    """

    layout: TextLayout
    root: YamlNode
    comments: Mapping[DataPath, str]
    sources: Mapping[DataPath, FormattingSource]

    def format_entry_lines(self, path: DataPath, name: str, value: Any, style: IndentStyle) -> list[str]:
        """Return the lines of the entry `name: value`, without indentation of the whole entry."""
        source = self.sources.get(path)
        if source is None:
            return format_entry_lines(name, value, style)
        lines = self._copy_source_lines(source.path) if source.whole else None
        return lines or self._rewrite_entry(source, path, name, value, style)

    def format_item_lines(self, path: DataPath, value: Any, style: IndentStyle) -> list[str]:
        """Return the lines of an item with its leading comments, without indentation of the whole item."""
        source = self.sources.get(path)
        if source is None:
            return format_item_lines(value, style)
        lines = self._copy_source_lines(source.path) if source.whole else None
        return lines or self._rewrite_item(source, path, value, style)

    def format_value_lines(
        self, path: DataPath, value: Any, style: IndentStyle, scalar: str = ""
    ) -> tuple[str, list[str]]:
        """Return the text of a value on the line of its key or dash, and the lines below it without indentation."""
        if self.sources and value and isinstance(value, dict):
            texts = [self.format_entry_lines((*path, name), name, child, style) for name, child in value.items()]
        elif self.sources and value and isinstance(value, list):
            texts = [self.format_item_lines((*path, index), child, style) for index, child in enumerate(value)]
        else:
            copied = self._copy_scalar(path, scalar)
            return (copied, []) if copied else format_value_lines(value, style, scalar)
        return "", strip_leading_blank_lines(chain(*texts))

    def _copy_scalar(self, path: DataPath, style: str) -> str:
        """Return the text of the scalar in the source document whose formatting the new value at `path` copies.

        Return "" if there is no such scalar, if the scalar has several lines, an anchor or a tag, or if its style is
        not `style`.
        """
        source = self.sources.get(path)
        try:
            node, _ = find_node(self.root, source.path) if source and source.whole else (None, None)
        except KeyError:
            return ""
        if not isinstance(node, ScalarNode) or node.style != style or node.anchor is not None or node.tag is not None:
            return ""
        text = self.layout.text[node.start : node.end]
        return "" if LINE_BREAK.search(text) else text

    def _copy_source_lines(self, path: DataPath) -> list[str] | None:
        try:
            _, position = find_node(self.root, path)
        except KeyError:
            return None
        return copy_lines(self.layout, position) if position else None

    def _rewrite_entry(
        self, source: FormattingSource, path: DataPath, name: str, value: Any, style: IndentStyle
    ) -> list[str]:
        copied = self._copy_formatting(source.path)
        head, body = self.format_value_lines(path, value, style, copied.scalar_style)
        first = [*(f"{copied.key}:" if copied.key else format_key_line(name)).split("\n")]
        first[-1] += f" {head or copied.line_comment}".rstrip()
        inner = 0 if isinstance(value, list) and style.compact and len(first) == 1 else style.step
        return [*copied.leading_comments, *first, *indent_lines(body, inner)]

    def _rewrite_item(self, source: FormattingSource, path: DataPath, value: Any, style: IndentStyle) -> list[str]:
        copied = self._copy_formatting(source.path)
        head, body = self.format_value_lines(path, value, style, copied.scalar_style)
        if head:
            return [*copied.leading_comments, f"- {head}", *indent_lines(body, 2)]
        number = next(number for number, line in enumerate(body) if line and not line.startswith("#"))
        return [*copied.leading_comments, *body[:number], f"- {body[number]}", *indent_lines(body[number + 1 :], 2)]

    def _copy_formatting(self, path: DataPath) -> _CopiedFormatting:
        try:
            node, position = find_node(self.root, path)
        except KeyError:
            return _CopiedFormatting()
        if position is None or not is_block_collection(position[0]):
            return _CopiedFormatting()
        key = find_key(position)
        return _CopiedFormatting(
            copy_comment_lines_above(self.layout, find_start(self.layout, position)),
            copy_single_line(self.layout, key) if key is not None else "",
            self.comments.get(path, "") if is_block_collection(node) else "",
            node.style if isinstance(node, ScalarNode) else "",
        )


class _CopiedFormatting(NamedTuple):
    """The formatting that a rewritten value takes from its source, if the lines of the source cannot be copied."""

    leading_comments: Sequence[str] = ()
    key: str = ""
    line_comment: str = ""
    scalar_style: str = ""


def strip_leading_blank_lines(lines: Iterable[str]) -> list[str]:
    """Remove the blank lines at the start."""
    remaining = list(lines)
    start = next((number for number, line in enumerate(remaining) if line), len(remaining))
    return remaining[start:]
