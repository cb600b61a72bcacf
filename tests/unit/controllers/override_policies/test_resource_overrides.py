"""Tests of the overrides of one resource: its stages and its identity, and results that many clusters share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.package_overrides import PackageOverrider
from reconciler.controllers.override_policies.read_policies import build_override_policy_key
from reconciler.controllers.override_policies.resource_overrides import MAX_ANNOTATIONS_BYTES
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.krm.yaml import emit
from tests.unit.controllers.override_policies.override_world import (
    POLICY,
    attach_policy,
    build_policy,
    build_tree,
    override_data,
    override_package,
    read_policies,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS

FILES = build_tree({"all.yaml": emit(attach_policy(ORDERS))})
OTHER_FILES = build_tree({"all.yaml": emit(ORDERS)})
EAST, WEST, NORTH = (Cluster(name, {"ring": ring}) for name, ring in (("east", "a"), ("west", "a"), ("north", "b")))
STAGED = RuleId(build_override_policy_key("ClusterOverridePolicy", "", POLICY), "staged")
EARLIER = '{"overriders":{"labels":[{"operator":"set","value":{"ring":"earlier"}}]}}'


def build_rule(ring: str, value: str, **more: Any) -> dict[str, Any]:
    targets = {"targetClusters": {"clusterSelector": {"ring": ring}}} if ring else {}
    return {**more, **targets, "overriders": {"labels": [{"operator": "set", "value": {"ring": value}}]}}


def test_clusters_with_the_same_rules_share_one_result() -> None:
    overriding = PackageOverrider(read_policies(build_policy([build_rule("a", "one"), build_rule("b", "two")])))

    east, west, north = (overriding.override(FILES, cluster, {}) for cluster in (EAST, WEST, NORTH))

    assert east is west
    assert b"ring: two" in north.files["all.yaml"].data


def test_rule_with_variables_is_applied_per_cluster() -> None:
    overriding = PackageOverrider(read_policies(build_policy([build_rule("", "${cluster.name}")])))

    east, west = (overriding.override(FILES, cluster, {}) for cluster in (EAST, WEST))

    assert b"ring: east" in east.files["all.yaml"].data
    assert b"ring: west" in west.files["all.yaml"].data


rules = st.builds(build_rule, st.sampled_from(["", "a", "b"]), st.sampled_from(["one", "two", "${cluster.name}"]))
staged = st.builds(build_rule, st.just("a"), st.just("new"), name=st.just("staged"), rollout=st.just({"waves": [{}]}))
texts = st.sampled_from([{}, {STAGED: None}, {STAGED: EARLIER}])
asked = st.lists(st.tuples(st.sampled_from([FILES, OTHER_FILES]), st.sampled_from([EAST, WEST, NORTH]), texts))


@pytest.mark.slow
@given(some=st.lists(rules, max_size=3), more=st.lists(staged, max_size=1), questions=asked)
def test_result_does_not_depend_on_earlier_results(
    some: list[dict[str, Any]], more: list[dict[str, Any]], questions: list[tuple[Any, ...]]
) -> None:
    policies = read_policies(build_policy([*some, *more]))
    overriding = PackageOverrider(policies)

    for files, cluster, item in questions:
        had = [build_override_policy_key("ClusterOverridePolicy", "", "lost")]
        alone = override_package(files, policies, cluster, texts=item, had=had)
        assert overriding.override(files, cluster, item, had) == alone


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"f.json": '{"a": 1}'}}
ADD_LABEL = {"labels": [{"operator": "addIfAbsent", "value": {"team": "a"}}]}
SET_FIELD = {"fields": [{"fieldPath": "/data/f.json", "json": [{"subPath": "/a", "value": 2}]}]}


def test_each_item_has_a_stage_and_its_changes() -> None:
    resource = override_data(SETTINGS, ADD_LABEL, SET_FIELD)

    label, field = (f"spec.overrideRules[{path}" for path in ("0].overriders.labels[0]", "1].overriders.fields[0]"))
    labeled = {**SETTINGS, "metadata": {"name": "settings", "labels": {"team": "a"}}}
    policy = f"ClusterOverridePolicy/{POLICY}"
    assert [(stage.policy, stage.item_path, stage.data) for stage in resource.stages] == [
        ("", "", SETTINGS),
        (policy, label, labeled),
        (policy, field, {**labeled, "data": {"f.json": '{"a": 2}'}}),
    ]
    assert [(step.source_name, step.source_item, step.pointer) for step in resource.steps] == [
        (policy, label, "/metadata/labels/team"),
        (policy, field, "/data/f.json!/a"),
    ]


@pytest.mark.parametrize(
    ("patch", "field", "change"),
    [
        pytest.param(
            {"operator": "replace", "path": "/metadata", "value": {"name": "x"}},
            "/metadata/name",
            'change /metadata/name from "settings" to "x"',
            id="changed",
        ),
        pytest.param(
            {"operator": "remove", "path": "/metadata"},
            "/metadata/name",
            'remove /metadata/name with the value "settings"',
            id="removed",
        ),
        pytest.param(
            {"operator": "replace", "path": "/metadata", "value": {"name": "settings", "generateName": "s-"}},
            "/metadata/generateName",
            'add /metadata/generateName with the value "s-"',
            id="added",
        ),
    ],
)
def test_identity_change_names_the_item_and_the_values(patch: dict[str, Any], field: str, change: str) -> None:
    resource = override_data(SETTINGS, ADD_LABEL, {"jsonpatch": [patch]}, SET_FIELD)

    [finding] = [entry for entry in resource.findings if entry.code == "IdentityChanged"]
    item = f"ClusterOverridePolicy/{POLICY} spec.overrideRules[1].overriders.jsonpatch[0]"
    assert finding.message == f"{item}: an override must not {change}"
    assert finding.location.pointer == field


def add_annotation(size: int) -> dict[str, Any]:
    """Return an overrider that adds one annotation, whose key and value have `size` bytes."""
    return {"annotations": [{"operator": "addIfAbsent", "value": {"a": "x" * (size - 1)}}]}


@pytest.mark.parametrize(
    ("data", "overrider", "findings"),
    [
        pytest.param(SETTINGS, add_annotation(MAX_ANNOTATIONS_BYTES), [], id="at-the-limit"),
        pytest.param(
            SETTINGS,
            add_annotation(MAX_ANNOTATIONS_BYTES + 1),
            [
                (
                    "/metadata/annotations",
                    "the keys and values in metadata.annotations must have at most 262144 bytes in total",
                )
            ],
            id="above-the-limit",
        ),
        pytest.param(
            {**SETTINGS, "metadata": {"name": "settings", "annotations": {"a": "x" * MAX_ANNOTATIONS_BYTES}}},
            ADD_LABEL,
            [],
            id="unchanged-annotations-are-not-counted",
        ),
    ],
)
def test_size_of_annotations(data: Any, overrider: dict[str, Any], findings: list[tuple[str, str]]) -> None:
    resource = override_data(data, overrider)

    assert [(finding.location.pointer, finding.message) for finding in resource.findings] == findings
