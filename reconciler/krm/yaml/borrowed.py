"""What an edit takes over from another document as it stands there: comments, quotes, style (kpt.md 7.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from reconciler.krm.yaml import emit
from reconciler.krm.yaml.comments import Path, node_at
from reconciler.krm.yaml.compose import BREAK
from reconciler.krm.yaml.emit import Style, indented
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.nodes import AliasNode, MapNode, Node, ScalarNode, is_block


@dataclass(frozen=True, slots=True)
class Original:
    """Where an entry or item that will be new in one document stands in the other.

    `whole`: its lines are taken as they are. Otherwise only its key and its comments are, and its value is written
    from the data, in block style; what stands in that value may have originals of its own.
    """

    path: Path
    whole: bool = True


@dataclass(frozen=True)
class Borrowed:
    """Writes new entries and items like `emit`, but those that have an original as it has them.

    `places` are the originals by the path of what will be new. What cannot be taken over, because it needs an anchor
    from elsewhere or cannot be indented anew, is written afresh.
    """

    layout: Layout
    root: Node
    comments: Mapping[Path, str]
    places: Mapping[Path, Original]

    def entry_lines(self, path: Path, name: str, value: Any, style: Style) -> list[str]:
        """Return the lines of the entry `name: value`, beginning in column 0."""
        original = self.places.get(path)
        if original is None:
            return emit.entry_lines(name, value, style)
        lines = self._standing(original.path) if original.whole else None
        return lines or self._entry_anew(original, path, name, value, style)

    def item_lines(self, path: Path, value: Any, style: Style) -> list[str]:
        """Return the lines of an item, beginning with its dash, or the comments above it, in column 0."""
        original = self.places.get(path)
        if original is None:
            return emit.item_lines(value, style)
        lines = self._standing(original.path) if original.whole else None
        return lines or self._item_anew(original, path, value, style)

    def value_lines(self, path: Path, value: Any, style: Style, scalar: str = "") -> tuple[str, list[str]]:
        """Return (what stands on the line of the key or dash, the lines below, not yet indented)."""
        if self.places and value and isinstance(value, dict):
            texts = [self.entry_lines((*path, name), name, child, style) for name, child in value.items()]
        elif self.places and value and isinstance(value, list):
            texts = [self.item_lines((*path, index), child, style) for index, child in enumerate(value)]
        else:
            return emit.value_lines(value, style, scalar)
        return "", without_blank_head(chain(*texts))

    # an original that is written anew

    def _entry_anew(self, original: Original, path: Path, name: str, value: Any, style: Style) -> list[str]:
        above, key, comment = self._dress(original.path)
        head, body = self.value_lines(path, value, style, self._scalar_style(original.path))
        first = [*(key or emit.key_line(name)).split("\n")]
        first[-1] += f" {head or comment}".rstrip()
        inner = 0 if isinstance(value, list) and style.compact and len(first) == 1 else style.step
        return [*above, *first, *indented(body, inner)]

    def _item_anew(self, original: Original, path: Path, value: Any, style: Style) -> list[str]:
        above, _, _ = self._dress(original.path)
        head, body = self.value_lines(path, value, style, self._scalar_style(original.path))
        if head:
            return [*above, f"- {head}", *indented(body, 2)]
        number = next(number for number, line in enumerate(body) if line and not line.startswith("#"))
        return [*above, *body[:number], f"- {body[number]}", *indented(body[number + 1 :], 2)]

    def _dress(self, path: Path) -> tuple[list[str], str, str]:
        """Return (the comment lines above, the key with its colon or "", the comment beside a block collection)."""
        try:
            node, holder = node_at(self.root, path)
        except KeyError:
            return [], "", ""
        key, start = "", node.start
        if holder is not None and isinstance(holder[0], MapNode):
            key_node = holder[0].children[holder[1] - 1]
            start = key_node.start
            key = self._plain_text(key_node)
        elif holder is not None and is_block(holder[0]):
            start = self._dash(holder)
        return self._above(start), f"{key}:" if key else "", self.comments.get(path, "") if is_block(node) else ""

    def _scalar_style(self, path: Path) -> str:
        try:
            node, _ = node_at(self.root, path)
        except KeyError:
            return ""
        return node.style if isinstance(node, ScalarNode) else ""

    # an original as it stands

    def _standing(self, path: Path) -> list[str] | None:
        """Return the lines of an entry or item and of the comments that belong to it, None if they cannot be moved."""
        try:
            node, holder = node_at(self.root, path)
        except KeyError:
            return None
        if holder is None or not _is_movable(node):
            return None
        parent, index = holder
        key = parent.children[index - 1] if isinstance(parent, MapNode) else None
        if key is not None and (not _is_movable(key) or self.layout.after_colon(key) is None):
            return None
        if not is_block(parent):
            return self._from_flow(key, node)
        start = key.start if key is not None else self._dash(holder)
        lines = self._lines(start, node)
        return lines and [*self._above(start), *lines]

    def _from_flow(self, key: Node | None, node: Node) -> list[str] | None:
        value, name = self._plain_text(node), self._plain_text(key) if key is not None else ""
        if not value or (key is not None and not name):
            return None
        return [f"{name}: {value}" if name else f"- {value}"]

    def _plain_text(self, node: Node) -> str:
        """Return the text of a node if it stands on one line and needs no anchor, else ""."""
        text = self.layout.text[node.start : node.end]
        return text if _is_movable(node) and not BREAK.search(text) else ""

    def _dash(self, holder: tuple[Node, int]) -> int:
        after = self.layout.after_dash(holder[0], holder[1])  # type: ignore[arg-type]  # a block that is no mapping
        return after - 1 if after is not None else holder[0].start

    def _lines(self, start: int, node: Node) -> list[str] | None:
        column, first = self.layout.column(start), self.layout.line(start)
        last = self.layout.feet(self.layout.line(self.layout.tail(node)), column)
        below = [self.layout.line_text(number) for number in range(first + 1, last + 1)]
        if any(line[:column].strip(" ") for line in below):
            return None
        return [self.layout.text[start : self.layout.ends[first]], *(line[column:] for line in below)]

    def _above(self, start: int) -> list[str]:
        """Return the comment lines above an entry or item, and the blank ones above these."""
        line, column = self.layout.line(start), self.layout.column(start)
        if line == self.layout.line(self.root.start) or not self.layout.begins_line(start):
            return []
        first = self.layout.head(line, column)
        while first > 0 and not self.layout.line_text(first - 1).strip():
            first -= 1
        return [self.layout.line_text(number)[column:].rstrip() for number in range(first, line)]


def without_blank_head(lines: Iterable[str]) -> list[str]:
    """Return the lines without the blank ones at their beginning."""
    found = list(lines)
    start = next((number for number, line in enumerate(found) if line), len(found))
    return found[start:]


def _is_movable(node: Node) -> bool:
    """Tell whether the node means the same in another document: aliases and what they name belong to theirs."""
    if isinstance(node, AliasNode) or node.anchor is not None:
        return False
    return isinstance(node, ScalarNode) or all(map(_is_movable, node.children))
