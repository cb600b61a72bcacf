"""Splices: replacements of spans of one text, gathered in any order and made at once."""

from __future__ import annotations

from dataclasses import dataclass, field


class Declined(Exception):  # noqa: N818 - nothing is wrong; another way is taken
    """The splicer has no safe edit for this; the caller takes the next way."""


@dataclass(frozen=True)
class Splices:
    """The edits of one text; the list grows while an editor walks."""

    source: str
    parts: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, start: int, end: int, text: str) -> None:
        """Put `text` in place of what stands from `start` to `end`."""
        self.parts.append((start, end, text))

    def text(self) -> str:
        """Return the text with all splices made; insertions at one place stand in the order they were added.

        Raises Declined when two of them overlap.
        """
        pieces: list[str] = []
        position = 0
        for start, end, text in sorted(self.parts, key=lambda part: part[:2]):
            if start < position:
                raise Declined("two edits overlap")
            pieces += (self.source[position:start], text)
            position = end
        return "".join([*pieces, self.source[position:]])
