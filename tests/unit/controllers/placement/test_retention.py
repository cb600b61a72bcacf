"""Tests of uncertain placements: published files stay on their clusters, and appear on no other cluster. Branches
are read only then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.placement.controller_world import (
    ALL,
    FLEET,
    UNREADABLE,
    FakeBranches,
    build_cluster,
    build_config_map,
    build_policy,
    build_policy_label,
    list_clusters,
    list_codes,
    list_files,
    read_content,
    run_controller,
)

OWNER = ObjectKey("reconciler.dev", "Placement", "", "ferry")
EDGE = "{clusterSelector: {tier: edge}}"
VALID = {
    "a.yaml": build_config_map("a", labels=build_policy_label()),
    "p.yaml": build_policy(EDGE),
    "b.yaml": build_config_map("b", clusters="east"),
}
BOTH = {"east": ["ferry/configmap-a.yaml", "ferry/configmap-b.yaml"], "west": ["ferry/configmap-a.yaml"]}


def publish_before(files: Mapping[str, str] = VALID) -> FakeBranches:
    return FakeBranches.of(run_controller(files))


def test_branches_are_not_read_for_certain_placements() -> None:
    branches = publish_before()

    result = run_controller({"b.yaml": VALID["b.yaml"]}, branches)

    assert list_files(result) == {"east": ["ferry/configmap-b.yaml"]}
    assert branches.requested == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"p.yaml": build_policy(EDGE, "other")}, id="a-policy-that-is-not-there"),
        pytest.param({"p.yaml": build_policy("{placement: 5}")}, id="an-invalid-policy"),
        pytest.param(
            {"p.yaml": build_policy(EDGE) + "---\n" + build_policy(EDGE)}, id="a-policy-that-is-defined-twice"
        ),
        pytest.param(
            {"a.yaml": build_config_map("a", labels=build_policy_label(), clusters="''")}, id="an-invalid-annotation"
        ),
        pytest.param({"a.yaml": build_config_map("a", labels=build_policy_label("7"))}, id="an-invalid-label"),
        pytest.param({"c.yaml": VALID["a.yaml"]}, id="an-object-that-is-defined-twice"),
        pytest.param({"a.yaml": UNREADABLE}, id="an-unreadable-file"),
        pytest.param({"a.yaml": UNREADABLE, "b.yaml": UNREADABLE}, id="all-of-the-namespace-in-unreadable-files"),
        pytest.param({"a.yaml": UNREADABLE, "p.yaml": UNREADABLE}, id="with-its-policy"),
        pytest.param(
            {"fleet/west.yaml": build_cluster("west"), "x.yaml": UNREADABLE}, id="labels-that-may-be-elsewhere"
        ),
    ],
)
def test_files_of_an_uncertain_resource_stay(changes: Mapping[str, str]) -> None:
    result = run_controller({**VALID, **changes}, publish_before())

    assert list_files(result) == BOTH
    assert result.kept_owners == frozenset()


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param(
            build_config_map("a", labels=build_policy_label("gone")), False, id="of-an-unknown-policy-as-it-is-now"
        ),
        pytest.param(build_config_map("a", clusters="''"), False, id="of-an-invalid-annotation-as-it-is-now"),
        pytest.param(
            build_config_map("a", labels=build_policy_label()) + "---\n" + build_config_map("a"),
            True,
            id="of-two-as-it-was",
        ),
        pytest.param(UNREADABLE, True, id="of-an-unreadable-file-as-it-was"),
    ],
)
def test_content_of_a_retained_file(change: str, stays: bool) -> None:
    result = run_controller({**VALID, "a.yaml": change}, publish_before())

    for name in ("east", "west"):
        text = read_content(result, name, "resources/ferry/configmap-a.yaml")
        assert text == (VALID["a.yaml"] if stays else change)


def test_uncertain_resource_is_placed_on_no_other_cluster() -> None:
    more = build_policy("{}", "edge")
    result = run_controller(
        {**VALID, "p.yaml": more, "a.yaml": build_config_map("a", labels=build_policy_label(), clusters="''")},
        publish_before(),
    )

    assert list_files(result) == BOTH


def test_new_uncertain_resource_is_not_placed() -> None:
    result = run_controller(
        {**VALID, "c.yaml": build_config_map("c", labels=build_policy_label("gone"))}, publish_before()
    )

    assert list_files(result) == BOTH


def test_other_resources_of_the_namespace_are_still_placed() -> None:
    changes = {"p.yaml": build_policy("{placement: 5}"), "b.yaml": build_config_map("b", clusters="north")}

    result = run_controller({**VALID, **changes}, publish_before())

    assert list_files(result) == {
        "east": ["ferry/configmap-a.yaml"], "north": ["ferry/configmap-b.yaml"], "west": ["ferry/configmap-a.yaml"],
    }  # fmt: skip


def test_unreadable_file_allows_changes_and_prevents_deletions() -> None:
    changed = build_config_map("b", clusters="north").replace("'4'", "'5'")

    result = run_controller({**VALID, "b.yaml": changed, "x.yaml": UNREADABLE}, publish_before())

    assert list_files(result) == {**BOTH, "north": ["ferry/configmap-b.yaml"]}
    assert "'5'" in read_content(result, "north", "resources/ferry/configmap-b.yaml")
    assert "'4'" in read_content(result, "east", "resources/ferry/configmap-b.yaml")


def test_retained_file_and_new_file_have_different_names() -> None:
    files = {"a.yaml": build_config_map("a", kind="apps/v1 Deployment", clusters="east")}
    changes = {"a.yaml": UNREADABLE, "b.yaml": build_config_map("a", kind="other.dev/v1 Deployment", clusters="east")}

    result = run_controller({**files, **changes}, publish_before(files))

    assert list_files(result) == {"east": ["ferry/deployment.apps-a.yaml", "ferry/deployment.other.dev-a.yaml"]}
    assert read_content(result, "east", "resources/ferry/deployment.apps-a.yaml") == files["a.yaml"]


@pytest.mark.parametrize(
    ("west", "object_keys"),
    [
        pytest.param(build_cluster("west", "{tier: core}"), set(), id="not-one-that-is-no-target-any-more"),
        pytest.param(UNREADABLE, {OWNER}, id="one-in-an-unreadable-file"),
        pytest.param(
            build_cluster("west") + "---\n" + build_cluster("west"), {OWNER}, id="a-cluster-that-is-defined-twice"
        ),
    ],
)
def test_uncertain_cluster_keeps_its_packages(west: str, object_keys: set[ObjectKey]) -> None:
    result = run_controller(VALID, publish_before(), {**FLEET, "fleet/west.yaml": west})

    assert list_files(result) == {"east": BOTH["east"]}
    assert result.kept_owners == object_keys


def test_invalid_repository_keeps_the_packages_of_its_cluster() -> None:
    broken = (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: west}\n"
        "spec: {deployment: true, git: {}}\n"
    )
    only_its_labels = {**FLEET, "fleet/west.yaml": build_cluster("west"), "fleet/west-too.yaml": broken}

    result = run_controller(VALID, publish_before(), only_its_labels)

    assert list_files(result) == BOTH
    assert [variant.target.namespace for variant in result.variants] == ["acme", "default"]


def test_unreadable_package_is_unchanged() -> None:
    branches = publish_before()
    branches.unreadable_clusters = ("west",)

    result = run_controller({**VALID, "p.yaml": build_policy("{placement: 5}")}, branches)

    assert list_clusters(result) == ["east"]
    assert result.kept_owners == {OWNER}


def test_resources_with_the_same_file_keep_the_published_file() -> None:
    files = {"n.yaml": build_config_map("n", "", kind="v1 Namespace", clusters="'*'")}
    twin = {"m.yaml": build_config_map("n", "x", kind="v1 Namespace", clusters="'*'")}

    result = run_controller({**files, **twin}, publish_before(files))

    assert list_clusters(result) == ALL
    assert read_content(result, "east", "resources/_cluster/namespace-n.yaml") == files["n.yaml"]


def test_retained_files_are_not_guarded() -> None:
    result = run_controller(
        {**VALID, "p.yaml": build_policy("{clusterSelector: {zone: e}}"), "x.yaml": UNREADABLE}, publish_before()
    )

    assert list_files(result) == BOTH
    assert "DeletionHeld" not in list_codes(result)


DUPLICATE = {"c.yaml": VALID["a.yaml"]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"b.yaml": build_config_map("b", clusters="'east, west'"), **DUPLICATE},
            "ab",
            id="requested-again-with-an-uncertain-placement",
        ),
        pytest.param(
            {"b.yaml": build_config_map("b", clusters="'east, west'"), "a.yaml": UNREADABLE}, "ab", id="unreadable"
        ),
        pytest.param(DUPLICATE, "", id="no-longer-requested"),
    ],
)
def test_package_in_deletion_keeps_uncertain_files_only_if_requested_again(
    changes: Mapping[str, str], expected: str
) -> None:
    branches = replace(publish_before(), deleting_clusters=["west"])

    result = run_controller({**VALID, **changes}, branches)

    assert list_files(result).get("west", []) == [f"ferry/configmap-{name}.yaml" for name in expected]
    assert result.kept_owners == frozenset()
