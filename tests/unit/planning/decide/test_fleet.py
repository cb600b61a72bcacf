from __future__ import annotations

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.results import ControllerResult, PackageOwner, StalledVariant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.planning.decide.fleet_plan import FleetPlan

API_VERSION = f"{PORCH_GROUP}/v1alpha1"
CONFIG = f"""\
# what runs where
apiVersion: {API_VERSION}
kind: PackageVariant
metadata: {{name: mine}}
---
apiVersion: {PORCH_GROUP}/v1alpha2
kind: PackageVariantSet
metadata: {{name: all}}
"""
SET = ObjectKey(PORCH_GROUP, "PackageVariantSet", "default", "all")


def find_finding_location(where: SourceLocation) -> SourceLocation:
    owners = [
        PackageOwner(_build_key("mine"), API_VERSION),
        PackageOwner(_build_key("all-x"), API_VERSION, SET),
        PackageOwner(_build_key("gone"), API_VERSION),
    ]
    controller_result = ControllerResult(
        stalled=tuple(StalledVariant(package_owner, (), ()) for package_owner in owners)
    )
    objects = read_catalog(FileTree({"a.yaml": File(CONFIG.encode())})).objects
    (finding,) = FleetPlan(
        "c", 0, controller_result, (), (Finding("Odd", "odd", where),), objects=objects
    ).list_findings()
    return finding.location


def _build_key(name: str) -> ObjectKey:
    return ObjectKey(PORCH_GROUP, "PackageVariant", "default", name)


MINE, MADE, GONE = (f"PackageVariant/default/{name}" for name in ("mine", "all-x", "gone"))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param(
            SourceLocation(object=MINE), SourceLocation("a.yaml", 1, MINE), id="an-object-where-it-is-written"
        ),
        pytest.param(
            SourceLocation(object=MADE),
            SourceLocation("a.yaml", 6, MADE),
            id="what-a-set-made-where-the-set-is-written",
        ),
        pytest.param(SourceLocation(object=GONE), SourceLocation(object=GONE), id="an-object-that-is-gone"),
        pytest.param(SourceLocation("b.yaml", 3, MINE), SourceLocation("b.yaml", 3, MINE), id="a-place-that-is-known"),
        pytest.param(
            SourceLocation(object=MINE, package="eu/gw", owner=MINE),
            SourceLocation(object=MINE, package="eu/gw", owner=MINE),
            id="inside",
        ),
        pytest.param(SourceLocation(), SourceLocation(), id="no-object"),
    ],
)
def test_finding_about_an_object_has_its_location_in_the_config(
    where: SourceLocation, expected: SourceLocation
) -> None:
    assert find_finding_location(where) == expected
