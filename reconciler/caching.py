"""Caches of pure functions, bounded by what recent passes use.

A plain `lru_cache` keeps every entry until it is full. In a service, the entries are files and objects of commits that
no pass reads again, so that memory grows with each change for hours. `cached` registers the cache, and `trim_caches`,
called at the end of a pass, empties each cache that holds much more than recent passes have added to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")

# A cache is emptied when it holds more than this many times the largest number of misses of a recent pass.
_SURPLUS = 4
_RECENT_PASSES = 16
# Below this number of entries, emptying a cache frees nothing worth a second computation.
_FLOOR = 64


class _Usage:
    """Misses of one cache in each of the last passes."""

    def __init__(self) -> None:
        self._misses_before = 0
        self._misses: deque[int] = deque(maxlen=_RECENT_PASSES)

    def has_surplus(self, misses: int, size: int) -> bool:
        """Record the misses of one pass; return whether most entries come from passes that ended long ago."""
        self._misses.append(misses - self._misses_before)
        self._misses_before = misses
        return size > _SURPLUS * max(self._misses) + _FLOOR

    def restart(self) -> None:
        """Start again after the cache was emptied, which sets its counters to zero."""
        self._misses_before = 0


_CACHES: WeakKeyDictionary[_lru_cache_wrapper[Any], _Usage] = WeakKeyDictionary()


def cached(max_entries: int) -> Callable[[Callable[..., _T]], _lru_cache_wrapper[_T]]:
    """Return a decorator that caches at most `max_entries` results of a pure function with hashable arguments."""

    def decorate(function: Callable[..., _T]) -> _lru_cache_wrapper[_T]:
        cache = lru_cache(max_entries)(function)
        _CACHES[cache] = _Usage()
        return cache

    return decorate


def trim_caches() -> None:
    """End a pass: empty the caches whose entries were mostly added by passes that ended long ago."""
    for cache, usage in list(_CACHES.items()):
        info = cache.cache_info()
        if usage.has_surplus(info.misses, info.currsize):
            cache.cache_clear()
            usage.restart()
