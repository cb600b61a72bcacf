"""What an edit takes over from another document as it stands there: comments, quotes, style (kpt.md 7.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from reconciler.krm.yaml import emit
from reconciler.krm.yaml.comments import Path, node_at
from reconciler.krm.yaml.compose import BREAK
from reconciler.krm.yaml.emit import Style, indented
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.nodes import Node, ScalarNode, is_block
from reconciler.krm.yaml.standing import key_of, lines_above, one_line, standing_lines, start_of


@dataclass(frozen=True, slots=True)
class Original:
    """Where an entry or item that will be new in one document stands in the other, or a scalar that will change.

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
            spelled = self._spelled(path, scalar)
            return (spelled, []) if spelled else emit.value_lines(value, style, scalar)
        return "", without_blank_head(chain(*texts))

    def _spelled(self, path: Path, style: str) -> str:
        """Return a scalar as its original has it, if that is one line of this style without anchor or tag; else ""."""
        original = self.places.get(path)
        try:
            node, _ = node_at(self.root, original.path) if original and original.whole else (None, None)
        except KeyError:
            return ""
        if not isinstance(node, ScalarNode) or node.style != style or node.anchor is not None or node.tag is not None:
            return ""
        text = self.layout.text[node.start : node.end]
        return "" if BREAK.search(text) else text

    def _standing(self, path: Path) -> list[str] | None:
        try:
            _, place = node_at(self.root, path)
        except KeyError:
            return None
        return standing_lines(self.layout, place) if place else None

    def _entry_anew(self, original: Original, path: Path, name: str, value: Any, style: Style) -> list[str]:
        dress = self._dress(original.path)
        head, body = self.value_lines(path, value, style, dress.scalar)
        first = [*(f"{dress.key}:" if dress.key else emit.key_line(name)).split("\n")]
        first[-1] += f" {head or dress.beside}".rstrip()
        inner = 0 if isinstance(value, list) and style.compact and len(first) == 1 else style.step
        return [*dress.above, *first, *indented(body, inner)]

    def _item_anew(self, original: Original, path: Path, value: Any, style: Style) -> list[str]:
        dress = self._dress(original.path)
        head, body = self.value_lines(path, value, style, dress.scalar)
        if head:
            return [*dress.above, f"- {head}", *indented(body, 2)]
        number = next(number for number, line in enumerate(body) if line and not line.startswith("#"))
        return [*dress.above, *body[:number], f"- {body[number]}", *indented(body[number + 1 :], 2)]

    def _dress(self, path: Path) -> _Dress:
        try:
            node, place = node_at(self.root, path)
        except KeyError:
            return _Dress()
        if place is None or not is_block(place[0]):
            return _Dress()
        key = key_of(place)
        return _Dress(
            lines_above(self.layout, start_of(self.layout, place)),
            one_line(self.layout, key) if key is not None else "",
            self.comments.get(path, "") if is_block(node) else "",
            node.style if isinstance(node, ScalarNode) else "",
        )


class _Dress(NamedTuple):
    """What is taken from an original whose value is written anew: comments, the text of its key, a scalar's style."""

    above: Sequence[str] = ()
    key: str = ""
    beside: str = ""
    scalar: str = ""


def without_blank_head(lines: Iterable[str]) -> list[str]:
    """Return the lines without the blank ones at their beginning."""
    found = list(lines)
    start = next((number for number, line in enumerate(found) if line), len(found))
    return found[start:]
