"""Tests of the comparison of two plans, package by package."""

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


def build_plan(*outcomes: Any, **more: Any) -> FleetPlan:
    return build_fleet_plan(build_target_plan(*outcomes, **more))


def build_drafted(desired_draft: Draft) -> Any:
    """Return the outcome of an offered draft: unchanged, with the tree and the review of its record."""
    return replace(
        build_unchanged(desired_draft.variant, "drafted"),
        record=replace(desired_draft.record, review_digest=desired_draft.rendered.review_digest),
    )


def list_changes(base: FleetPlan, head: FleetPlan) -> list[tuple[str, str, str]]:
    return [
        (package_impact.target_name, package_impact.before.kind, package_impact.after.kind)
        for package_impact in compare_plans(base, head)
    ]


FIRST, SECOND = build_draft({}, ONE), build_draft({}, TWO)
GONE = build_plan(leaving=[build_removal(package="gw")])


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        pytest.param(build_plan(FIRST), build_plan(FIRST), [], id="the-same"),
        pytest.param(build_plan(FIRST), build_plan(build_drafted(FIRST)), [], id="drafted-or-to-be-drafted-is-the-same"),
        pytest.param(build_plan(FIRST), build_plan(SECOND), [("eu-1/gw", "requested", "requested")], id="another-tree"),
        pytest.param(build_plan(), build_plan(FIRST), [("eu-1/gw", "none", "requested")], id="new"),
        pytest.param(build_plan(FIRST), build_plan(build_blocked(build_variant())), [("eu-1/gw", "requested", "blocked")], id="blocked"),
        pytest.param(build_plan(build_blocked(build_variant())), build_plan(build_blocked(build_variant())), [], id="blocked-as-before"),
        pytest.param(
            build_plan(build_blocked(build_variant(), "a")), build_plan(build_blocked(build_variant(), "b")), [("eu-1/gw", "blocked", "blocked")],
            id="blocked-for-another-reason",
        ),
        pytest.param(build_plan(FIRST), GONE, [("eu-1/gw", "requested", "removal")], id="removal"),
        pytest.param(GONE, build_plan(FIRST), [("eu-1/gw", "removal", "requested")], id="not-leaving-any-more"),
        pytest.param(
            GONE, build_plan(leaving=[build_removal(how="orphaned", package="gw")]),
            [("eu-1/gw", "removal", "removal")], id="leaving-in-another-way",
        ),
        pytest.param(build_plan(FIRST), build_plan(holding=[build_held_removal("gw")]), [("eu-1/gw", "requested", "held")], id="held"),
        pytest.param(
            build_plan(FIRST), build_plan(build_unchanged(build_variant(), "declined")), [("eu-1/gw", "requested", "declined")], id="declined"
        ),
    ],
)  # fmt: skip
def test_package_is_listed_if_its_outcome_differs(
    base: FleetPlan, head: FleetPlan, expected: list[tuple[str, str, str]]
) -> None:
    assert list_changes(base, head) == expected


def add_record(target_plan: TargetPlan) -> TargetPlan:
    record = PackageRecord(build_owner(), is_owned=True)
    return replace(target_plan, next_state=replace(target_plan.next_state, packages={"gw": record}))


def build_controller_result(**more: Any) -> ControllerResult:
    return ControllerResult(**more)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        pytest.param(build_fleet_plan(add_record(build_target_plan())), "Kept", id="no-reason"),
        pytest.param(
            build_fleet_plan(add_record(build_target_plan()), controller_result=build_controller_result(stalled=(StalledVariant(build_owner(), (STALLED,), ()),))),
            "Missing", id="its-owner-is-stalled",
        ),
        pytest.param(
            build_fleet_plan(
                add_record(build_target_plan()),
                controller_result=build_controller_result(findings=(Finding("Odd", "odd", SourceLocation(object=build_owner().key.reference)),)),
            ),
            "Odd", id="something-is-wrong-with-its-owner",
        ),
        pytest.param(
            build_fleet_plan(add_record(build_target_plan(findings=[Finding("Unreachable", "no answer")]))), "Unreachable",
            id="its-destination-cannot-be-read",
        ),
        pytest.param(build_fleet_plan(), TARGET_GONE, id="its-destination-is-gone"),
    ],
)  # fmt: skip
def test_package_without_outcome_stays_for_a_reason(head: FleetPlan, reason: str) -> None:
    (package_impact,) = compare_plans(build_plan(FIRST), head)

    assert package_impact.after.reason == reason
    assert package_impact.owner == build_owner()


def test_first_package_of_a_target_was_not_deleted_before() -> None:
    base = replace(build_fleet_plan(), objects={build_target().key: None})  # type: ignore[dict-item]

    assert list_changes(base, build_plan(FIRST)) == [("eu-1/gw", "none", "requested")]
    assert list_changes(build_plan(FIRST), base) == [("eu-1/gw", "requested", "none")]


def test_owner_without_target_is_listed_only_if_it_has_no_package() -> None:
    controller_result = build_controller_result(stalled=(StalledVariant(build_owner(), (STALLED,), ()),))

    (alone,) = compare_plans(build_fleet_plan(), build_fleet_plan(controller_result=controller_result))
    (package_impact,) = compare_plans(
        build_plan(FIRST), build_fleet_plan(add_record(build_target_plan()), controller_result=controller_result)
    )

    assert (alone.target_name, alone.after.reason) == ("", "Missing")
    assert (package_impact.target_name, package_impact.after.reason) == ("eu-1/gw", "Missing")


def test_second_owner_of_a_package_is_blocked() -> None:
    loser = build_blocked(build_variant("other"))

    (package_impact,) = compare_plans(build_plan(FIRST), build_plan(FIRST, loser))

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
        pytest.param({}, {"a": "1"}, ("upstream",), id="dependencies-of-the-draft-without-earlier-dependencies"),
    ],
)
def test_causes_are_the_changed_dependencies(
    before: dict[str, str], after: dict[str, str], expected: tuple[str, ...]
) -> None:
    (package_impact,) = compare_plans(
        build_plan(build_draft({}, ONE, trace=before)), build_plan(build_draft({}, TWO, trace=after))
    )

    assert package_impact.causes == expected


def test_impacts_are_sorted_by_target() -> None:
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
