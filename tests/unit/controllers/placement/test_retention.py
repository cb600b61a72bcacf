"""Doubt: what nobody can tell now stays where it was, is taken nowhere else, and is looked for only then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.placement.placement_world import (
    ALL,
    FLEET,
    UNREADABLE,
    Branches,
    by_policy,
    cluster,
    clusters_of,
    config_map,
    content,
    listing,
    policy,
    room,
    told,
)

OWNER = ObjectKey("reconciler.dev", "Placement", "", "ferry")
EDGE = "{clusterSelector: {tier: edge}}"
SOUND = {
    "a.yaml": config_map("a", labels=by_policy()),
    "p.yaml": policy(EDGE),
    "b.yaml": config_map("b", clusters="east"),
}
BOTH = {"east": ["ferry/configmap-a.yaml", "ferry/configmap-b.yaml"], "west": ["ferry/configmap-a.yaml"]}


def before(files: Mapping[str, str] = SOUND) -> Branches:
    return Branches.of(room(files))


def test_without_doubt_nobody_looks_at_branches() -> None:
    branches = before()

    result = room({"b.yaml": SOUND["b.yaml"]}, branches)

    assert listing(result) == {"east": ["ferry/configmap-b.yaml"]}
    assert branches.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"p.yaml": policy(EDGE, "other")}, id="a-policy-that-is-not-there"),
        pytest.param({"p.yaml": policy("{placement: 5}")}, id="an-invalid-policy"),
        pytest.param({"p.yaml": policy(EDGE) + "---\n" + policy(EDGE)}, id="a-policy-that-stands-twice"),
        pytest.param({"a.yaml": config_map("a", labels=by_policy(), clusters="''")}, id="an-invalid-annotation"),
        pytest.param({"a.yaml": config_map("a", labels=by_policy("7"))}, id="an-invalid-label"),
        pytest.param({"c.yaml": SOUND["a.yaml"]}, id="an-object-that-stands-twice"),
        pytest.param({"a.yaml": UNREADABLE}, id="an-unreadable-file"),
        pytest.param({"a.yaml": UNREADABLE, "b.yaml": UNREADABLE}, id="all-of-the-namespace-in-unreadable-files"),
        pytest.param({"a.yaml": UNREADABLE, "p.yaml": UNREADABLE}, id="with-its-policy"),
        pytest.param({"fleet/west.yaml": cluster("west"), "x.yaml": UNREADABLE}, id="labels-that-may-be-elsewhere"),
    ],
)
def test_what_is_in_doubt_stays(changes: Mapping[str, str]) -> None:
    result = room({**SOUND, **changes}, before())

    assert listing(result) == BOTH
    assert result.kept_owners == frozenset()


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param(config_map("a", labels=by_policy("gone")), False, id="of-an-unknown-policy-as-it-is-now"),
        pytest.param(config_map("a", clusters="''"), False, id="of-an-invalid-annotation-as-it-is-now"),
        pytest.param(config_map("a", labels=by_policy()) + "---\n" + config_map("a"), True, id="of-two-as-it-was"),
        pytest.param(UNREADABLE, True, id="of-an-unreadable-file-as-it-was"),
    ],
)
def test_which_content_stays(change: str, stays: bool) -> None:
    result = room({**SOUND, "a.yaml": change}, before())

    for name in ("east", "west"):
        text = content(result, name, "resources/ferry/configmap-a.yaml")
        assert text == (SOUND["a.yaml"] if stays else change)


def test_what_is_in_doubt_goes_nowhere_else() -> None:
    more = policy("{}", "edge")
    result = room({**SOUND, "p.yaml": more, "a.yaml": config_map("a", labels=by_policy(), clusters="''")}, before())

    assert listing(result) == BOTH


def test_what_is_new_and_in_doubt_goes_nowhere() -> None:
    result = room({**SOUND, "c.yaml": config_map("c", labels=by_policy("gone"))}, before())

    assert listing(result) == BOTH


def test_others_of_the_namespace_go_on() -> None:
    changes = {"p.yaml": policy("{placement: 5}"), "b.yaml": config_map("b", clusters="north")}

    result = room({**SOUND, **changes}, before())

    assert listing(result) == {
        "east": ["ferry/configmap-a.yaml"], "north": ["ferry/configmap-b.yaml"], "west": ["ferry/configmap-a.yaml"],
    }  # fmt: skip


def test_while_a_file_is_unreadable_changes_are_taken_and_nothing_goes() -> None:
    changed = config_map("b", clusters="north").replace("'4'", "'5'")

    result = room({**SOUND, "b.yaml": changed, "x.yaml": UNREADABLE}, before())

    assert listing(result) == {**BOTH, "north": ["ferry/configmap-b.yaml"]}
    assert "'5'" in content(result, "north", "resources/ferry/configmap-b.yaml")
    assert "'4'" in content(result, "east", "resources/ferry/configmap-b.yaml")


def test_a_file_that_stays_keeps_apart_from_new_ones() -> None:
    files = {"a.yaml": config_map("a", kind="apps/v1 Deployment", clusters="east")}
    changes = {"a.yaml": UNREADABLE, "b.yaml": config_map("a", kind="other.dev/v1 Deployment", clusters="east")}

    result = room({**files, **changes}, before(files))

    assert listing(result) == {"east": ["ferry/deployment.apps-a.yaml", "ferry/deployment.other.dev-a.yaml"]}
    assert content(result, "east", "resources/ferry/deployment.apps-a.yaml") == files["a.yaml"]


@pytest.mark.parametrize(
    ("west", "object_keys"),
    [
        pytest.param(cluster("west", "{tier: core}"), set(), id="not-one-that-is-no-target-any-more"),
        pytest.param(UNREADABLE, {OWNER}, id="one-in-an-unreadable-file"),
        pytest.param(cluster("west") + "---\n" + cluster("west"), {OWNER}, id="one-that-stands-twice"),
    ],
)
def test_a_cluster_in_doubt_keeps_what_it_has(west: str, object_keys: set[ObjectKey]) -> None:
    result = room(SOUND, before(), {**FLEET, "fleet/west.yaml": west})

    assert listing(result) == {"east": BOTH["east"]}
    assert result.kept_owners == object_keys


def test_a_repository_that_cannot_be_used_keeps_its_cluster() -> None:
    broken = (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: west}\n"
        "spec: {deployment: true, git: {}}\n"
    )
    only_its_labels = {**FLEET, "fleet/west.yaml": cluster("west"), "fleet/west-too.yaml": broken}

    result = room(SOUND, before(), only_its_labels)

    assert listing(result) == BOTH
    assert [variant.target.namespace for variant in result.variants] == ["acme", "default"]


def test_a_package_that_cannot_be_looked_at_is_left_alone() -> None:
    branches = before()
    branches.lost = ("west",)

    result = room({**SOUND, "p.yaml": policy("{placement: 5}")}, branches)

    assert clusters_of(result) == ["east"]
    assert result.kept_owners == {OWNER}


def test_resources_that_would_share_a_file_stay() -> None:
    files = {"n.yaml": config_map("n", "", kind="v1 Namespace", clusters="'*'")}
    twin = {"m.yaml": config_map("n", "x", kind="v1 Namespace", clusters="'*'")}

    result = room({**files, **twin}, before(files))

    assert clusters_of(result) == ALL
    assert content(result, "east", "resources/_cluster/namespace-n.yaml") == files["n.yaml"]


def test_what_is_in_doubt_is_not_held_by_a_guard() -> None:
    result = room({**SOUND, "p.yaml": policy("{clusterSelector: {zone: e}}"), "x.yaml": UNREADABLE}, before())

    assert listing(result) == BOTH
    assert "DeletionHeld" not in told(result)


TWICE = {"c.yaml": SOUND["a.yaml"]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"b.yaml": config_map("b", clusters="'east, west'"), **TWICE}, "ab", id="wanted-again-in-doubt"),
        pytest.param({"b.yaml": config_map("b", clusters="'east, west'"), "a.yaml": UNREADABLE}, "ab", id="unreadable"),
        pytest.param(TWICE, "", id="wanted-no-more"),
    ],
)
def test_a_package_on_its_way_out_keeps_what_is_in_doubt_only_if_it_is_wanted_again(
    changes: Mapping[str, str], expected: str
) -> None:
    branches = replace(before(), leaving=["west"])

    result = room({**SOUND, **changes}, branches)

    assert listing(result).get("west", []) == [f"ferry/configmap-{name}.yaml" for name in expected]
    assert result.kept_owners == frozenset()
