"""Tests of provenance: the item that changes a value, the value before and after, and masked values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reconciler.controllers.override_policies.policy_usage import (
    build_usage_data,
    check_unused_policies,
    compute_policy_usage,
)
from reconciler.controllers.provenance import compute_steps
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    build_policy,
    build_rules,
    override_data,
    read_policies,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS


def list_steps(before: Any, after: Any) -> list[Any]:
    data = [{**step.as_data(), "pointer": step.pointer} for step in compute_steps(before, after, "P", "w")]
    return [
        [item["op"], item["pointer"], *(item[side] for side in ("before", "after") if side in item)] for item in data
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({"a": 1}, {"a": True}, [["replaced", "/a", 1, True]], id="1-is-not-true"),
        pytest.param({}, {"a/b": None}, [["added", "/a~1b", None]], id="null-is-a-value"),
        pytest.param({}, {"a": {"b": 1, "c": {}}}, [["added", "/a/b", 1], ["added", "/a/c", {}]], id="leaf-by-leaf"),
        pytest.param({"a": {"b": 1}}, {}, [["removed", "/a/b", 1]], id="removed"),
        pytest.param({"a": {"b": 1}}, {"a": 2}, [["replaced", "/a", {"b": 1}, 2]], id="another-type"),
        pytest.param([1, 2, 3], [2, 3], [["removed", "/0", 1]], id="first-item-is-removed"),
        pytest.param([1, 2], [1, 5, 2], [["added", "/1", 5]], id="item-between"),
        pytest.param([1, 2, 3], [1, 9, 3], [["replaced", "/1", 2, 9]], id="item-changed"),
        pytest.param([1, 1], [1], [["removed", "/1", 1]], id="one-of-two-equal"),
    ],
)
def test_changes_are_listed(before: Any, after: Any, expected: list[Any]) -> None:
    assert list_steps(before, after) == expected


def test_long_values_are_shortened_with_a_hash() -> None:
    (first,), (second,) = (list_steps({"a": "x" * 2000 + end}, {}) for end in "yz")

    assert first[2].startswith("x" * 256 + "… (2003 bytes, sha256:")
    assert len(first[2]) < 300
    assert first[2] != second[2]


def test_steps_name_policy_and_item_in_pointer_order() -> None:
    final_resource = override_data(
        ORDERS,
        {"labels": [{"operator": "addIfAbsent", "value": {"ring": "a"}}, {"value": {"ring": "b"}}]},
        {
            "jsonpatch": [
                {"path": "/spec/replicas", "value": 1},
                {"operator": "remove", "path": "/metadata/labels/ring"},
            ]
        },
    )

    by = "ClusterOverridePolicy/tuning"
    start = "spec.overrideRules"
    resource = {"file": "stack.yaml", "resource": "Deployment/market/orders"}
    assert final_resource.as_data() == [
        {
            **resource,
            "pointer": "/metadata/labels/ring",
            "steps": [
                {"by": by, "where": f"{start}[0].overriders.labels[0]", "op": "added", "after": "a"},
                {"by": by, "where": f"{start}[0].overriders.labels[1]", "op": "replaced", "before": "a", "after": "b"},
                {"by": by, "where": f"{start}[1].overriders.jsonpatch[1]", "op": "removed", "before": "b"},
            ],
        },
        {
            **resource,
            "pointer": "/spec/replicas",
            "steps": [
                {"by": by, "where": f"{start}[1].overriders.jsonpatch[0]", "op": "replaced", "before": 4, "after": 1}
            ],
        },
    ]


def test_result_is_the_same_after_pickling() -> None:
    resource = override_data(ORDERS, {"labels": [{"operator": "addIfAbsent", "value": {"ring": "a"}}]})

    steps, policies = pickle.loads(pickle.dumps((resource.steps, read_policies(build_policy([])))))

    assert [step.as_data() for step in steps] == [step.as_data() for step in resource.steps]
    assert policies == read_policies(build_policy([]))


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_value_of_a_secret_is_masked(field: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, field: {"a": "b2xk"}}

    (entry,) = override_data(secret, {"jsonpatch": [{"path": f"/{field}/a", "value": "bmV3"}]}).as_data()

    assert [(step["before"], step["after"]) for step in entry["steps"]] == [("*****", "*****")]


def test_value_of_a_nested_secret_is_masked() -> None:
    inner = {"kind": "Secret", "stringData": {"a": "old"}}
    kit = {"apiVersion": "x.io/v1", "kind": "Kit", "metadata": {"name": "one"}, "items": [inner]}

    (entry,) = override_data(kit, {"jsonpatch": [{"path": "/items/0/stringData/a", "value": "new"}]}).as_data()

    assert [(step["before"], step["after"]) for step in entry["steps"]] == [("*****", "*****")]


def test_manifest_of_a_secret_in_a_text_is_masked() -> None:
    holder = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "kind: Secret\nb: c"}}

    (entry,) = override_data(holder, {"jsonpatch": [{"operator": "remove", "path": "/data/a"}]}).as_data()

    assert [step["before"] for step in entry["steps"]] == ["*****"]


def test_duplicate_finalizers_are_removed_by_a_second_step() -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "finalizers": ["a"]}}

    resource = override_data(held, {"jsonpatch": [{"operator": "add", "path": "/metadata/finalizers/-", "value": "a"}]})

    assert resource.document.data["metadata"]["finalizers"] == ["a"]
    assert [step.op for step in resource.steps] == ["added", "removed"]
    (source,) = {(step.source_name, step.source_item) for step in resource.steps}
    assert source == ("ClusterOverridePolicy/tuning", "spec.overrideRules[0].overriders.jsonpatch[0]")


def test_usage_counts_resources_and_clusters_of_each_rule() -> None:
    rules = [{"overriders": {}}, {"targetClusters": {"clusters": ["edge-2"]}}]
    policies = read_policies(build_policy(rules), build_policy([], name="idle"))
    resource = override_data(ORDERS, {"labels": []})
    entries = [
        (HERE.name, "shop/orders", build_usage_data([resource])),
        ("edge-2", "shop/orders", build_usage_data([resource])),
    ]

    idle, tuning = compute_policy_usage(policies, entries)

    assert (idle.kinds, idle.clusters, idle.failed) == ((), (), ())
    assert tuning.kinds == (("apps", "Deployment", 1),)
    assert tuning.clusters == (("edge-1", "edge-2"), ())


def test_failed_resource_is_in_the_usage() -> None:
    overriders = {"jsonpatch": [{"operator": "remove", "path": "/spec/none"}]}

    used = build_usage_data([override_data(ORDERS, overriders)])
    (usage,) = compute_policy_usage(
        read_policies(build_policy(build_rules(overriders))), [("edge-1", "shop/orders", used)]
    )

    assert usage.failed == ("edge-1 shop/orders Deployment/market/orders",)


def test_unused_policy_is_a_warning() -> None:
    policies = read_policies(build_policy([]), build_policy([], name="idle"))
    used = build_usage_data([override_data(ORDERS, {"labels": []})])

    (finding,) = check_unused_policies(compute_policy_usage(policies, [("edge-1", "shop/orders", used)]), policies)

    assert (finding.code, finding.severity, finding.location.object) == (
        "PolicyUnused",
        "warning",
        "ClusterOverridePolicy/_cluster/idle",
    )
