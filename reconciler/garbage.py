"""Garbage: cycles of values are looked for at the end of a pass, and hardly ever while it is under way."""

from __future__ import annotations

import gc
from itertools import count

from reconciler.caching import trim_caches

# what a pass reads lives to its end, and nearly all cycles are young: with Python's own thresholds, looking for them is
# an eighth of a pass, and going through what is older again and again a tenth
_YOUNG = 50_000
_GENERATIONS = 1_000


def look_seldom() -> None:
    """Have this process look for cycles among young values only, after every 50,000 that stay."""
    gc.set_threshold(_YOUNG, _GENERATIONS)


# A collection of all objects costs a second per few million objects, so that it may not run in every pass.
_PASSES_PER_FULL_COLLECTION = 64
_passes = count(1)


def end_pass() -> None:
    """Free what a pass has left: cached results that only earlier passes used, and unreachable cycles of objects.

    Young objects are collected after each pass, because remotes and pass contexts refer to themselves with all that
    they have read. Older ones are collected after every 64th pass: in a small fleet, no pass creates enough objects
    for Python to collect them by itself.
    """
    trim_caches()
    is_full = next(_passes) % _PASSES_PER_FULL_COLLECTION == 0
    gc.collect(2 if is_full else 1)
