"""Tests of caches, which are cleared when most of their entries are from old passes, and of garbage collection."""

from __future__ import annotations

import gc
import weakref
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
    """Records collections of a generation, and calls of `freeze` and `unfreeze`.

    A full collection takes `duration` seconds on the clock of the test.
    """

    def __init__(self, duration: float, young_objects: int = 1_000) -> None:
        self.now = 0.0
        self.calls: list[int | str] = []
        self._duration = duration
        self._young_objects = young_objects

    def collect(self, generation: int, /) -> int:
        self.calls.append(generation)
        self.now += self._duration if generation == 2 else 0
        return 0

    def get_count(self) -> tuple[int, int, int]:
        return self._young_objects, 0, 0

    def freeze(self) -> None:
        self.calls.append("freeze")

    def unfreeze(self) -> None:
        self.calls.append("unfreeze")


def test_command_that_ends_soon_runs_no_full_collection() -> None:
    collector = _Collector(duration=0.1)
    collection = GarbageCollection(lambda: collector.now, collector)
    for seconds in (0, 20, 49):
        collector.now = seconds
        collection.run()
    assert collector.calls == [1, 1, 1]


@pytest.mark.parametrize("duration", [0.01, 0.1, 2.0])
def test_full_collections_take_a_fiftieth_of_the_time(duration: float) -> None:
    collector = _Collector(duration)
    collection = GarbageCollection(lambda: collector.now, collector)
    for _ in range(3_000):
        collector.now += 0.5
        collection.run()
    assert 0.015 < collector.calls.count(2) * duration / collector.now <= 0.02


def test_objects_of_a_large_pass_are_collected_by_the_next_full_collection() -> None:
    collector = _Collector(duration=0.1, young_objects=1_000_000)
    collection = GarbageCollection(lambda: collector.now, collector)
    for seconds in (10, 60):
        collector.now = seconds
        collection.run()
    assert collector.calls == ["freeze", "unfreeze", 2]


class _Node:
    """An object in a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


def test_full_collection_frees_cycles_of_a_large_pass() -> None:
    now = 0.0
    collection, reference = GarbageCollection(lambda: now), weakref.ref(_Node())
    gc.freeze()
    now = 60.0
    collection.run()
    assert reference() is None
