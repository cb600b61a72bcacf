"""Caches with limited size, and garbage collection, for a process that runs for a long time.

A plain `lru_cache` keeps every entry until the cache is full. In a service, most entries belong to old commits that no
pass reads again, so that memory grows for hours. `cached` registers a cache. `trim_caches` empties each registered
cache if most of its entries are old.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")

# The size limit of a cache, relative to the highest number of cache misses in one of the recent passes. A larger cache
# is emptied.
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
        """Record the cache misses of one pass. Return whether most entries of the cache are from older passes.

        Each miss adds an entry. Thus, the number of misses is the number of new entries.
        """
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
    """Collect garbage less often: young objects after every 50,000 new objects, and older objects rarely."""
    gc.set_threshold(_YOUNG_THRESHOLD, _OLDER_THRESHOLD)


# During a pass, collect young objects only after this number of new objects. A package adds 300 objects, and almost all
# of them are required until the pass ends. A limit is necessary for a pass that creates many reference cycles.
_PASS_THRESHOLD = 5_000_000


@contextmanager
def postponed_gc() -> Iterator[None]:
    """Postpone the collection of young objects. `release_pass_memory` collects them at the end of a pass."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_PASS_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


# A full collection takes about a second for a few million objects. All full collections together take at most this
# share of the time.
_MAX_FULL_COLLECTION_SHARE = 0.02
# Assume this duration before the first full collection, because the real duration is not known yet. As a result, a
# command that ends within 50 seconds runs no full collection.
_FIRST_FULL_COLLECTION_SECONDS = 1.0


# The maximum number of young objects that are collected after a pass. A collection of this number of objects takes
# about a tenth of a second. If there are more young objects, none of them is collected.
_MAX_YOUNG_OBJECTS = 200_000


class GarbageCollector(Protocol):
    """The functions of the module `gc` that `GarbageCollection` calls."""

    def collect(self, generation: int, /) -> int:
        """Collect the objects up to a generation."""
        ...

    def get_count(self) -> tuple[int, int, int]:
        """Return the three counters of `gc.get_count()`. The first counter is the number of young objects."""
        ...

    def freeze(self) -> None:
        """Exclude all existing objects from collections."""
        ...

    def unfreeze(self) -> None:
        """Include all objects in collections again."""
        ...


class GarbageCollection:
    """Frees unreachable reference cycles after each pass.

    Each call collects young objects. If enough time has passed since the last full collection, the call collects all
    objects. The collection of young objects is not sufficient if other threads are running: their objects become old
    during the call, and are then freed only by a full collection.

    A pass that renders many packages creates millions of objects, and almost all of them stay. The collection of these
    objects would take 3 % of the CPU time of the pass. Therefore, only the next full collection includes them.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, collector: GarbageCollector = gc) -> None:
        self._clock = clock
        self._collector = collector
        self._last_end = clock()
        self._last_duration = _FIRST_FULL_COLLECTION_SECONDS

    def run(self) -> None:
        """Collect young objects, or all objects if a full collection is due."""
        start = self._clock()
        if (start - self._last_end) * _MAX_FULL_COLLECTION_SHARE < self._last_duration:
            if self._collector.get_count()[0] > _MAX_YOUNG_OBJECTS:
                self._collector.freeze()
            else:
                self._collector.collect(1)
            return
        self._collector.unfreeze()
        self._collector.collect(2)
        self._last_end = self._clock()
        self._last_duration = self._last_end - start


_garbage_collection = GarbageCollection()


def release_pass_memory() -> None:
    """Free the memory of a pass: cached results that only earlier passes used, and unreachable reference cycles.

    In a small fleet, a pass creates too few objects to start the automatic collection of Python.
    """
    trim_caches()
    _garbage_collection.run()
