"""Who gets a place that several want, and who counts as gone."""

import pytest

from reconciler.controllers.results import Variant
from reconciler.planning.decide.target_inputs import TargetClaims, resolve_claims
from tests.unit.planning.values import owner, record, state, variant


def claims(*variants: Variant, alive: str = "", unplaced: str = "", complete: bool = True) -> TargetClaims:
    keys = [frozenset(owner(name).key for name in names.split()) for names in (alive, unplaced)]
    return TargetClaims(variants, keys[0], keys[1], complete)


@pytest.mark.parametrize(
    ("expected", "recorded", "winners"),
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
    expected: list[tuple[str, str]], recorded: dict[str, str], winners: dict[str, str]
) -> None:
    known = state(packages={place: record(owner=owner(name)) for place, name in recorded.items()})
    variants = [variant(name, place) for name, place in expected]

    for order in (variants, variants[::-1]):
        mapping, losers = resolve_claims(claims(*order), known)
        assert {place: item.owner.key.name for place, item in mapping.items()} == winners
        assert len(mapping) + len(losers) == len(expected)
        assert {finding.code for blocked in losers for finding in blocked.findings} <= {"DownstreamConflict"}


def test_an_owner_that_never_had_the_place_has_no_right_to_it() -> None:
    known = state(packages={"gw": record(owner=owner("b"), is_owned=False)})

    mapping, _ = resolve_claims(claims(variant("a"), variant("b")), known)

    assert mapping["gw"].owner == owner("a")


@pytest.mark.parametrize(
    ("value", "has", "keeps"),
    [
        pytest.param(owner("here"), True, False, id="alive"),
        pytest.param(owner("lost"), True, True, id="alive-but-unplaced"),
        pytest.param(owner("gone"), False, False, id="gone"),
    ],
)
def test_who_is_there(value: object, has: bool, keeps: bool) -> None:
    all_claims = claims(alive="here lost", unplaced="lost")

    assert (all_claims.has_owner(value), all_claims.is_unresolved(value)) == (has, keeps)  # type: ignore[arg-type]


def test_what_a_failed_set_made_counts_as_there() -> None:
    package_owner = owner("made", made_by="maker")
    assert package_owner.parent
    failed = TargetClaims((), frozenset(), frozenset({package_owner.parent}), is_complete=True)

    assert failed.has_owner(package_owner)
    assert failed.is_unresolved(package_owner)
