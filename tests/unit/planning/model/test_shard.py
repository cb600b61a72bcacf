"""Tests of shards: every process assigns the same shard to a target without communication."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.planning.model.shard import MAX_SHARDS, Shard, parse_shard
from tests.unit.planning.builders import build_target

FLEET = [build_target(f"edge-{number:04}") for number in range(2_000)]
# Another assignment would move clusters between daemons of two versions.
EXPECTED = {"berlin": [2], "lisbon": [1], "oslo": [5], "züri": [2]}
COUNTS = st.integers(1, 9)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=40)


def list_shards(name: str, count: int) -> list[int]:
    target = build_target(name)
    return [index for index in range(1, count + 1) if Shard(index, count).is_responsible_for(target)]


@given(NAMES, COUNTS)
def test_every_target_has_exactly_one_shard(name: str, count: int) -> None:
    assert len(list_shards(name, count)) == 1


@given(NAMES, COUNTS)
def test_additional_shard_moves_targets_only_to_itself(name: str, count: int) -> None:
    (before,), (after,) = list_shards(name, count), list_shards(name, count + 1)

    assert after in (before, count + 1)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_shards_have_similar_sizes(count: int) -> None:
    sizes = [sum(Shard(index, count).is_responsible_for(target) for target in FLEET) for index in range(1, count + 1)]

    share = len(FLEET) / count
    assert all(share * 0.8 < size < share * 1.2 for size in sizes)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_only_the_share_of_the_new_shard_moves(count: int) -> None:
    new = Shard(count + 1, count + 1)

    moved = sum(new.is_responsible_for(target) for target in FLEET)

    share = len(FLEET) / (count + 1)
    assert share * 0.8 < moved < share * 1.2


def test_shard_depends_only_on_the_target_name() -> None:
    spellings = [
        build_target("berlin"),
        build_target("berlin", url="https://example.com/fleet.git", branch="main", directory="a"),
        build_target("berlin", namespace="team", is_deployment=False),
    ]

    assert (
        len({tuple(Shard(index, 9).is_responsible_for(target) for index in range(1, 10)) for target in spellings}) == 1
    )


def test_shards_are_equal_on_every_machine() -> None:
    assert {name: list_shards(name, 5) for name in EXPECTED} == EXPECTED


def test_another_process_computes_the_same_shards() -> None:
    code = "from reconciler.planning.model.shard import _get_shard_index; print([_get_shard_index(f'edge-{n:04}', 7) for n in range(50)])"
    values = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }

    mine = [next(index for index in range(1, 8) if Shard(index, 7).is_responsible_for(target)) for target in FLEET[:50]]
    assert values == {f"{mine}\n".encode()}


def test_single_shard_has_all_targets() -> None:
    assert Shard() == Shard(1, 1)
    assert all(Shard().is_responsible_for(target) for target in FLEET)
    assert (Shard().is_alone, Shard().is_leader, Shard(1, 2).is_alone, Shard(1, 2).is_leader) == (
        True,
        True,
        False,
        True,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1/1", Shard(1, 1), id="all"),
        pytest.param("2/5", Shard(2, 5), id="one-of-five"),
        pytest.param(f"{MAX_SHARDS}/{MAX_SHARDS}", Shard(MAX_SHARDS, MAX_SHARDS), id="the-most"),
    ],
)
def test_parse_shard(text: str, expected: Shard) -> None:
    assert parse_shard(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("2", id="no-count"),
        pytest.param("0/3", id="counted-from-nought"),
        pytest.param("4/3", id="more-than-there-are"),
        pytest.param("-1/3", id="negative"),
        pytest.param("02/5", id="a-nought-in-front"),
        pytest.param("2 / 5", id="blanks"),
        pytest.param("2/5\n", id="a-line-end"),
        pytest.param("a/b", id="letters"),
        pytest.param("٢/5", id="digits-of-another-script"),
        pytest.param("1/1001", id="too-many"),
        pytest.param("1/99999999999", id="far-too-many"),
    ],
)
def test_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be i/n, which means shard i of n shards, with 1 <= i <= n <= 1,000"):
        parse_shard(text)
