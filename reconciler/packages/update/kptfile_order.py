"""The order of a merged pipeline: whoever moved functions decides, and what is new stands where its side put it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.krm.merge3.order import woven


def merged_order(
    origin: Sequence[int], updated: Sequence[int], local: Sequence[int], kept: Collection[int]
) -> tuple[list[int], bool]:
    """Return the numbers of the functions that are kept, in order, and whether both sides moved functions differently.

    The order is the local one, or upstream's where only upstream moved something. A function of the other side follows
    its predecessor there; without one it precedes its successor, and where nothing is shared it comes last.
    """
    moved_up, moved_here = not _agree(origin, updated), not _agree(origin, local)
    spine, other = (updated, local) if moved_up and not moved_here else (local, updated)
    fixed = dict.fromkeys(number for number in spine if number in kept)
    added = dict.fromkeys(number for number in other if number in kept and number not in fixed)
    return list(woven(fixed, added, other)), moved_up and moved_here and not _agree(updated, local)


def _agree(left: Sequence[int], right: Sequence[int]) -> bool:
    """Tell whether what both sides have comes in the same order."""
    on_left, on_right = set(left), set(right)
    return [number for number in left if number in on_right] == [number for number in right if number in on_left]
