"""Who gets a place that several want, and who counts as gone."""

import pytest

from reconciler.planning.claims import Claims, chosen
from reconciler.rules.variant import Variant
from tests.unit.planning.values import owner, record, state, variant


def claims(*variants: Variant, alive: str = "", unplaced: str = "", complete: bool = True) -> Claims:
    keys = [frozenset(owner(name).key for name in names.split()) for names in (alive, unplaced)]
    return Claims(variants, keys[0], keys[1], complete)


@pytest.mark.parametrize(
    ("wanted", "recorded", "winners"),
    [
        pytest.param([("b", "gw"), ("a", "gw")], {}, {"gw": "a"}, id="the-least-name"),
        pytest.param([("b", "gw"), ("a", "gw")], {"gw": "b"}, {"gw": "b"}, id="the-owner-in-state"),
        pytest.param([("b", "gw"), ("a", "gw")], {"gw": "c"}, {"gw": "a"}, id="an-owner-that-asks-no-more"),
        pytest.param([("a", "gw"), ("b", "gw/in")], {}, {"gw": "a"}, id="nested"),
        pytest.param([("a", "gw"), ("b", "gw/in")], {"gw/in": "b"}, {"gw/in": "b"}, id="nested-owner-in-state"),
        pytest.param([("a", "gw"), ("b", "gw2")], {}, {"gw": "a", "gw2": "b"}, id="beside"),
    ],
)
def test_each_place_has_one_winner(
    wanted: list[tuple[str, str]], recorded: dict[str, str], winners: dict[str, str]
) -> None:
    known = state(packages={place: record(owner=owner(name)) for place, name in recorded.items()})
    variants = [variant(name, place) for name, place in wanted]

    for order in (variants, variants[::-1]):
        found, losers = chosen(claims(*order), known)
        assert {place: one.owner.key.name for place, one in found.items()} == winners
        assert len(found) + len(losers) == len(wanted)
        assert {finding.code for one in losers for finding in one.findings} <= {"DownstreamConflict"}


def test_an_owner_that_never_had_the_place_has_no_right_to_it() -> None:
    known = state(packages={"gw": record(owner=owner("b"), owned=False)})

    found, _ = chosen(claims(variant("a"), variant("b")), known)

    assert found["gw"].owner == owner("a")


@pytest.mark.parametrize(
    ("one", "has", "keeps"),
    [
        pytest.param(owner("here"), True, False, id="alive"),
        pytest.param(owner("lost"), True, True, id="alive-but-unplaced"),
        pytest.param(owner("gone"), False, False, id="gone"),
    ],
)
def test_who_is_there(one: object, has: bool, keeps: bool) -> None:
    all_claims = claims(alive="here lost", unplaced="lost")

    assert (all_claims.has(one), all_claims.keeps(one)) == (has, keeps)  # type: ignore[arg-type]


def test_what_a_failed_set_made_counts_as_there() -> None:
    made = owner("made", made_by="maker")
    assert made.set
    failed = Claims((), frozenset(), frozenset({made.set}), complete=True)

    assert failed.has(made)
    assert failed.keeps(made)
