"""Tests of traces: the dependencies of a render are recorded, and changed fingerprints are found later."""

from __future__ import annotations

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import (
    ABSENT_FINGERPRINT,
    PRESENT_FINGERPRINT,
    CatalogView,
    DependencyReader,
    find_changed_dependencies,
)

REGION = "apiVersion: fleet.example/v1\nkind: Region\nmetadata: {name: north}\nspec: {zone: 1}\n"


def build_catalog(*documents: str) -> Catalog:
    return read_catalog(FileTree({"all.yaml": File("---\n".join(documents).encode())}))


def read_dependencies(view: CatalogView) -> None:
    """Read the recorded dependencies: a type, an existing object and an absent object."""
    view.has_type("fleet.example/v1", "Region", "default")
    view.find_object("fleet.example/v1", "Region", "default", "north")
    view.find_object("fleet.example/v1", "Region", "default", "south")


TYPE = "type fleet.example/v1 Region default"
NORTH = "object fleet.example/v1 Region default north"
SOUTH = "object fleet.example/v1 Region default south"


def record_trace(now: Catalog) -> dict[str, str]:
    view = CatalogView(DependencyReader(now))
    read_dependencies(view)
    return view.trace


def test_fingerprints_are_recorded_also_for_absent_objects() -> None:
    now = build_catalog(REGION)

    assert record_trace(now) == {
        TYPE: PRESENT_FINGERPRINT,
        NORTH: now.objects_of_kind("fleet.example", "Region")[0].digest,
        SOUTH: ABSENT_FINGERPRINT,
    }


def test_view_returns_the_data_that_it_records() -> None:
    view = CatalogView(DependencyReader(build_catalog(REGION)))

    assert view.has_type("fleet.example/v1", "Region", "default") is True
    assert view.has_type("fleet.example/v2", "Region", "default") is False
    assert view.has_type("fleet.example/v1", "Region", "edge") is False
    config_object = view.find_object("fleet.example/v1", "Region", "default", "north")
    assert config_object is not None
    assert config_object.data["spec"] == {"zone": 1}
    assert view.find_object("fleet.example/v1", "Region", "edge", "north") is None


@pytest.mark.parametrize(
    ("documents", "changed"),
    [
        pytest.param([REGION], (), id="nothing"),
        pytest.param(["# moved\n" + REGION + "status: {ready: true}\n"], (), id="comments-and-status-are-ignored"),
        pytest.param([REGION.replace("zone: 1", "zone: 2")], (NORTH,), id="a-changed-object"),
        pytest.param([REGION, REGION.replace("north", "south")], (SOUTH,), id="one-that-has-come"),
        pytest.param([REGION, REGION.replace("north", "east")], (), id="unrequested-object"),
        pytest.param([REGION.replace("north", "east")], (NORTH,), id="one-that-has-gone"),
        pytest.param([], (NORTH, TYPE), id="the-last-of-its-type"),
        pytest.param([REGION, REGION], (NORTH, TYPE), id="duplicate-object"),
        pytest.param([REGION.replace("/v1", "/v2")], (NORTH, TYPE), id="another-version"),
        pytest.param([REGION.replace("north}", "north, namespace: edge}")], (NORTH, TYPE), id="another-namespace"),
    ],
)
def test_changed_dependencies(documents: list[str], changed: tuple[str, ...]) -> None:
    trace = record_trace(build_catalog(REGION))

    assert find_changed_dependencies(trace, {}, DependencyReader(build_catalog(*documents))) == changed


@pytest.mark.parametrize(
    ("facts", "changed"),
    [
        pytest.param({"engine": "1", "variant": "a"}, (), id="equal"),
        pytest.param({"engine": "2", "variant": "a"}, ("engine",), id="changed"),
        pytest.param({"engine": "1", "variant": "a", "repository": "r"}, ("repository",), id="new"),
        pytest.param({"engine": "1"}, ("variant",), id="gone"),
    ],
)
def test_facts_are_dependencies(facts: dict[str, str], changed: tuple[str, ...]) -> None:
    now = build_catalog(REGION)
    trace = {"engine": "1", "variant": "a", **record_trace(now)}

    assert find_changed_dependencies(trace, facts, DependencyReader(now)) == changed


def test_facts_come_before_objects() -> None:
    trace = {"variant": "a", **record_trace(build_catalog(REGION))}

    assert find_changed_dependencies(trace, {"variant": "b"}, DependencyReader(build_catalog())) == (
        "variant",
        NORTH,
        TYPE,
    )


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("object fleet.example/v1 Region default", id="no-name"),
        pytest.param("type ", id="no-type"),
        pytest.param("object a b c d e", id="too-many-words"),
    ],
)
def test_unknown_dependency_counts_as_changed(question: str) -> None:
    assert find_changed_dependencies({question: ABSENT_FINGERPRINT}, {}, DependencyReader(build_catalog(REGION))) == (
        question,
    )


@pytest.mark.parametrize("name", [pytest.param("north west", id="blank"), pytest.param("north%20west", id="escape")])
def test_name_with_a_blank_is_one_name(name: str) -> None:
    now, other = (
        build_catalog(REGION.replace("north", f'"{name}"')),
        build_catalog(REGION.replace("north", '"north other"')),
    )
    view = CatalogView(DependencyReader(now))

    assert view.find_object("fleet.example/v1", "Region", "default", name) is not None
    assert find_changed_dependencies(view.trace, {}, DependencyReader(now)) == ()
    assert find_changed_dependencies(view.trace, {}, DependencyReader(other)) == tuple(view.trace)


def test_recorded_dependency_is_read_from_the_current_catalog() -> None:
    assert DependencyReader(build_catalog(REGION)).read_fingerprint(TYPE) == PRESENT_FINGERPRINT
    assert DependencyReader(build_catalog()).read_fingerprint(TYPE) == ABSENT_FINGERPRINT
