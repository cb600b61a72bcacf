from __future__ import annotations

import pytest

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.planning.fleet import FleetPlan
from reconciler.rules.variant import Owner, RoomResult, Stalled
from reconciler.snapshot.catalog import PORCH_GROUP, read_catalog
from reconciler.snapshot.files import File, FileTree

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


def told(where: Where) -> Where:
    owners = [
        Owner(_key("mine"), API_VERSION),
        Owner(_key("all-x"), API_VERSION, SET),
        Owner(_key("gone"), API_VERSION),
    ]
    room = RoomResult(stalled=tuple(Stalled(one, (), ()) for one in owners))
    objects = read_catalog(FileTree({"a.yaml": File(CONFIG.encode())})).objects
    (finding,) = FleetPlan("c", 0, room, (), (Finding("Odd", "odd", where),), objects=objects).all_findings()
    return finding.where


def _key(name: str) -> ObjectKey:
    return ObjectKey(PORCH_GROUP, "PackageVariant", "default", name)


MINE, MADE, GONE = (f"PackageVariant/default/{name}" for name in ("mine", "all-x", "gone"))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param(Where(object=MINE), Where("a.yaml", 1, MINE), id="an-object-where-it-is-written"),
        pytest.param(Where(object=MADE), Where("a.yaml", 6, MADE), id="what-a-set-made-where-the-set-is-written"),
        pytest.param(Where(object=GONE), Where(object=GONE), id="an-object-that-is-gone"),
        pytest.param(Where("b.yaml", 3, MINE), Where("b.yaml", 3, MINE), id="a-place-that-is-known"),
        pytest.param(
            Where(object=MINE, package="eu/gw", owner=MINE),
            Where(object=MINE, package="eu/gw", owner=MINE),
            id="inside",
        ),
        pytest.param(Where(), Where(), id="no-object"),
    ],
)
def test_what_is_about_an_object_has_its_place_in_the_config(where: Where, expected: Where) -> None:
    assert told(where) == expected
