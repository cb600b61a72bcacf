"""Tests of the binary search for the version with a change."""

from __future__ import annotations

import pytest

from reconciler.inspect.value_history import find_change_point

LONG = 1_000


@pytest.mark.parametrize("turn", [1, 2, 499, 500, 999, LONG], ids=str)
def test_change_point_is_found_with_few_reads(turn: int) -> None:
    looks: list[int] = []

    def is_new(at: int) -> bool:
        looks.append(at)
        return at >= turn

    assert find_change_point(0, LONG, is_new) == (turn - 1, turn)
    assert len(looks) <= 10
    assert {0, LONG}.isdisjoint(looks)


def test_adjacent_versions_need_no_reads() -> None:
    assert find_change_point(3, 4, lambda at: None) == (3, 4)


@pytest.mark.parametrize(
    ("versions", "turns"),
    [
        pytest.param("o????n", [(0, 5)], id="unknown-values"),
        pytest.param("oo?nn", [(1, 3)], id="one-unknown-value"),
        pytest.param("ooo?????????nnn", [(2, 12), (0, 14)], id="many-unknown-values"),
        pytest.param("onoonn", [(0, 1), (3, 4)], id="more-than-one-change"),
    ],
)
def test_unknown_versions_between_are_skipped(versions: str, turns: list[tuple[int, int]]) -> None:
    mapping = {"o": False, "n": True, "?": None}

    assert find_change_point(0, len(versions) - 1, lambda at: mapping[versions[at]]) in turns
