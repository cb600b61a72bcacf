"""Items of flow collections: `[a, b]` and `{a: b}` gain and lose them in their own style."""

from __future__ import annotations

import re
from itertools import pairwise

from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.splices import Declined, Splices

Span = tuple[int, int]

_COMMENT_BEHIND = re.compile(r"[ \t]*(,?)[ \t]*#")


class FlowItems:
    """Removes and inserts items between brackets or braces."""

    def __init__(self, layout: Layout, splices: Splices) -> None:
        self.layout = layout
        self.splices = splices

    def remove(self, spans: list[Span], kept: list[bool]) -> None:
        """Take out the items that are not kept, each with one comma; at least one must be kept."""
        first = kept.index(True)
        if first:
            self._cut(spans[0][0], spans[first][0], spans[:first])
        for index in range(first + 1, len(spans)):
            if not kept[index]:
                self._cut(spans[index - 1][1], spans[index][1], [spans[index]])

    def _cut(self, start: int, end: int, spans: list[Span]) -> None:
        edges = [start, *(offset for span in spans for offset in span), end]
        if any("#" in self.layout.text[left:right] for left, right in list(pairwise(edges))[::2]):
            raise Declined("a comment among the items of a flow collection")
        self.splices.add(start, end, "")

    def insert_first(self, following: Span, texts: list[str]) -> None:
        """Put items before the one at `following`."""
        gap = self._gap(following[0])
        self.splices.add(following[0], following[0], "".join(f"{text},{gap}" for text in texts))

    def insert_after(self, span: Span, texts: list[str]) -> None:
        """Put items behind the one at `span`; a comment that ends its line stays with it."""
        end, gap = span[1], self._gap(span[0])
        comment = _COMMENT_BEHIND.match(self.layout.text, end)
        if comment is None:
            self.splices.add(end, end, "".join(f",{gap}{text}" for text in texts))
            return
        below = self.layout.newline + "  " if gap == " " else gap
        comma = comment[1]
        self.splices.add(end, end, "" if comma else ",")
        line_end = self.layout.line_end(end)
        self.splices.add(line_end, line_end, below + f",{below}".join(texts) + comma)

    def _gap(self, start: int) -> str:
        """Return what stands between two items: a blank, or a line end where items have lines of their own."""
        if not self.layout.begins_line(start):
            return " "
        return self.layout.newline + self.layout.text[self.layout.line_start(start) : start]
