"""Geometry: lines, columns, and how far a node reaches, in the text of one document."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from reconciler.krm.yaml.compose import BREAK
from reconciler.krm.yaml.nodes import MapNode, Node, ScalarNode, SeqNode

COLON = re.compile(r"[ \t]*:")
PROPERTIES = re.compile(r"(?:[ \t]*[&!][^\s,\[\]{}]*)*")
REST = re.compile("[ \t]*(#[^\n\r\x85\u2028\u2029]*)?(?=[\n\r\x85\u2028\u2029]|\\Z)")
_BLANK = " \t\n\r\x85\u2028\u2029"


@dataclass(frozen=True)
class Layout:
    """The lines of a text."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line's first character."""
        return [0, *(match.end() for match in BREAK.finditer(self.text))]

    @cached_property
    def ends(self) -> list[int]:
        """The offset behind each line's last character, its line end left out."""
        return [*(match.start() for match in BREAK.finditer(self.text)), len(self.text)]

    @cached_property
    def newline(self) -> str:
        """The line end that the text uses."""
        first = BREAK.search(self.text)
        return "\r\n" if first and first[0] == "\r\n" else "\n"

    def line(self, offset: int) -> int:
        """Return the number of the line, from 0, that holds `offset`."""
        return bisect_right(self.starts, offset) - 1

    def line_start(self, offset: int) -> int:
        """Return where the line of `offset` begins."""
        return self.starts[self.line(offset)]

    def line_end(self, offset: int) -> int:
        """Return where the line of `offset` ends, before its line end."""
        return self.ends[self.line(offset)]

    def column(self, offset: int) -> int:
        """Return the number of characters between the line's beginning and `offset`."""
        return offset - self.line_start(offset)

    def line_text(self, number: int) -> str:
        """Return line `number`, counted from 0, without its line end."""
        return self.text[self.starts[number] : self.ends[number]]

    def comment_column(self, number: int) -> int:
        """Return the column of a comment that has line `number` for itself, -1 for any other line."""
        text = self.line_text(number)
        stripped = text.lstrip(" ")
        return len(text) - len(stripped) if stripped.startswith("#") else -1

    def head(self, number: int, column: int) -> int:
        """Return the first of the comment lines that stand right above line `number`, at `column`.

        Comments above which there is nothing, such as a licence, are the document's and nobody's head.
        """
        first = number
        while first > 0 and self.comment_column(first - 1) == column:
            first -= 1
        return first if self.starts[first] > self._first_character else number

    @cached_property
    def _first_character(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    def feet(self, number: int, column: int) -> int:
        """Return the last of the comment lines that stand right below line `number`, deeper than `column`."""
        while number + 1 < len(self.starts) and self.comment_column(number + 1) > column:
            number += 1
        return number

    def begins_line(self, offset: int) -> bool:
        """Tell whether only blanks stand before `offset` on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" \t")

    def content(self, node: Node) -> int:
        """Return where the node begins behind its anchor and tag, on the same line at least."""
        start = self.properties_end(node)
        while start < len(self.text) and self.text[start] in " \t":
            start += 1
        return min(start, node.end) if isinstance(node, ScalarNode) else start

    def properties_end(self, node: Node) -> int:
        """Return the offset behind the node's anchor and tag."""
        properties = PROPERTIES.match(self.text, node.start)
        return properties.end() if properties else node.start

    def tail(self, node: Node) -> int:
        """Return the offset behind the node's last character that is not a line end to be had anyway."""
        while isinstance(node, MapNode | SeqNode) and not node.flow:
            node = node.children[-1]
        if not isinstance(node, ScalarNode) or node.style not in ("|", ">"):
            return node.end
        text = self.text[node.start : node.end]
        if "+" in text.split("\n", 1)[0].split("#", 1)[0]:
            last = list(BREAK.finditer(text))[-1:]
            return node.start + (last[0].start() if last and last[0].end() == len(text) else len(text))
        return node.start + len(text.rstrip(_BLANK))

    def after_dash(self, seq: SeqNode, index: int) -> int | None:
        """Return the offset behind the dash of item `index` of a block sequence."""
        offset = self.ends[self.line(self.tail(seq.children[index - 1]))] if index else self.properties_end(seq)
        child = seq.children[index]
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

    def after_colon(self, key: Node) -> int | None:
        """Return the offset behind the colon of `key: value`; None where `?` or an odd line hides it."""
        match = COLON.match(self.text, key.end)
        prefix = self.text[self.line_start(key.start) : key.start].rstrip(" \t")
        return match.end() if match and not prefix.endswith("?") else None
