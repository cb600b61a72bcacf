"""Memory of a long-running process: bounded caches of pure functions, and garbage collection.

A plain `lru_cache` keeps every entry until it is full. In a service, most entries are files and objects of commits that
no later pass reads, so that memory grows for hours. `cached` registers a cache, and `trim_caches` empties each cache
that contains much more than recent passes added to it.
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

# A cache is emptied if it contains more than this many times the largest number of misses in a recent pass.
_MAX_RELATIVE_SIZE = 4
_RECENT_PASS_COUNT = 16
# Below this number of entries, emptying a cache frees too little memory.
_MIN_ENTRIES = 64


class _CacheUsage:
    """Misses of one cache in recent passes."""

    def __init__(self) -> None:
        self._earlier_misses = 0
        self._misses: deque[int] = deque(maxlen=_RECENT_PASS_COUNT)

    def has_mostly_old_entries(self, misses: int, size: int) -> bool:
        """Record the misses of one pass, and return whether most entries are from older passes."""
        self._misses.append(misses - self._earlier_misses)
        self._earlier_misses = misses
        return size > _MAX_RELATIVE_SIZE * max(self._misses) + _MIN_ENTRIES

    def reset(self) -> None:
        """Reset the counter after the cache was emptied, which resets its misses to zero."""
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


# The data of a pass lives until its end, and nearly all cycles are young. With Python's default thresholds, collecting
# young objects takes an eighth of a pass, and collecting older ones again and again takes a tenth.
_YOUNG_THRESHOLD = 50_000
_OLDER_THRESHOLD = 1_000


def relax_gc() -> None:
    """Let Python collect young objects after every 50,000 new ones, and older objects rarely."""
    gc.set_threshold(_YOUNG_THRESHOLD, _OLDER_THRESHOLD)


# A full collection takes a second per few million objects, so that it must not run in every pass.
_PASSES_PER_FULL_COLLECTION = 64
_passes = count(1)


def release_pass_memory() -> None:
    """Free the memory of a pass: cached results that only earlier passes used, and unreachable object cycles.

    Young objects are collected after each pass, because remotes and pass contexts contain references to themselves.
    Older objects are collected after every 64th pass. In a small fleet, a pass does not create enough objects to start
    Python's own collection.
    """
    trim_caches()
    is_full = next(_passes) % _PASSES_PER_FULL_COLLECTION == 0
    gc.collect(2 if is_full else 1)
