"""What one config comes to against another, package by package."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.controllers.results import ControllerResult, StalledVariant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import Condition
from reconciler.planning.attribution.impact import TARGET_GONE, PackageImpact, compare_plans
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import Draft
from reconciler.planning.model.state import PackageRecord
from tests.unit.output.builders import (
    build_blocked,
    build_draft,
    build_fleet_plan,
    build_held_removal,
    build_owner,
    build_removal,
    build_target,
    build_target_plan,
    build_unchanged,
    build_variant,
    format_deployment,
)

ONE, TWO = {"a.yaml": format_deployment(1)}, {"a.yaml": format_deployment(2)}
STALLED = Condition("Stalled", "True", "Missing", "it is not there")


def plan(*outcomes: Any, **more: Any) -> FleetPlan:
    return build_fleet_plan(build_target_plan(*outcomes, **more))


def standing(desired_draft: Draft) -> Any:
    """Return what a draft is once it was offered: unchanged, with the tree and the review of its record."""
    return replace(
        build_unchanged(desired_draft.variant, "drafted"),
        record=replace(desired_draft.record, review_digest=desired_draft.rendered.review_digest),
    )


def told(base: FleetPlan, head: FleetPlan) -> list[tuple[str, str, str]]:
    return [
        (package_impact.target_name, package_impact.before.kind, package_impact.after.kind)
        for package_impact in compare_plans(base, head)
    ]


FIRST, SECOND = build_draft({}, ONE), build_draft({}, TWO)
GONE = plan(leaving=[build_removal(package="gw")])


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        pytest.param(plan(FIRST), plan(FIRST), [], id="the-same"),
        pytest.param(plan(FIRST), plan(standing(FIRST)), [], id="drafted-or-to-be-drafted-is-the-same"),
        pytest.param(plan(FIRST), plan(SECOND), [("eu-1/gw", "wanted", "wanted")], id="another-tree"),
        pytest.param(plan(), plan(FIRST), [("eu-1/gw", "none", "wanted")], id="new"),
        pytest.param(plan(FIRST), plan(build_blocked(build_variant())), [("eu-1/gw", "wanted", "blocked")], id="blocked"),
        pytest.param(plan(build_blocked(build_variant())), plan(build_blocked(build_variant())), [], id="blocked-as-before"),
        pytest.param(
            plan(build_blocked(build_variant(), "a")), plan(build_blocked(build_variant(), "b")), [("eu-1/gw", "blocked", "blocked")],
            id="blocked-for-another-reason",
        ),
        pytest.param(plan(FIRST), GONE, [("eu-1/gw", "wanted", "leaving")], id="leaving"),
        pytest.param(GONE, plan(FIRST), [("eu-1/gw", "leaving", "wanted")], id="not-leaving-any-more"),
        pytest.param(
            GONE, plan(leaving=[build_removal(how="orphaned", package="gw")]),
            [("eu-1/gw", "leaving", "leaving")], id="leaving-in-another-way",
        ),
        pytest.param(plan(FIRST), plan(holding=[build_held_removal("gw")]), [("eu-1/gw", "wanted", "held")], id="held"),
        pytest.param(
            plan(FIRST), plan(build_unchanged(build_variant(), "declined")), [("eu-1/gw", "wanted", "declined")], id="declined"
        ),
    ],
)  # fmt: skip
def test_a_package_is_told_where_it_comes_to_something_else(
    base: FleetPlan, head: FleetPlan, expected: list[tuple[str, str, str]]
) -> None:
    assert told(base, head) == expected


def known(target_plan: TargetPlan) -> TargetPlan:
    record = PackageRecord(build_owner(), is_owned=True)
    return replace(target_plan, next_state=replace(target_plan.next_state, packages={"gw": record}))


def of_owner(**more: Any) -> ControllerResult:
    return ControllerResult(**more)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        pytest.param(build_fleet_plan(known(build_target_plan())), "Kept", id="nobody-says-why"),
        pytest.param(
            build_fleet_plan(known(build_target_plan()), room=of_owner(stalled=(StalledVariant(build_owner(), (STALLED,), ()),))),
            "Missing", id="its-owner-is-stalled",
        ),
        pytest.param(
            build_fleet_plan(
                known(build_target_plan()),
                room=of_owner(findings=(Finding("Odd", "odd", SourceLocation(object=str(build_owner().key))),)),
            ),
            "Odd", id="something-is-wrong-with-its-owner",
        ),
        pytest.param(
            build_fleet_plan(known(build_target_plan(findings=[Finding("Unreachable", "no answer")]))), "Unreachable",
            id="its-destination-cannot-be-read",
        ),
        pytest.param(build_fleet_plan(), TARGET_GONE, id="its-destination-is-gone"),
    ],
)  # fmt: skip
def test_a_package_of_which_a_plan_says_nothing_stays_for_a_reason(head: FleetPlan, reason: str) -> None:
    (package_impact,) = compare_plans(plan(FIRST), head)

    assert package_impact.after.reason == reason
    assert package_impact.owner == build_owner()


def test_a_destination_that_gets_its_first_package_is_not_gone_before() -> None:
    base = replace(build_fleet_plan(), objects={build_target().key: None})  # type: ignore[dict-item]

    assert told(base, plan(FIRST)) == [("eu-1/gw", "none", "wanted")]
    assert told(plan(FIRST), base) == [("eu-1/gw", "wanted", "none")]


def test_an_owner_without_any_place_is_told_by_itself_and_only_where_none_of_its_packages_is() -> None:
    room = of_owner(stalled=(StalledVariant(build_owner(), (STALLED,), ()),))

    (alone,) = compare_plans(build_fleet_plan(), build_fleet_plan(room=room))
    (package_impact,) = compare_plans(plan(FIRST), build_fleet_plan(known(build_target_plan()), room=room))

    assert (alone.target_name, alone.after.reason) == ("", "Missing")
    assert (package_impact.target_name, package_impact.after.reason) == ("eu-1/gw", "Missing")


def test_two_who_want_one_package_are_told_apart() -> None:
    loser = build_blocked(build_variant("other"))

    (package_impact,) = compare_plans(plan(FIRST), plan(FIRST, loser))

    assert (package_impact.before.kind, package_impact.after.kind, package_impact.owner) == (
        "none",
        "blocked",
        build_owner("other"),
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": "1", "b": "1"}, {"a": "1", "b": "2"}, ("b",), id="answered-otherwise"),
        pytest.param({"a": "1", "b": "1"}, {"a": "2", "c": "1"}, ("a",), id="the-surest-first"),
        pytest.param({}, {"a": "1"}, ("upstream",), id="as-the-draft-says-where-nothing-was-asked-before"),
    ],
)
def test_the_causes_are_what_was_answered_otherwise(
    before: dict[str, str], after: dict[str, str], expected: tuple[str, ...]
) -> None:
    (package_impact,) = compare_plans(plan(build_draft({}, ONE, trace=before)), plan(build_draft({}, TWO, trace=after)))

    assert package_impact.causes == expected


def test_effects_stand_by_place() -> None:
    plans = [
        build_target_plan(build_draft({}, ONE, desired_variant=build_variant(repository=name)), name=name)
        for name in ("b", "a")
    ]

    assert [
        package_impact.target_name for package_impact in compare_plans(build_fleet_plan(), build_fleet_plan(*plans))
    ] == ["a/gw", "b/gw"]
    assert all(
        isinstance(package_impact, PackageImpact) and package_impact.creates_draft
        for package_impact in compare_plans(build_fleet_plan(), build_fleet_plan(*plans))
    )
