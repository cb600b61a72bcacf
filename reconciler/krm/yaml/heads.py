"""Comments on lines of their own, right above what they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.krm.yaml.comments import Path, key_name
from reconciler.krm.yaml.emit import indented
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.nodes import MapNode, Node, SeqNode, is_block


@dataclass(frozen=True, slots=True)
class Head:
    """The comment lines from number `first` up to `end`, above what begins there at `column`."""

    first: int
    end: int
    column: int

    def lines(self, layout: Layout) -> tuple[str, ...]:
        """Return the comments; among those above everything there may be blank lines."""
        return tuple(layout.line_text(number).strip() for number in range(self.first, self.end))


def find_heads(layout: Layout, root: Node) -> Mapping[Path, Head]:
    """Return where the comments above each entry and item of a block collection stand, or would stand.

    Those above everything, such as a licence, are the document's own, at path (): up to the last blank line above the
    first entry, and that line with them.
    """
    heads: dict[Path, Head] = {}
    starts: list[tuple[Path, int]] = []
    _add_starts(starts, layout, root, ())
    for path, start in starts:
        line = layout.line(start)
        line_start = layout.starts[line]
        if not layout.text[line_start:start].strip(" \t"):
            column = start - line_start
            heads[path] = Head(layout.head(line, column), line, column)
    top = layout.line(root.start)
    end = min((head.first for head in heads.values()), default=top)
    if layout.begins_line(root.start) and all(_is_comment_or_blank(layout.line_text(number)) for number in range(end)):
        heads[()] = Head(0, end, 0)
    return heads


def _is_comment_or_blank(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")


def _add_starts(found: list[tuple[Path, int]], layout: Layout, node: Node, path: Path) -> None:
    """Add path and offset of the key or dash of every entry and item."""
    if isinstance(node, MapNode) and is_block(node):
        for key, value in node.entries():
            here = (*path, key_name(key) or "<<")
            found.append((here, key.start))
            _add_starts(found, layout, value, here)
    elif isinstance(node, SeqNode) and is_block(node):
        for index, child in enumerate(node.children):
            after = layout.after_dash(node, index)
            if after is not None:
                found.append(((*path, index), after - 1))
            _add_starts(found, layout, child, (*path, index))


def above_entry(layout: Layout, head: Head, lines: Sequence[str]) -> tuple[int, int, str]:
    """Return the edit that puts other comment lines in the place of a head: (start, end, new text)."""
    text = "".join(line + layout.newline for line in indented(lines, head.column))
    return layout.starts[head.first], layout.starts[head.end], text
