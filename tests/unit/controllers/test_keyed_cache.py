"""What is remembered from pass to pass, and what is forgotten."""

from __future__ import annotations

from functools import partial

from reconciler.controllers.keyed_cache import IdentityKey, KeyedCache


def asked(remembered: KeyedCache[str], *keys: str) -> list[str]:
    """Return the keys that something had to be made for."""
    values: list[str] = []

    def make(key: str) -> str:
        values.append(key)
        return f"made of {key}"

    assert [remembered.get_or_create(key, partial(make, key)) for key in keys] == [f"made of {key}" for key in keys]
    return values


def test_a_value_is_made_once_in_a_pass_and_taken_over_by_the_next() -> None:
    remembered: KeyedCache[str] = KeyedCache()

    assert asked(remembered, "a", "b", "a") == ["a", "b"]
    remembered.end_pass()
    assert asked(remembered, "a", "c") == ["c"]


def test_what_a_whole_pass_does_not_ask_for_is_forgotten() -> None:
    remembered: KeyedCache[str] = KeyedCache()
    asked(remembered, "a", "b")
    for _ in range(2):
        remembered.end_pass()
        asked(remembered, "b")

    assert len(remembered) == 1
    assert asked(remembered, "a", "b") == ["a"]


def test_a_value_that_is_none_is_remembered() -> None:
    remembered: KeyedCache[None] = KeyedCache()
    values = []
    for _ in range(2):
        remembered.end_pass()
        remembered.get_or_create("a", lambda: values.append(1))

    assert values == [1]


def test_equal_values_that_are_not_the_same_are_different_keys() -> None:
    mapping, other = {"a": 1}, {"a": 1}

    assert IdentityKey(mapping) == IdentityKey(mapping)
    assert len({IdentityKey(mapping), IdentityKey(mapping), IdentityKey(other)}) == 2
