"""Tests of caches, which are cleared when most of their entries are from old passes."""

from __future__ import annotations

from reconciler.memory import cached, trim_caches


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
