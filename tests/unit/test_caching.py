"""Tests of caches, which are cleared when most of their entries are from old passes, and of garbage collection."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from reconciler.memory import GarbageCollection, cached, postponed_gc, trim_caches


def test_results_of_one_pass_are_computed_once() -> None:
    calls: list[int] = []

    @cached(100)
    def double(value: int) -> int:
        calls.append(value)
        return 2 * value

    assert [double(1), double(1)] == [2, 2]
    trim_caches()
    assert double(1) == 2
    assert calls == [1]


def test_cache_does_not_grow_with_the_number_of_passes() -> None:
    @cached(100_000)
    def double(value: int) -> int:
        return 2 * value

    sizes = []
    for first in range(0, 20_000, 10):
        for value in range(first, first + 10):
            double(value)
        trim_caches()
        sizes.append(double.cache_info().currsize)
    assert max(sizes) <= 4 * 10 + 64


def test_cache_with_new_keys_in_each_pass_keeps_the_entries_of_recent_passes() -> None:
    @cached(100_000)
    def double(value: int) -> int:
        return 2 * value

    for value in range(1_000):
        double(value)
    trim_caches()
    assert double.cache_info().currsize == 1_000


def test_entries_of_a_large_pass_are_removed_after_many_small_passes() -> None:
    @cached(100_000)
    def double(value: int) -> int:
        return 2 * value

    for value in range(1_000):
        double(value)
    for number in range(20):
        double(-number)
        trim_caches()
    assert double.cache_info().currsize < 30


def test_postponed_collection_restores_thresholds() -> None:
    thresholds, during = gc.get_threshold(), 0
    with suppress(ValueError), postponed_gc():
        during = gc.get_threshold()[0]
        raise ValueError
    assert during > 1_000_000
    assert gc.get_threshold() == thresholds


class _Collector:
    """Records collected generations. A full collection takes `duration` seconds on the clock of the test."""

    def __init__(self, duration: float) -> None:
        self.now = 0.0
        self.generations: list[int] = []
        self._duration = duration

    def collect(self, generation: int) -> None:
        self.generations.append(generation)
        self.now += self._duration if generation == 2 else 0


def test_command_that_ends_soon_runs_no_full_collection() -> None:
    collector = _Collector(duration=0.1)
    collection = GarbageCollection(lambda: collector.now, collector.collect)
    for seconds in (0, 20, 49):
        collector.now = seconds
        collection.run()
    assert collector.generations == [1, 1, 1]


@pytest.mark.parametrize("duration", [0.01, 0.1, 2.0])
def test_full_collections_take_a_fiftieth_of_the_time(duration: float) -> None:
    collector = _Collector(duration)
    collection = GarbageCollection(lambda: collector.now, collector.collect)
    for _ in range(3_000):
        collector.now += 0.5
        collection.run()
    assert 0.015 < collector.generations.count(2) * duration / collector.now <= 0.02
