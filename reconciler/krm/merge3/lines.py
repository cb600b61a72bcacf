"""The three-way merge of the lines of a text, for what a merge of data cannot see: comments, blank lines and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

# comparing lines costs the square of their number in the worst case
_MAX_LINES = 5_000


class _Hunk(NamedTuple):
    """The lines from `start` to `end` of the origin, and what one side has instead."""

    start: int
    end: int
    lines: tuple[str, ...]


def merge_lines(origin: str, local: str, updated: str) -> str | None:
    """Return the origin with the changed lines of both sides, or None if the texts are too long to be compared.

    Where both sides changed the same lines, the local ones stay. What both insert in one place stays in the order
    local, updated.
    """
    texts = [text.splitlines(keepends=True) for text in (origin, local, updated)]
    if any(len(lines) > _MAX_LINES for lines in texts):
        return None
    base, ours, theirs = texts
    hunks = sorted(_merged_hunks(_hunks(base, ours), _hunks(base, theirs)), key=lambda hunk: (hunk.start, hunk.end))
    result: list[str] = []
    position = 0
    for hunk in hunks:
        result += [*base[position : hunk.start], *hunk.lines]
        position = max(position, hunk.end)
    return "".join(_all_ended([*result, *base[position:]]))


def loses_lines(origin: str, side: str, result: str) -> int:
    """Return how many of the lines that a side inserted, or moved, are missing from the result."""
    before, now, after = (_counted(text) for text in (origin, side, result))
    missing = sum(max(0, count - after[line]) for line, count in (now - before).items() if now[line] > after[line])
    return missing or int(now == before and side != origin and not _has_order_of(side, result))


def _has_order_of(side: str, result: str) -> bool:
    wanted, found = side.splitlines(), result.splitlines()
    common = Counter(wanted) & Counter(found)
    return [line for line in wanted if line in common] == [line for line in found if line in common]


def _counted(text: str) -> Counter[str]:
    return Counter(line.rstrip() for line in text.splitlines())


def _hunks(base: Sequence[str], side: Sequence[str]) -> list[_Hunk]:
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    return [
        _Hunk(start, end, tuple(side[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _merged_hunks(ours: Sequence[_Hunk], theirs: Sequence[_Hunk]) -> Iterator[_Hunk]:
    # an equal hunk, as of two sides that made one change, is taken once
    yield from ours
    yield from (hunk for hunk in theirs if hunk not in ours and not any(_overlap(hunk, other) for other in ours))


def _overlap(one: _Hunk, other: _Hunk) -> bool:
    return one.start < other.end and other.start < one.end


def _all_ended(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, each but the last with a line end: a side may have put something behind a last line without."""
    newline = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    for line in lines[:-1]:
        yield line if line.endswith(("\n", "\r")) else line + newline
    yield from lines[-1:]
