"""Edits of a document's text: replacements, lines of block collections, and items of flow collections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from reconciler.krm.yaml.emit import indent_lines
from reconciler.krm.yaml.layout import TextLayout, TextSpan
from reconciler.lazy_dataclasses import dataclass, field


class UnsupportedEditError(Exception):
    """A change of data for which no safe text edit is known. The caller then writes the document in a different way."""


@dataclass(frozen=True)
class TextSplices:
    """Collected replacements in the text `source`. They can be added in any order, and must not overlap."""

    source: str
    parts: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, start: int, end: int, text: str) -> None:
        """Replace the text from `start` to `end` with `text`."""
        self.parts.append((start, end, text))

    def text(self) -> str:
        """Return the text with all replacements.

        Several insertions at the same offset are applied in the order in which they were added.

        Raises:
            UnsupportedEditError: Two replacements overlap.
        """
        pieces: list[str] = []
        position = 0
        for start, end, text in sorted(self.parts, key=lambda part: part[:2]):
            if start < position:
                raise UnsupportedEditError("two edits overlap")
            pieces += (self.source[position:start], text)
            position = end
        return "".join([*pieces, self.source[position:]])


class BlockLineEditor:
    """Editor that removes and inserts entries and items of block collections, together with their comment lines.

    Comment lines directly above an entry belong to the entry if they begin at the same column. Comment lines directly
    below an entry belong to the entry if they are indented deeper. Comments at the top of the document, such as a
    license, belong to the document. The span of an entry begins at its key or dash and ends after its value.
    """

    def __init__(self, layout: TextLayout, splices: TextSplices) -> None:
        self.layout = layout
        self.splices = splices
        # Number of the first line that remains. All lines above it were removed.
        self.first_remaining_line = 0

    def format_below(self, lines: Sequence[str], column: int) -> str:
        """Return text to insert after the end of a line: the lines, indented to `column`, each after a line break."""
        return "".join(self.layout.newline + line for line in indent_lines(lines, column))

    def remove(self, spans: list[TextSpan], is_kept: list[bool], column: int) -> None:
        """Remove the entries for which `is_kept` is false. At least one entry must be kept."""
        first_kept = 0
        if not is_kept[0] and not self.layout.is_first_on_line(spans[0][0]):
            first_kept = is_kept.index(True)
            self._remove_first_entries(spans[0][0], spans[first_kept - 1][1], spans[first_kept][0])
        for index in range(first_kept, len(spans)):
            if not is_kept[index]:
                self._remove_lines(spans[index], column)

    def _remove_first_entries(self, start: int, tail: int, following: int) -> None:
        """Remove the first entries of a mapping that begins on the line of a dash.

        Move the next entry to the line of the dash.
        """
        line_end = self.layout.line_end(tail)
        if not self.layout.text[line_end:following].strip():
            self.splices.add(start, following, "")
            return
        while self.layout.text[start - 1] in " \t":
            start -= 1
        self.splices.add(start, line_end, "")

    def _remove_lines(self, span: TextSpan, column: int) -> None:
        first = self.layout.find_first_comment_above(self.layout.line(span[0]), column)
        last = self.layout.find_last_comment_below(self.layout.line(span[1]), column)
        starts, ends = self.layout.starts, self.layout.ends
        if first > self.first_remaining_line:
            self.splices.add(ends[first - 1], ends[last], "")
        else:
            # Remove the line break after the removed lines, and not before them, because no line above them remains.
            self.first_remaining_line = last + 1
            self.splices.add(starts[first], starts[last + 1] if last + 1 < len(starts) else ends[last], "")

    def insert_after(self, tail: int, lines: Sequence[str], column: int) -> None:
        """Insert lines below the entry whose value ends at the offset `tail`."""
        offset = self.layout.ends[self.layout.find_last_comment_below(self.layout.line(tail), column)]
        self.splices.add(offset, offset, self.format_below(lines, column))

    def insert_before(self, start: int, lines: Sequence[str], column: int) -> None:
        """Insert lines above the entry that begins at the offset `start`, and above the comments of the entry."""
        if self.layout.is_first_on_line(start):
            offset = self.layout.starts[self.layout.find_first_comment_above(self.layout.line(start), column)]
            self.splices.add(
                offset, offset, "".join(line + self.layout.newline for line in indent_lines(lines, column))
            )
        else:
            # Insert the new lines after the dash on the same line, because the entry begins on the line of a dash.
            text = self.format_below(lines, column).lstrip("\r\n ") + self.layout.newline + " " * column
            self.splices.add(start, start, text)


# Match the text after an item that is alone on its line: an optional comma, and then a comment or the end of the line.
# After the line of the last item is removed, a comma can remain before the closing bracket. YAML allows this comma.
# JSON does not allow it. However, lines are removed only if there are comments between the items, and JSON has no
# comments.
_REST_OF_ITEM_LINE = re.compile(r"[ \t]*,?[ \t]*(?:#|[\r\n])")
_COMMA_AND_COMMENT = re.compile(r"[ \t]*(,?)[ \t]*#")


class FlowItemEditor:
    """Editor that removes and inserts items of flow collections, e.g. `[a, b]` or `{a: b}`."""

    def __init__(self, layout: TextLayout, splices: TextSplices) -> None:
        self.layout = layout
        self.splices = splices

    def remove(self, spans: list[TextSpan], is_kept: list[bool]) -> None:
        """Remove the items for which `is_kept` is false, each with one comma. At least one item must be kept.

        If there is a comment between the items, the whole line of each removed item is removed.

        Raises:
            UnsupportedEditError: The line of an item must be removed, but contains other items too.
        """
        first = is_kept.index(True)
        cuts = [(spans[0][0], spans[first][0], spans[:first])] if first else []
        removed = [index for index in range(first + 1, len(spans)) if not is_kept[index]]
        cuts += [(spans[index - 1][1], spans[index][1], [spans[index]]) for index in removed]
        if any(self._contains_comment(*cut) for cut in cuts):
            for index in [*range(first), *removed]:
                self._remove_lines(spans[index])
        else:
            for start, end, _ in cuts:
                self.splices.add(start, end, "")

    def _contains_comment(self, start: int, end: int, spans: list[TextSpan]) -> bool:
        edges = [start, *(offset for span in spans for offset in span), end]
        return any("#" in self.layout.text[left:right] for left, right in list(pairwise(edges))[::2])

    def _remove_lines(self, span: TextSpan) -> None:
        line = self.layout.line(span[0])
        if not (line and self.layout.is_first_on_line(span[0]) and _REST_OF_ITEM_LINE.match(self.layout.text, span[1])):
            raise UnsupportedEditError("there is a comment between items of a flow collection")
        self.splices.add(self.layout.ends[line - 1], self.layout.line_end(span[1]), "")

    def insert_first(self, following: TextSpan, texts: list[str]) -> None:
        """Insert items before the item at the span `following`."""
        gap = self._find_gap(following[0])
        self.splices.add(following[0], following[0], "".join(f"{text},{gap}" for text in texts))

    def insert_after(self, span: TextSpan, texts: list[str]) -> None:
        """Insert items after the item at `span`. Keep a comment after this item on the line of the item."""
        end, gap = span[1], self._find_gap(span[0])
        comment = _COMMA_AND_COMMENT.match(self.layout.text, end)
        if comment is None:
            self.splices.add(end, end, "".join(f",{gap}{text}" for text in texts))
            return
        separator = self.layout.newline + "  " if gap == " " else gap
        comma = comment[1]
        self.splices.add(end, end, "" if comma else ",")
        line_end = self.layout.line_end(end)
        self.splices.add(line_end, line_end, separator + f",{separator}".join(texts) + comma)

    def _find_gap(self, start: int) -> str:
        """Return the text to insert between two items: a space, or a line break and the indentation of the first item.

        The line break is used if the item at `start` begins on its own line.
        """
        if not self.layout.is_first_on_line(start):
            return " "
        return self.layout.newline + self.layout.text[self.layout.line_start(start) : start]
