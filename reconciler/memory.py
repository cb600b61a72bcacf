"""Caches with limited size, and garbage collection, for a process that runs for a long time.

A plain `lru_cache` keeps every entry until the cache is full. In a service, most entries belong to old commits that no
pass reads again, so that memory grows for hours. `cached` registers a cache. `trim_caches` empties each registered
cache if most of its entries are old.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")

# Empty a cache if it has more entries than this factor times the highest number of cache misses in a recent pass.
_MAX_RELATIVE_SIZE = 4
_RECENT_PASS_COUNT = 16
# Do not empty a cache with fewer entries than this, because emptying it would free too little memory.
_MIN_ENTRIES = 64


class _CacheUsage:
    """Number of misses of one cache in each recent pass."""

    def __init__(self) -> None:
        self._earlier_misses = 0
        self._misses: deque[int] = deque(maxlen=_RECENT_PASS_COUNT)

    def has_mostly_old_entries(self, misses: int, size: int) -> bool:
        """Record the misses of one pass. Return whether most entries of the cache are from older passes."""
        self._misses.append(misses - self._earlier_misses)
        self._earlier_misses = misses
        return size > _MAX_RELATIVE_SIZE * max(self._misses) + _MIN_ENTRIES

    def reset(self) -> None:
        """Reset the stored number of misses to zero, because emptying a cache also resets its number of misses."""
        self._earlier_misses = 0


_CACHES: WeakKeyDictionary[_lru_cache_wrapper[Any], _CacheUsage] = WeakKeyDictionary()


def cached(max_entries: int) -> Callable[[Callable[..., _T]], _lru_cache_wrapper[_T]]:
    """Return a decorator that caches at most `max_entries` results of a pure function with hashable arguments."""

    def decorate(function: Callable[..., _T]) -> _lru_cache_wrapper[_T]:
        cache = lru_cache(max_entries)(function)
        _CACHES[cache] = _CacheUsage()
        return cache

    return decorate


def trim_caches() -> None:
    """Empty the caches whose entries are mostly from older passes. Call this function at the end of a pass."""
    for cache, usage in list(_CACHES.items()):
        info = cache.cache_info()
        if usage.has_mostly_old_entries(info.misses, info.currsize):
            cache.cache_clear()
            usage.reset()


# Use higher thresholds than Python. Garbage collection during a pass frees little memory, because the data is required
# until the pass ends. With the default thresholds, the collection of young objects takes an eighth of the time of a
# pass, and the collection of older objects takes a tenth.
_YOUNG_THRESHOLD = 50_000
_OLDER_THRESHOLD = 1_000


def relax_gc() -> None:
    """Make garbage collection rare: collect young objects after every 50,000 new objects, and older objects rarely."""
    gc.set_threshold(_YOUNG_THRESHOLD, _OLDER_THRESHOLD)


# Run a full collection only after this number of passes, because it takes about a second for a few million objects.
_PASSES_PER_FULL_COLLECTION = 64
_passes = count(1)


def release_pass_memory() -> None:
    """Free the memory of a pass: cached results that only earlier passes used, and unreachable reference cycles.

    Young objects are collected after each pass, because remotes and pass contexts contain references to themselves.
    Older objects are collected after every 64th pass. In a small fleet, a pass creates too few objects to start the
    automatic collection of Python.
    """
    trim_caches()
    is_full = next(_passes) % _PASSES_PER_FULL_COLLECTION == 0
    gc.collect(2 if is_full else 1)
