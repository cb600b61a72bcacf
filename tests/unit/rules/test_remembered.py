"""What is remembered from pass to pass, and what is forgotten."""

from __future__ import annotations

from functools import partial

from reconciler.rules.remembered import Remembered, Same


def asked(remembered: Remembered[str], *keys: str) -> list[str]:
    """Return the keys that something had to be made for."""
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return f"made of {key}"

    assert [remembered.of(key, partial(make, key)) for key in keys] == [f"made of {key}" for key in keys]
    return made


def test_a_value_is_made_once_in_a_pass_and_taken_over_by_the_next() -> None:
    remembered: Remembered[str] = Remembered()

    assert asked(remembered, "a", "b", "a") == ["a", "b"]
    remembered.turn()
    assert asked(remembered, "a", "c") == ["c"]


def test_what_a_whole_pass_does_not_ask_for_is_forgotten() -> None:
    remembered: Remembered[str] = Remembered()
    asked(remembered, "a", "b")
    for _ in range(2):
        remembered.turn()
        asked(remembered, "b")

    assert len(remembered) == 1
    assert asked(remembered, "a", "b") == ["a"]


def test_a_value_that_is_none_is_remembered() -> None:
    remembered: Remembered[None] = Remembered()
    made = []
    for _ in range(2):
        remembered.turn()
        remembered.of("a", lambda: made.append(1))

    assert made == [1]


def test_equal_values_that_are_not_the_same_are_different_keys() -> None:
    one, other = {"a": 1}, {"a": 1}

    assert Same(one) == Same(one)
    assert len({Same(one), Same(one), Same(other)}) == 2
