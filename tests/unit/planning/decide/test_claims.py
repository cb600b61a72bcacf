"""Tests of target claims: which variant wins a package, and which owners count as deleted."""

import pytest

from reconciler.controllers.results import Variant
from reconciler.lazy_dataclasses import replace
from reconciler.planning.decide.target_inputs import TargetClaims, resolve_claims
from reconciler.planning.model.config_completeness import ConfigCompleteness
from reconciler.planning.model.state import PackageRecord
from tests.support.tenants import build_tenants
from tests.unit.planning.builders import build_owner, build_record, build_state, build_variant


def build_claims(*variants: Variant, alive: str = "", unplaced: str = "") -> TargetClaims:
    keys = [frozenset(build_owner(name).key for name in names.split()) for names in (alive, unplaced)]
    return TargetClaims(variants, keys[0], keys[1])


@pytest.mark.parametrize(
    ("expected", "recorded", "winners"),
    [
        pytest.param([("b", "gw"), ("a", "gw")], {}, {"gw": "a"}, id="the-least-name"),
        pytest.param([("b", "gw"), ("a", "gw")], {"gw": "b"}, {"gw": "b"}, id="the-owner-in-state"),
        pytest.param([("b", "gw"), ("a", "gw")], {"gw": "c"}, {"gw": "a"}, id="owner-without-a-request"),
        pytest.param([("a", "gw"), ("b", "gw/in")], {}, {"gw": "a"}, id="nested"),
        pytest.param([("a", "gw"), ("b", "gw/in")], {"gw/in": "b"}, {"gw/in": "b"}, id="nested-owner-in-state"),
        pytest.param([("a", "gw"), ("b", "gw2")], {}, {"gw": "a", "gw2": "b"}, id="beside"),
    ],
)
def test_each_package_has_one_winner(
    expected: list[tuple[str, str]], recorded: dict[str, str], winners: dict[str, str]
) -> None:
    known = build_state(packages={place: build_record(owner=build_owner(name)) for place, name in recorded.items()})
    variants = [build_variant(name, place) for name, place in expected]

    for order in (variants, variants[::-1]):
        mapping, losers = resolve_claims(build_claims(*order), known)
        assert {place: item.owner.key.name for place, item in mapping.items()} == winners
        assert len(mapping) + len(losers) == len(expected)
        assert {finding.code for blocked in losers for finding in blocked.findings} <= {"DownstreamConflict"}


OWNED = build_record(owner=build_owner("z"), is_owned=True, config_sources={"teams/shop/a.yaml": ("ConfigMap/a",)})


@pytest.mark.parametrize(
    ("tenants", "variants", "recorded", "winners"),
    [
        pytest.param(
            {"pay": "def*", "shop": "**"},
            [("a", "pay", "gw"), ("z", "shop", "gw")],
            {"gw": OWNED},
            {"gw": "shop/z"},
            id="record",
        ),
        # The tenant pay has an owner with the name of the recorded owner of the tenant shop.
        pytest.param(
            {"pay": "**", "shop": "**"},
            [("z", "pay", "gw"), ("z", "shop", "gw")],
            {"gw": OWNED},
            {"gw": "shop/z"},
            id="name",
        ),
        pytest.param(
            {"pay": "default", "shop": "**"}, [("a", "pay", "gw"), ("z", "", "gw")], {}, {"gw": "/z"}, id="platform"
        ),
        pytest.param(
            {"pay": "**", "shop": "default"},
            [("a", "pay", "gw"), ("z", "shop", "gw")],
            {},
            {"gw": "shop/z"},
            id="named",
        ),
        pytest.param(
            {"pay": "b", "shop": "d*"},
            [("a", "pay", "gw"), ("z", "shop", "gw")],
            {},
            {"gw": "shop/z"},
            id="only-pattern",
        ),
        pytest.param({"pay": "**", "shop": "**"}, [("a", "pay", "gw"), ("z", "shop", "gw")], {}, {}, id="nobody"),
        pytest.param(
            {"pay": "default", "shop": "default"}, [("a", "pay", "gw"), ("z", "shop", "gw")], {}, {}, id="both-named"
        ),
        pytest.param({"pay": "**", "shop": "**"}, [("a", "pay", "gw"), ("z", "shop", "gw/in")], {}, {}, id="nested"),
        pytest.param(
            {"pay": "**", "shop": "**"}, [("a", "pay", "gw"), ("z", "pay", "gw")], {}, {"gw": "pay/a"}, id="one-tenant"
        ),
        pytest.param(
            {"pay": "**", "shop": "**"},
            [("a", "pay", "gw"), ("z", "shop", "gw2")],
            {},
            {"gw": "pay/a", "gw2": "shop/z"},
            id="no-conflict",
        ),
    ],
)
def test_order_of_the_requests_of_several_tenants(
    tenants: dict[str, str],
    variants: list[tuple[str, str, str]],
    recorded: dict[str, PackageRecord],
    winners: dict[str, str],
) -> None:
    known = build_state(packages=recorded)
    requested = [build_variant(name, package, tenant=tenant) for name, tenant, package in variants]
    completeness = ConfigCompleteness(tenants=build_tenants(**tenants))

    for order in (requested, requested[::-1]):
        mapping, losers = resolve_claims(replace(build_claims(*order), completeness=completeness), known)
        assert {place: f"{item.tenant}/{item.owner.key.name}" for place, item in mapping.items()} == winners
        assert len(mapping) + len(losers) == len(variants)


def test_owner_of_a_record_that_is_not_owned_has_no_priority() -> None:
    known = build_state(packages={"gw": build_record(owner=build_owner("b"), is_owned=False)})

    mapping, _ = resolve_claims(build_claims(build_variant("a"), build_variant("b")), known)

    assert mapping["gw"].owner == build_owner("a")


@pytest.mark.parametrize(
    ("value", "has", "keeps"),
    [
        pytest.param(build_owner("here"), True, False, id="alive"),
        pytest.param(build_owner("lost"), True, True, id="alive-but-unplaced"),
        pytest.param(build_owner("gone"), False, False, id="gone"),
    ],
)
def test_existing_and_unresolved_owners(value: object, has: bool, keeps: bool) -> None:
    all_claims = build_claims(alive="here lost", unplaced="lost")

    assert (all_claims.has_owner(value), all_claims.is_unresolved(value)) == (has, keeps)  # type: ignore[arg-type]


def test_children_of_a_failed_set_count_as_existing() -> None:
    package_owner = build_owner("made", made_by="maker")
    assert package_owner.parent
    failed = TargetClaims((), frozenset(), frozenset({package_owner.parent}))

    assert failed.has_owner(package_owner)
    assert failed.is_unresolved(package_owner)
