"""Tests of the order of merged functions."""

from __future__ import annotations

import pytest

from reconciler.packages.update.kptfile_functions import merge_function_order


def convert_to_numbers(letters: str) -> list[int]:
    return [ord(letter) for letter in letters]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected", "clash"),
    [
        pytest.param("ab", "ab", "ab", "ab", False, id="unchanged"),
        pytest.param("ab", "axb", "aLb", "axLb", False, id="behind-the-upstream-predecessor"),
        pytest.param("ab", "axyb", "ab", "axyb", False, id="two-stay-together"),
        pytest.param("ab", "xab", "Lab", "Lxab", False, id="first-upstream"),
        pytest.param("", "xy", "LM", "LMxy", False, id="nothing-shared"),
        pytest.param("ab", "ba", "aLb", "baL", False, id="only-upstream-moved"),
        pytest.param("ab", "axb", "ba", "bax", False, id="only-local-moved"),
        pytest.param("abc", "cba", "bac", "bac", True, id="both-moved"),
        pytest.param("abc", "cba", "cba", "cba", False, id="both-moved-alike"),
        pytest.param("abc", "xc", "abc", "xc", False, id="predecessors-gone"),
    ],
)
def test_merge_function_order(origin: str, updated: str, local: str, expected: str, clash: bool) -> None:
    remaining = convert_to_numbers(expected)

    assert merge_function_order(
        convert_to_numbers(origin), convert_to_numbers(updated), convert_to_numbers(local), remaining
    ) == (remaining, clash)
