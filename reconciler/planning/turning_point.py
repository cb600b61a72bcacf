"""Turning points: where along a line of versions something became what it is, found in few looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

# of versions that say nothing, how many are passed over around one look
_MOST_TRIES = 5


def find_turn(old: int, new: int, is_new: Callable[[int], bool | None]) -> tuple[int, int]:
    """Return two versions between `old` and `new`, of which the earlier is not new yet and the later is.

    `old` is known not to be, `new` to be, and neither is asked about. What is returned are neighbours, unless those
    between them say nothing (None). Where it turned more than once, it is one of the turns.
    """
    while new - old > 1:
        looks = ((at, is_new(at)) for at in _around((old + new) // 2, old, new))
        found = next((look for look in looks if look[1] is not None), None)
        if found is None:
            break
        old, new = (old, found[0]) if found[1] else (found[0], new)
    return old, new


def _around(middle: int, old: int, new: int) -> Iterator[int]:
    """Yield the versions nearest to the middle, but for both ends."""
    steps = (0, *(side * step for step in range(1, _MOST_TRIES) for side in (-1, 1)))
    inside = (middle + step for step in steps if old < middle + step < new)
    yield from islice(inside, _MOST_TRIES)
