"""Tests of the index that a person may read: it contains no names and no counts of other targets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.model import FleetIndex
from reconciler.review.permissions import ADMIN_PERMISSIONS, PackageScope, Permissions, RoleRule
from reconciler.review.restricted_index import RestrictedIndexes, TargetNameSet, restrict_index
from tests.support.fleet_index import create_index, create_row, create_target
from tests.support.fleet_strategies import FLEETS, NAMES, RULES

ADAPTER = TypeAdapter(FleetIndex)
NORTH = LabelSelector((("region", "north"),))
SOUTH = LabelSelector((("region", "south"),))


def create_fleet() -> FleetIndex:
    """Return Berlin in the north and Lisbon in the south, with one change on both."""
    return create_index(
        [
            create_target(
                "berlin", {"region": "north"}, create_row("berlin", "web", change="update"), create_row("berlin", "db")
            ),
            create_target("lisbon", {"region": "south"}, create_row("lisbon", "web", change="update")),
        ],
        [
            Finding("A", "berlin is slow", SourceLocation(object="Repository/default/berlin")),
            Finding("B", "lisbon is slow", SourceLocation(object="Repository/default/lisbon")),
            Finding("C", "differs from lisbon", SourceLocation(package="berlin/web")),
            Finding("D", "unknown field", SourceLocation(package="berlin/db")),
            Finding("E", "unknown field", SourceLocation(file="other.yaml")),
        ],
    )


def test_the_place_of_a_target_contains_no_name_of_a_hidden_target() -> None:
    places = {"berlin": SourceLocation("berlin/repository.yaml", 3), "lisbon": SourceLocation("berlin/all.yaml", 7)}
    index = create_index(replace(target, place=places[target.name]) for target in create_fleet().targets)
    shown = [
        [target.place for target in restrict_index(index, Permissions((RoleRule("viewer", targets=selector),))).targets]
        for selector in (NORTH, SOUTH)
    ]

    assert shown == [[places["berlin"]], [SourceLocation()]]


def test_a_person_who_may_read_everything_reads_the_same_index() -> None:
    index = create_fleet()

    assert restrict_index(index, ADMIN_PERMISSIONS) is index


@pytest.mark.parametrize(
    ("rules", "packages", "members", "codes"),
    [
        pytest.param((), {}, [], [], id="no-role"),
        pytest.param(
            (RoleRule("viewer", targets=NORTH),), {"berlin": ["web", "db"]}, ["berlin"], ["A", "D"], id="targets"
        ),
        pytest.param(
            (RoleRule("viewer", targets=SOUTH),), {"lisbon": ["web"]}, ["lisbon"], ["B"], id="the-second-target"
        ),
        pytest.param((RoleRule("viewer", packages=("db",)),), {"berlin": ["db"]}, [], ["A", "D"], id="packages"),
        pytest.param(
            (RoleRule("viewer", targets=SOUTH), RoleRule("reviewer", targets=NORTH, packages=("web",))),
            {"berlin": ["web"], "lisbon": ["web"]}, ["berlin", "lisbon"], ["A", "B", "C"], id="two-rules",
        ),
    ],
)  # fmt: skip
def test_the_index_contains_only_what_the_person_may_read(
    rules: tuple[RoleRule, ...], packages: Mapping[str, list[str]], members: list[str], codes: list[str]
) -> None:
    index = restrict_index(create_fleet(), Permissions(rules))

    assert {target.name: [row.package for row in target.packages] for target in index.targets} == packages
    assert [member.target for change in index.changes for member in change.members] == members
    assert index.package_count == sum(map(len, packages.values()))
    assert [finding.code for finding in index.findings] == codes


@pytest.mark.parametrize(
    ("rule", "codes"),
    [
        pytest.param(RoleRule("viewer", tenants=("payments",)), ["Own", "Package"], id="tenant"),
        pytest.param(RoleRule("viewer", tenants=("shop",)), [], id="other-tenant"),
        pytest.param(RoleRule("viewer", tenants=("payments",), targets=NORTH), ["Package"], id="some-targets"),
        pytest.param(RoleRule("viewer", tenants=("payments",), packages=("web",)), ["Package"], id="some-packages"),
        pytest.param(RoleRule("viewer", targets=NORTH), ["Package"], id="targets"),
    ],
)
def test_a_person_reads_the_findings_about_the_config_of_a_readable_tenant(rule: RoleRule, codes: list[str]) -> None:
    findings = [
        Finding("Own", "unknown field", SourceLocation("payments.yaml", 4)),
        Finding("OwnWithHiddenName", "unknown cluster lisbon", SourceLocation("payments.yaml", 5)),
        Finding("Package", "unknown field", SourceLocation(package="berlin/web")),
        Finding("OtherPackage", "unknown field", SourceLocation(package="berlin/db")),
        Finding("Platform", "unknown field", SourceLocation("clusters.yaml", 1)),
    ]
    tenants = {"payments.yaml:4": "payments", "payments.yaml:5": "payments", "berlin/db": "payments"}
    targets = [
        create_target("berlin", {"region": "north"}, create_row("berlin", "web", tenant="payments")),
        create_target("lisbon", {"region": "south"}),
    ]
    index = restrict_index(create_index(targets, findings, finding_tenants=tenants), Permissions((rule,)))

    assert [finding.code for finding in index.findings] == codes
    assert set(index.finding_tenants) == ({"payments.yaml:4"} if "Own" in codes else set())


def test_the_content_of_a_variant_comes_from_a_readable_target() -> None:
    index = restrict_index(create_fleet(), Permissions((RoleRule("viewer", targets=SOUTH),)))

    assert index.changes[0].variants[0].content.action == "update web on lisbon"


@pytest.mark.parametrize(
    ("text", "is_mentioned"),
    [
        ("waits for berlin.", True),
        ("drafts/berlin-next", True),
        ("berlin", True),
        ("berliner", False),
        ("eastberlin", False),
        ("Berlin", False),
        ("", False),
    ],
)
def test_a_name_is_found_between_other_characters(text: str, is_mentioned: bool) -> None:
    assert TargetNameSet(["lisbon", "berlin"]).occur_in(text) == is_mentioned


def test_an_index_is_restricted_once_for_equal_permissions() -> None:
    fleet = create_fleet()
    indexes = RestrictedIndexes(lambda: fleet)
    first, second = (indexes.find(Permissions((RoleRule("viewer", targets=NORTH),))) for _ in range(2))

    assert first is second
    fleet = create_index(fleet.targets, number=2)
    assert indexes.find(Permissions((RoleRule("viewer", targets=NORTH),))) is not first


def test_only_the_newest_views_are_kept() -> None:
    newest = create_fleet()
    indexes = RestrictedIndexes(lambda: newest, lambda: 0.0)
    for number in range(2, 30):
        indexes.keep(newest)
        newest = create_index(newest.targets, number=number)
    kept = [number for number in range(1, 30) if indexes.find_kept(number)]

    assert kept == list(range(9, 30))


def test_there_is_no_restricted_index_before_the_first_pass() -> None:
    assert RestrictedIndexes(lambda: None).find(Permissions(())) is None


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(FLEETS, st.lists(RULES, max_size=3))
def test_no_text_of_the_index_names_a_target_that_the_person_may_not_read(
    fleet: FleetIndex, rules: list[RoleRule]
) -> None:
    permissions = Permissions(tuple(rules))
    readable = {
        target.name
        for target in fleet.targets
        if permissions.can_read_target(target.labels)
        or any(permissions.can_read(PackageScope(target.labels, row.package, row.tenant)) for row in target.packages)
    }

    index = restrict_index(fleet, permissions)

    assert {target.name for target in index.targets} == readable
    text = json.dumps(ADAPTER.dump_python(index, mode="json"))
    assert not TargetNameSet(set(NAMES) - readable).occur_in(text)
