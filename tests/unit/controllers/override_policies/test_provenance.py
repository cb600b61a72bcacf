"""Provenance: which item changed which leaf, from what to what, and what may not be shown."""

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
from tests.unit.controllers.override_policies.override_world import HERE, override, policy, read, rules_of
from tests.unit.controllers.override_policies.test_examples import ORDERS


def told(before: Any, after: Any) -> list[Any]:
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
        pytest.param([1, 2, 3], [2, 3], [["removed", "/0", 1]], id="first-item-goes"),
        pytest.param([1, 2], [1, 5, 2], [["added", "/1", 5]], id="item-between"),
        pytest.param([1, 2, 3], [1, 9, 3], [["replaced", "/1", 2, 9]], id="item-changed"),
        pytest.param([1, 1], [1], [["removed", "/1", 1]], id="one-of-two-equal"),
    ],
)
def test_what_changed(before: Any, after: Any, expected: list[Any]) -> None:
    assert told(before, after) == expected


def test_long_values_are_shortened_and_stay_told_apart() -> None:
    (first,), (second,) = (told({"a": "x" * 2000 + end}, {}) for end in "yz")

    assert first[2].startswith("x" * 256 + "… (2003 bytes, sha256:")
    assert len(first[2]) < 300
    assert first[2] != second[2]


def test_steps_name_policy_and_item_and_stand_by_pointer() -> None:
    final_resource = override(
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


def test_an_outcome_is_the_same_in_another_process() -> None:
    resource = override(ORDERS, {"labels": [{"operator": "addIfAbsent", "value": {"ring": "a"}}]})

    steps, policies = pickle.loads(pickle.dumps((resource.steps, read(policy([])))))

    assert [step.as_data() for step in steps] == [step.as_data() for step in resource.steps]
    assert policies == read(policy([]))


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_what_a_secret_holds_is_masked(field: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, field: {"a": "b2xk"}}

    (entry,) = override(secret, {"jsonpatch": [{"path": f"/{field}/a", "value": "bmV3"}]}).as_data()

    assert [(step["before"], step["after"]) for step in entry["steps"]] == [("*****", "*****")]


def test_what_a_secret_holds_in_another_object_is_masked() -> None:
    inner = {"kind": "Secret", "stringData": {"a": "old"}}
    kit = {"apiVersion": "x.io/v1", "kind": "Kit", "metadata": {"name": "one"}, "items": [inner]}

    (entry,) = override(kit, {"jsonpatch": [{"path": "/items/0/stringData/a", "value": "new"}]}).as_data()

    assert [(step["before"], step["after"]) for step in entry["steps"]] == [("*****", "*****")]


def test_the_manifest_of_a_secret_in_a_text_is_masked() -> None:
    holder = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "kind: Secret\nb: c"}}

    (entry,) = override(holder, {"jsonpatch": [{"operator": "remove", "path": "/data/a"}]}).as_data()

    assert [step["before"] for step in entry["steps"]] == ["*****"]


def test_duplicate_finalizers_go_by_the_step_that_brought_them() -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "finalizers": ["a"]}}

    resource = override(held, {"jsonpatch": [{"operator": "add", "path": "/metadata/finalizers/-", "value": "a"}]})

    assert resource.document.data["metadata"]["finalizers"] == ["a"]
    assert [step.op for step in resource.steps] == ["added", "removed"]


def test_usage_counts_resources_once_and_clusters_by_rule() -> None:
    rules = [{"overriders": {}}, {"targetClusters": {"clusters": ["edge-2"]}}]
    policies = read(policy(rules), policy([], name="idle"))
    resource = override(ORDERS, {"labels": []})
    entries = [
        (HERE.name, "shop/orders", build_usage_data([resource])),
        ("edge-2", "shop/orders", build_usage_data([resource])),
    ]

    idle, tuning = compute_policy_usage(policies, entries)

    assert (idle.kinds, idle.clusters, idle.failed) == ((), (), ())
    assert tuning.kinds == (("apps", "Deployment", 1),)
    assert tuning.clusters == (("edge-1", "edge-2"), ())


def test_a_resource_that_fails_is_in_the_usage() -> None:
    overriders = {"jsonpatch": [{"operator": "remove", "path": "/spec/none"}]}

    used = build_usage_data([override(ORDERS, overriders)])
    (usage,) = compute_policy_usage(read(policy(rules_of(overriders))), [("edge-1", "shop/orders", used)])

    assert usage.failed == ("edge-1 shop/orders Deployment/market/orders",)


def test_a_policy_that_nothing_names_is_a_warning() -> None:
    policies = read(policy([]), policy([], name="idle"))
    used = build_usage_data([override(ORDERS, {"labels": []})])

    (finding,) = check_unused_policies(compute_policy_usage(policies, [("edge-1", "shop/orders", used)]), policies)

    assert (finding.code, finding.severity, finding.location.object) == (
        "PolicyUnused",
        "warning",
        "ClusterOverridePolicy/_cluster/idle",
    )
