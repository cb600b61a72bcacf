"""Tests of the names of generated variants: the names of Porch, with a suffix where two of them are equal."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.package_variants.set_targets import DownstreamKey, format_variant_name, name_variants

LONG = "super" * 3 + "l" + "o" * 50 + "ngpkgname"


@pytest.mark.parametrize(
    ("set_name", "repo", "package", "expected"),
    [
        pytest.param("s", "r", "p", "s-r-p", id="short"),
        pytest.param("s", "r", "a/b", "s-r-a.b", id="slash-becomes-a-dot"),
        pytest.param("s" * 30, "r" * 30, "p", f"{'s' * 30}-{'r' * 30}-p", id="63-characters-stay"),
        pytest.param(
            "my-pvs",
            "dnrepo4",
            LONG,
            "my-pvs-dnrepo4-supersupersuperlooooooooooooooooooooooo-bec36506",
            id="porchs-own-check-value",
        ),
        pytest.param(
            "team-rooms",
            "west",
            "room-for-quarterly-settlement-and-reconciliation-audits",
            "team-rooms-west-room-for-quarterly-settlement-and-reco-9ce9db19",
            id="cut-at-54",
        ),
    ],
)
def test_variant_name(set_name: str, repo: str, package: str, expected: str) -> None:
    name = format_variant_name(set_name, DownstreamKey(repo, package))

    assert name == expected


def test_colliding_names_get_a_suffix() -> None:
    first, second = DownstreamKey("a", "b-c"), DownstreamKey("a-b", "c")
    names = name_variants("s", [second, first])

    assert names[first] == "s-a-b-c"
    assert names[second].startswith("s-a-b-c-")
    assert len(names[second]) == len("s-a-b-c-") + 8


PART = st.text("ab-", min_size=1, max_size=30)


@given(st.lists(st.builds(DownstreamKey, PART, PART), max_size=8), st.randoms(use_true_random=False))
def test_names_are_unique_and_independent_of_the_order(keys: list[DownstreamKey], chance: random.Random) -> None:
    names = name_variants("s", keys)
    shuffled = list(keys)
    chance.shuffle(shuffled)

    assert len(set(names.values())) == len(set(keys))
    assert name_variants("s", shuffled) == names
    assert all(len(name) <= 63 for name in names.values())
