"""Whole lines of block collections: entries and items that go, and those that come."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.krm.yaml.emit import indented
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.splices import Splices

# from the first character of an entry's key or an item's dash to the end of its value
Span = tuple[int, int]


class Rows:
    """Removes and inserts the lines of entries, with the comment lines that belong to them.

    Comment lines right above an entry, at its column, are its head and go with it; those right below that are indented
    deeper are its feet. Comments above everything, such as a licence, are the document's.
    """

    def __init__(self, layout: Layout, splices: Splices) -> None:
        self.layout = layout
        self.splices = splices
        # the first line of the text that is not taken out, as far as we know
        self.top = 0

    def below(self, lines: Sequence[str], column: int) -> str:
        """Return the lines at `column`, each begun by a line end."""
        return "".join(self.layout.newline + line for line in indented(lines, column))

    def remove(self, spans: list[Span], kept: list[bool], column: int) -> None:
        """Take out the entries that are not kept; at least one must be."""
        done = 0
        if not kept[0] and not self.layout.begins_line(spans[0][0]):
            done = kept.index(True)
            self._pull_up(spans[0][0], spans[done - 1][1], spans[done][0])
        for index in range(done, len(spans)):
            if not kept[index]:
                self._remove_lines(spans[index], column)

    def _pull_up(self, start: int, tail: int, following: int) -> None:
        """Take out entries the first of which shares the line of its dash; the next one, or its head, moves there."""
        line_end = self.layout.line_end(tail)
        if not self.layout.text[line_end:following].strip():
            self.splices.add(start, following, "")
            return
        while self.layout.text[start - 1] in " \t":
            start -= 1
        self.splices.add(start, line_end, "")

    def _remove_lines(self, span: Span, column: int) -> None:
        first = self.layout.head(self.layout.line(span[0]), column)
        last = self.layout.feet(self.layout.line(span[1]), column)
        starts, ends = self.layout.starts, self.layout.ends
        if first > self.top:
            self.splices.add(ends[first - 1], ends[last], "")
        else:
            # no line above is left whose end could go
            self.top = last + 1
            self.splices.add(starts[first], starts[last + 1] if last + 1 < len(starts) else ends[last], "")

    def insert_after(self, tail: int, lines: Sequence[str], column: int) -> None:
        """Put the lines below the entry whose value ends at `tail`."""
        offset = self.layout.ends[self.layout.feet(self.layout.line(tail), column)]
        self.splices.add(offset, offset, self.below(lines, column))

    def insert_before(self, start: int, lines: Sequence[str], column: int) -> None:
        """Put the lines above the entry that begins at `start`, and above its head."""
        if self.layout.begins_line(start):
            offset = self.layout.starts[self.layout.head(self.layout.line(start), column)]
            self.splices.add(offset, offset, "".join(line + self.layout.newline for line in indented(lines, column)))
        else:
            # it shares the line of its parent's dash, and gives way
            text = self.below(lines, column).lstrip("\r\n ") + self.layout.newline + " " * column
            self.splices.add(start, start, text)
