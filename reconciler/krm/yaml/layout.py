"""Layout of a document's text: lines, columns, extents of nodes, and indentation style."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from reconciler.krm.yaml.compose import LINE_BREAK
from reconciler.krm.yaml.emit import IndentStyle
from reconciler.krm.yaml.nodes import MappingNode, ScalarNode, SequenceNode, YamlNode
from reconciler.memory import cached

_COLON = re.compile(r"[ \t]*:")
_PROPERTIES = re.compile(r"(?:[ \t]*[&!][^\s,\[\]{}]*)*")
REST_OF_LINE = re.compile("[ \t]*(#[^\n\r\x85\u2028\u2029]*)?(?=[\n\r\x85\u2028\u2029]|\\Z)")
_BLANK = " \t\n\r\x85\u2028\u2029"

TextSpan: TypeAlias = tuple[int, int]
"""Start and end (exclusive) of a part of a text."""


@dataclass(frozen=True)
class TextLayout:
    """The lines of a text. Line numbers count from 0."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line's first character."""
        return [0, *(match.end() for match in LINE_BREAK.finditer(self.text))]

    @cached_property
    def ends(self) -> list[int]:
        """Offset after each line's last character, without the line end."""
        return [*(match.start() for match in LINE_BREAK.finditer(self.text)), len(self.text)]

    @cached_property
    def newline(self) -> str:
        """The line end that the text uses."""
        first = LINE_BREAK.search(self.text)
        return "\r\n" if first and first[0] == "\r\n" else "\n"

    def line(self, offset: int) -> int:
        """Return the number of the line that contains `offset`."""
        return bisect_right(self.starts, offset) - 1

    def line_start(self, offset: int) -> int:
        """Return the offset of the start of the line that contains `offset`."""
        return self.starts[self.line(offset)]

    def line_end(self, offset: int) -> int:
        """Return the offset of the line break of the line that contains `offset`."""
        return self.ends[self.line(offset)]

    def column(self, offset: int) -> int:
        """Return the number of characters between the start of the line and `offset`."""
        return offset - self.line_start(offset)

    def line_text(self, number: int) -> str:
        """Return line `number` without its line end."""
        return self.text[self.starts[number] : self.ends[number]]

    def comment_column(self, number: int) -> int:
        """Return the column of the comment if line `number` contains nothing else; otherwise -1."""
        text = self.line_text(number)
        stripped = text.lstrip(" ")
        return len(text) - len(stripped) if stripped.startswith("#") else -1

    def find_first_comment_above(self, number: int, column: int) -> int:
        """Return the first of the comment lines directly above line `number`, at `column`.

        Comments at the top of the text, such as a license, belong to the document. They are not returned.
        """
        first = number
        while first > 0 and self.comment_column(first - 1) == column:
            first -= 1
        return first if self.starts[first] > self._first_character else number

    @cached_property
    def _first_character(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    def find_last_comment_below(self, number: int, column: int) -> int:
        """Return the last of the comment lines directly below line `number` that are indented deeper than `column`."""
        while number + 1 < len(self.starts) and self.comment_column(number + 1) > column:
            number += 1
        return number

    def is_first_on_line(self, offset: int) -> bool:
        """Return whether only blanks precede `offset` on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" \t")

    def find_content_start(self, node: YamlNode) -> int:
        """Return the offset of the node's content after its anchor and tag, if it is on the same line."""
        start = self.find_properties_end(node)
        while start < len(self.text) and self.text[start] in " \t":
            start += 1
        return min(start, node.end) if isinstance(node, ScalarNode) else start

    def find_properties_end(self, node: YamlNode) -> int:
        """Return the offset after the node's anchor and tag."""
        properties = _PROPERTIES.match(self.text, node.start)
        return properties.end() if properties else node.start

    def find_content_end(self, node: YamlNode) -> int:
        """Return the offset after the node's last character.

        Trailing line ends are included only for block scalars with "+".
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
        """Return the offset after the dash of item `index` of a block sequence."""
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

        None is returned for a key with `?`, and if there is no colon on the line.
        """
        match = _COLON.match(self.text, key.end)
        prefix = self.text[self.line_start(key.start) : key.start].rstrip(" \t")
        return match.end() if match and not prefix.endswith("?") else None


# The number of documents that a pass edits with different values for each cluster.
_MAX_CACHED_STYLES = 256


def is_json_document(root: YamlNode) -> bool:
    """Return whether the document is written as JSON. Edits must preserve that."""
    if isinstance(root, MappingNode) and root.flow and root.children:
        return isinstance(key := root.children[0], ScalarNode) and key.style == '"'
    return isinstance(root, SequenceNode) and root.flow and any(is_json_document(child) for child in root.children)


@cached(_MAX_CACHED_STYLES)
def detect_indent_style(layout: TextLayout, root: YamlNode) -> IndentStyle:
    """Return the indentation of the document, taken from the first nested mapping and the first nested sequence."""
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
    """Yield (key, block collection) in document order."""
    stack: list[YamlNode] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, MappingNode) and not node.flow:
            for key, value in node.entries():
                if isinstance(value, MappingNode | SequenceNode) and not value.flow:
                    yield key, value
        if isinstance(node, MappingNode | SequenceNode):
            stack += reversed(node.children)
