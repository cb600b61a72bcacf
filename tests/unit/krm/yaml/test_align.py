"""Tests of the alignment of lists: equal items first, then names, then positions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.yaml.compare import align_items


def build_item(name: str, value: int = 0) -> dict[str, Any]:
    return {"name": name, "value": value}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(["a", "b"], ["a", "b"], [(0, 0), (1, 1)], id="equal"),
        pytest.param(["a", "b"], ["b"], [(0, None), (1, 0)], id="first-removed"),
        pytest.param(["a", "c"], ["a", "b", "c"], [(0, 0), (None, 1), (1, 2)], id="added-between"),
        pytest.param(["a"], ["b"], [(0, 0)], id="changed-in-place"),
        pytest.param([1], [True], [(0, 0)], id="one-and-true-share-a-place-only"),
        pytest.param([1, True], [True], [(0, None), (1, 0)], id="one-is-not-true"),
        pytest.param(
            [build_item("a"), build_item("b")], [build_item("b", 1)], [(0, None), (1, 0)], id="same-name-changed"
        ),
        pytest.param(
            [build_item("a"), build_item("b")],
            [build_item("x"), build_item("b", 1)],
            [(0, 0), (1, 1)],
            id="name-then-place",
        ),
        pytest.param(
            [{"containerPort": 1, "x": 1}, {"containerPort": 2, "x": 2}],
            [{"containerPort": 2, "x": 3}],
            [(0, None), (1, 0)],
            id="ports-distinguish-items",
        ),
        pytest.param([], ["a"], [(None, 0)], id="from-nothing"),
        pytest.param(["a"], [], [(0, None)], id="to-nothing"),
    ],
)
def test_align(old: list[Any], new: list[Any], expected: list[Any]) -> None:
    assert align_items(old, new) == expected


def test_thousands_of_equal_items_are_aligned_quickly() -> None:
    old, new = ["b"] + [1] * 8_000 + ["c"], ["d"] + [1] * 7_000 + ["e"]

    pairs = align_items(old, new)

    assert [j for _, j in pairs if j is not None] == list(range(len(new)))


def test_thousands_of_items_are_aligned_quickly() -> None:
    old, new = range(20_000), range(0, 40_000, 2)

    pairs = align_items(old, new)

    assert {(n, n // 2) for n in range(0, 20_000, 2)} <= set(pairs)
    assert [j for _, j in pairs if j is not None] == list(range(len(new)))


_ITEMS = st.lists(
    st.one_of(st.integers(0, 3), st.booleans(), st.builds(build_item, st.sampled_from("ab"), st.integers(0, 1)))
)


@given(_ITEMS, _ITEMS)
def test_every_item_is_aligned_once_in_order(old: list[Any], new: list[Any]) -> None:
    pairs = align_items(old, new)

    assert [i for i, _ in pairs if i is not None] == list(range(len(old)))
    assert [j for _, j in pairs if j is not None] == list(range(len(new)))
    assert (None, None) not in pairs
