"""Positions in the text of a YAML document: lines, columns, start and end of nodes, and the indentation style."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from reconciler.krm.yaml.compose import LINE_BREAK
from reconciler.krm.yaml.emit import IndentStyle
from reconciler.krm.yaml.nodes import MappingNode, ScalarNode, SequenceNode, YamlNode
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

_COLON = re.compile(r"[ \t]*:")
_PROPERTIES = re.compile(r"(?:[ \t]*[&!][^\s,\[\]{}]*)*")
REST_OF_LINE = re.compile("[ \t]*(#[^\n\r\x85\u2028\u2029]*)?(?=[\n\r\x85\u2028\u2029]|\\Z)")
_BLANK = " \t\n\r\x85\u2028\u2029"

TextSpan: TypeAlias = tuple[int, int]
"""Start offset and end offset (exclusive) of a part of a text."""


@dataclass(frozen=True)
class TextLayout:
    """The lines of a text. The first line has the number 0."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The offset of the first character of each line."""
        return [0, *(match.end() for match in LINE_BREAK.finditer(self.text))]

    @cached_property
    def ends(self) -> list[int]:
        """The end offset of each line. The line break is not included."""
        return [*(match.start() for match in LINE_BREAK.finditer(self.text)), len(self.text)]

    @cached_property
    def newline(self) -> str:
        r"""The first line break in the text, "\n" or "\r\n". Use it for inserted lines."""
        first = LINE_BREAK.search(self.text)
        return "\r\n" if first and first[0] == "\r\n" else "\n"

    def line(self, offset: int) -> int:
        """Return the number of the line that contains `offset`."""
        return bisect_right(self.starts, offset) - 1

    def line_start(self, offset: int) -> int:
        """Return the offset of the start of the line that contains `offset`."""
        return self.starts[self.line(offset)]

    def line_end(self, offset: int) -> int:
        """Return the end offset of the line that contains `offset`. The line break is not included."""
        return self.ends[self.line(offset)]

    def column(self, offset: int) -> int:
        """Return the number of characters between the start of the line and `offset`."""
        return offset - self.line_start(offset)

    def line_text(self, number: int) -> str:
        """Return line `number` without its line break."""
        return self.text[self.starts[number] : self.ends[number]]

    def comment_column(self, number: int) -> int:
        """Return the column of "#" if line `number` contains only a comment. Return -1 for other lines."""
        text = self.line_text(number)
        stripped = text.lstrip(" ")
        return len(text) - len(stripped) if stripped.startswith("#") else -1

    def find_first_comment_above(self, number: int, column: int) -> int:
        """Return the number of the first line in the block of comment lines directly above line `number`.

        The comments of the block must begin at `column`. Return `number` if there is no such block, or if the block is
        at the top of the text, because such a comment belongs to the document, for example a license.
        """
        first = number
        while first > 0 and self.comment_column(first - 1) == column:
            first -= 1
        return first if self.starts[first] > self._first_character else number

    @cached_property
    def _first_character(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    def find_last_comment_below(self, number: int, column: int) -> int:
        """Return the number of the last comment line directly below line `number`.

        Only comments that are indented deeper than `column` count. Return `number` if there are no such lines.
        """
        while number + 1 < len(self.starts) and self.comment_column(number + 1) > column:
            number += 1
        return number

    def is_first_on_line(self, offset: int) -> bool:
        """Return whether only spaces and tabs precede `offset` on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" \t")

    def find_content_start(self, node: YamlNode) -> int:
        """Return the offset where the content of the node begins, after its anchor and its tag."""
        start = self.find_properties_end(node)
        while start < len(self.text) and self.text[start] in " \t":
            start += 1
        return min(start, node.end) if isinstance(node, ScalarNode) else start

    def find_properties_end(self, node: YamlNode) -> int:
        """Return the offset after the anchor and the tag of the node."""
        properties = _PROPERTIES.match(self.text, node.start)
        return properties.end() if properties else node.start

    def find_content_end(self, node: YamlNode) -> int:
        """Return the offset after the last character of the node.

        Line breaks at the end are included only for a block scalar with the indicator "+", e.g. `|+`.
        """
        while isinstance(node, MappingNode | SequenceNode) and not node.flow:
            node = node.children[-1]
        if not isinstance(node, ScalarNode) or node.style not in ("|", ">"):
            return node.end
        text = self.text[node.start : node.end]
        if "+" in text.split("\n", 1)[0].split("#", 1)[0]:
            last = list(LINE_BREAK.finditer(text))[-1:]
            return node.start + (last[0].start() if last and last[0].end() == len(text) else len(text))
        return node.start + len(text.rstrip(_BLANK))

    def find_dash_end(self, sequence: SequenceNode, index: int) -> int | None:
        """Return the offset after the dash of item `index` of a block sequence. Return None if there is no dash."""
        if index:
            offset = self.line_end(self.find_content_end(sequence.children[index - 1]))
        else:
            offset = self.find_properties_end(sequence)
        child = sequence.children[index]
        while offset < len(self.text) and offset <= child.start:
            if self.text[offset] == "#":
                offset = self.line_end(offset)
            elif self.text[offset] == "-":
                return offset + 1
            elif self.text[offset] not in _BLANK:
                return None
            else:
                offset += 1
        return None

    def find_colon_end(self, key: YamlNode) -> int | None:
        """Return the offset after the colon of `key: value`.

        Return None if the key has the indicator `?`, or if the colon is not on the same line as the end of the key.
        """
        match = _COLON.match(self.text, key.end)
        prefix = self.text[self.line_start(key.start) : key.start].rstrip(" \t")
        return match.end() if match and not prefix.endswith("?") else None


# Cache the indentation of documents, because a pass edits the same document with different values for each cluster.
_MAX_CACHED_STYLES = 256


def is_json_document(root: YamlNode) -> bool:
    """Return whether the document is written in JSON syntax, which edits must preserve."""
    if isinstance(root, MappingNode) and root.flow and root.children:
        return isinstance(key := root.children[0], ScalarNode) and key.style == '"'
    return isinstance(root, SequenceNode) and root.flow and any(is_json_document(child) for child in root.children)


@cached(_MAX_CACHED_STYLES)
def detect_indent_style(layout: TextLayout, root: YamlNode) -> IndentStyle:
    """Return the indentation style that the first nested mapping and the first nested sequence of the document use."""
    step: int | None = None
    inner: int | None = None
    for key, value in _iterate_block_collections(root):
        if isinstance(value, MappingNode) and step is None:
            step = layout.column(value.children[0].start) - layout.column(key.start)
        elif isinstance(value, SequenceNode) and inner is None and (dash := layout.find_dash_end(value, 0)):
            inner = layout.column(dash - 1) - layout.column(key.start)
        if step is not None and inner is not None:
            break
    return IndentStyle(step if step and step > 0 else 2, not inner)


def _iterate_block_collections(root: YamlNode) -> Iterator[tuple[YamlNode, MappingNode | SequenceNode]]:
    """Yield each block collection in a mapping, with its key, in document order."""
    stack: list[YamlNode] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, MappingNode) and not node.flow:
            for key, value in node.entries():
                if isinstance(value, MappingNode | SequenceNode) and not value.flow:
                    yield key, value
        if isinstance(node, MappingNode | SequenceNode):
            stack += reversed(node.children)
