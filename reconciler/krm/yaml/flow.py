"""Items of flow collections: `[a, b]` and `{a: b}` gain and lose them in their own style."""

from __future__ import annotations

import re
from itertools import pairwise

from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.splices import Declined, Splices

Span = tuple[int, int]

# a comma that is left over before a closing bracket is legal, and where comments are the text is no JSON
_ENDS_LINE = re.compile(r"[ \t]*,?[ \t]*(?:#|[\r\n])")
_COMMENT_BEHIND = re.compile(r"[ \t]*(,?)[ \t]*#")


class FlowItems:
    """Removes and inserts items between brackets or braces."""

    def __init__(self, layout: Layout, splices: Splices) -> None:
        self.layout = layout
        self.splices = splices

    def remove(self, spans: list[Span], kept: list[bool]) -> None:
        """Take out the items that are not kept, each with one comma; at least one must be kept.

        Raises Declined for items among comments that do not have lines of their own.
        """
        first = kept.index(True)
        cuts = [(spans[0][0], spans[first][0], spans[:first])] if first else []
        removed = [index for index in range(first + 1, len(spans)) if not kept[index]]
        cuts += [(spans[index - 1][1], spans[index][1], [spans[index]]) for index in removed]
        if any(self._holds_comment(*cut) for cut in cuts):
            for index in [*range(first), *removed]:
                self._remove_lines(spans[index])
        else:
            for start, end, _ in cuts:
                self.splices.add(start, end, "")

    def _holds_comment(self, start: int, end: int, spans: list[Span]) -> bool:
        edges = [start, *(offset for span in spans for offset in span), end]
        return any("#" in self.layout.text[left:right] for left, right in list(pairwise(edges))[::2])

    def _remove_lines(self, span: Span) -> None:
        line = self.layout.line(span[0])
        if not (line and self.layout.begins_line(span[0]) and _ENDS_LINE.match(self.layout.text, span[1])):
            raise Declined("a comment among the items of a flow collection")
        self.splices.add(self.layout.ends[line - 1], self.layout.line_end(span[1]), "")

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
