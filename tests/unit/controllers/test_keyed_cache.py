"""Tests of the keyed cache: values that stay from pass to pass, and values that are removed."""

from __future__ import annotations

from functools import partial

from reconciler.controllers.keyed_cache import IdentityKey, KeyedCache


def list_created_keys(cache: KeyedCache[str], *keys: str) -> list[str]:
    """Return the keys whose values the cache did not contain."""
    values: list[str] = []

    def create_value(key: str) -> str:
        values.append(key)
        return f"made of {key}"

    assert [cache.get_or_create(key, partial(create_value, key)) for key in keys] == [f"made of {key}" for key in keys]
    return values


def test_value_is_created_once_and_reused_in_the_next_pass() -> None:
    cache: KeyedCache[str] = KeyedCache()

    assert list_created_keys(cache, "a", "b", "a") == ["a", "b"]
    cache.end_pass()
    assert list_created_keys(cache, "a", "c") == ["c"]


def test_value_is_removed_after_a_pass_without_a_request() -> None:
    cache: KeyedCache[str] = KeyedCache()
    list_created_keys(cache, "a", "b")
    for _ in range(2):
        cache.end_pass()
        list_created_keys(cache, "b")

    assert len(cache) == 1
    assert list_created_keys(cache, "a", "b") == ["a"]


def test_none_is_cached() -> None:
    cache: KeyedCache[None] = KeyedCache()
    values = []
    for _ in range(2):
        cache.end_pass()
        cache.get_or_create("a", lambda: values.append(1))

    assert values == [1]


def test_equal_values_with_different_identities_are_different_keys() -> None:
    mapping, other = {"a": 1}, {"a": 1}

    assert IdentityKey(mapping) == IdentityKey(mapping)
    assert len({IdentityKey(mapping), IdentityKey(mapping), IdentityKey(other)}) == 2
