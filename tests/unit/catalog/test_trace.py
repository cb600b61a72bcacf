"""A render's questions are recorded with their answers, and asked again they tell what has changed (design 5)."""

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


def catalog(*documents: str) -> Catalog:
    return read_catalog(FileTree({"all.yaml": File("---\n".join(documents).encode())}))


def ask(view: CatalogView) -> None:
    """Ask what the tests record: a type, an object of it, and one that is not there."""
    view.has_type("fleet.example/v1", "Region", "default")
    view.find_object("fleet.example/v1", "Region", "default", "north")
    view.find_object("fleet.example/v1", "Region", "default", "south")


TYPE = "type fleet.example/v1 Region default"
NORTH = "object fleet.example/v1 Region default north"
SOUTH = "object fleet.example/v1 Region default south"


def recorded(now: Catalog) -> dict[str, str]:
    view = CatalogView(DependencyReader(now))
    ask(view)
    return view.trace


def test_answers_are_recorded_absent_ones_too() -> None:
    now = catalog(REGION)

    assert recorded(now) == {
        TYPE: PRESENT_FINGERPRINT,
        NORTH: now.objects_of_kind("fleet.example", "Region")[0].digest,
        SOUTH: ABSENT_FINGERPRINT,
    }


def test_a_view_answers_as_it_records() -> None:
    view = CatalogView(DependencyReader(catalog(REGION)))

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
        pytest.param(["# moved\n" + REGION + "status: {ready: true}\n"], (), id="comments-and-status-say-nothing"),
        pytest.param([REGION.replace("zone: 1", "zone: 2")], (NORTH,), id="a-changed-object"),
        pytest.param([REGION, REGION.replace("north", "south")], (SOUTH,), id="one-that-has-come"),
        pytest.param([REGION, REGION.replace("north", "east")], (), id="one-that-nobody-asked-for"),
        pytest.param([REGION.replace("north", "east")], (NORTH,), id="one-that-has-gone"),
        pytest.param([], (NORTH, TYPE), id="the-last-of-its-type"),
        pytest.param([REGION, REGION], (NORTH, TYPE), id="one-that-stands-there-twice"),
        pytest.param([REGION.replace("/v1", "/v2")], (NORTH, TYPE), id="another-version"),
        pytest.param([REGION.replace("north}", "north, namespace: edge}")], (NORTH, TYPE), id="another-namespace"),
    ],
)
def test_what_has_changed(documents: list[str], changed: tuple[str, ...]) -> None:
    trace = recorded(catalog(REGION))

    assert find_changed_dependencies(trace, {}, DependencyReader(catalog(*documents))) == changed


@pytest.mark.parametrize(
    ("facts", "changed"),
    [
        pytest.param({"engine": "1", "variant": "a"}, (), id="equal"),
        pytest.param({"engine": "2", "variant": "a"}, ("engine",), id="changed"),
        pytest.param({"engine": "1", "variant": "a", "repository": "r"}, ("repository",), id="new"),
        pytest.param({"engine": "1"}, ("variant",), id="gone"),
    ],
)
def test_facts_are_answers_too(facts: dict[str, str], changed: tuple[str, ...]) -> None:
    now = catalog(REGION)
    trace = {"engine": "1", "variant": "a", **recorded(now)}

    assert find_changed_dependencies(trace, facts, DependencyReader(now)) == changed


def test_facts_come_before_questions() -> None:
    trace = {"variant": "a", **recorded(catalog(REGION))}

    assert find_changed_dependencies(trace, {"variant": "b"}, DependencyReader(catalog())) == ("variant", NORTH, TYPE)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("object fleet.example/v1 Region default", id="no-name"),
        pytest.param("type ", id="no-type"),
        pytest.param("object a b c d e", id="too-many-words"),
    ],
)
def test_a_question_that_nobody_could_have_asked_is_one_whose_answer_changed(question: str) -> None:
    assert find_changed_dependencies({question: ABSENT_FINGERPRINT}, {}, DependencyReader(catalog(REGION))) == (
        question,
    )


@pytest.mark.parametrize("name", [pytest.param("north west", id="blank"), pytest.param("north%20west", id="escape")])
def test_a_name_that_could_be_taken_for_two_words(name: str) -> None:
    now, other = catalog(REGION.replace("north", f'"{name}"')), catalog(REGION.replace("north", '"north other"'))
    view = CatalogView(DependencyReader(now))

    assert view.find_object("fleet.example/v1", "Region", "default", name) is not None
    assert find_changed_dependencies(view.trace, {}, DependencyReader(now)) == ()
    assert find_changed_dependencies(view.trace, {}, DependencyReader(other)) == tuple(view.trace)


def test_an_old_question_is_answered_today() -> None:
    assert DependencyReader(catalog(REGION)).read_fingerprint(TYPE) == PRESENT_FINGERPRINT
    assert DependencyReader(catalog()).read_fingerprint(TYPE) == ABSENT_FINGERPRINT
