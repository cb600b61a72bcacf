"""Garbage: cycles of values are looked for at the end of a pass, and hardly ever while it is under way."""

from __future__ import annotations

import gc

# what a pass reads lives to its end, and nearly all cycles are young: with Python's own thresholds, looking for them is
# an eighth of a pass, and going through what is older again and again a tenth
_YOUNG = 50_000
_GENERATIONS = 1_000


def look_seldom() -> None:
    """Have this process look for cycles among young values only, after every 50,000 that stay."""
    gc.set_threshold(_YOUNG, _GENERATIONS)


def end_pass() -> None:
    """Free what a pass has left in cycles: remotes and desks hold on to themselves, with all that they have read.

    What is older is looked at when there is a quarter more of it, as ever.
    """
    gc.collect(1)
