"""Tests of rules without effect: rules that a later rule overwrites, and rules that no resource uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.policy_usage import PolicyUsage, check_unreached_rules, lint_policies
from tests.unit.controllers.override_policies.override_world import build_policy, read_policies

CLUSTERS = {
    name: Cluster(name, {"region": region}) for name, region in (("a", "north"), ("b", "north"), ("c", "south"))
}
NORTH, SOUTH = {"clusterSelector": {"region": "north"}}, {"clusterSelector": {"region": "south"}}
BETWEEN = {"jsonpatch": [{"operator": "add", "path": "/data/x", "value": "1"}]}


def build_labels(operator: str = "overwrite", **value: str) -> dict[str, Any]:
    return {"labels": [{"operator": operator, "value": value}]}


def build_image_overrider(component: str, names: tuple[str, ...] = (), operator: str = "overwrite") -> dict[str, Any]:
    operation = {"imageComponent": component, "operator": operator, "value": "x"}
    chosen = {"containerNames": list(names)} if names else {}
    return {"image": [{**chosen, "operations": [operation]}]}


def build_rule(overriders: Mapping[str, Any], targets: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"overriders": overriders, **({"targetClusters": targets} if targets else {}), **more}


def build_args(value: str, operator: str = "overwrite") -> dict[str, Any]:
    return {"args": [{"containerName": "main", "operator": operator, "value": [value]}]}


def build_env(name: str) -> dict[str, Any]:
    return {"envs": [{"containerName": "main", "operator": "set", "value": [{"name": name, "value": "1"}]}]}


@pytest.mark.parametrize(
    ("rules", "idle"),
    [
        pytest.param([build_rule(build_labels(a="1")), build_rule(build_labels(a="2"))], [(0, 1)], id="one-label"),
        pytest.param([build_rule(build_labels(a="1"), NORTH), build_rule(build_labels(a="2", b="2"))], [(0, 1)], id="on-fewer-clusters"),
        pytest.param([build_rule(build_labels(a="1")), build_rule(build_labels(a="2"), NORTH)], [], id="on-more-clusters"),
        pytest.param([build_rule(build_labels(a="1"), NORTH), build_rule(build_labels(a="2"), SOUTH)], [], id="on-others"),
        pytest.param([build_rule(build_labels(a="1", b="1")), build_rule(build_labels(a="2"))], [], id="not-all-of-it"),
        pytest.param([build_rule(build_labels("set", a="1")), build_rule(build_labels(a="2"))], [], id="what-must-be-there-first"),
        pytest.param([build_rule(build_labels("addIfAbsent", a="1")), build_rule(build_labels(a="2"))], [], id="what-depends-on-what-is-there"),
        pytest.param([build_rule(build_labels(a="1")), build_rule(BETWEEN), build_rule(build_labels(a="2"))], [], id="something-between"),
        pytest.param([build_rule(build_labels(a="1")), build_rule(build_labels(b="1")), build_rule(build_labels(a="2"))], [(0, 2)], id="two-later"),
        pytest.param([build_rule(build_labels(a="1")), build_rule(build_labels(a="${cluster.name}"))], [], id="a-variable"),
        pytest.param([build_rule(build_image_overrider("Tag")), build_rule(build_image_overrider("Tag"))], [(0, 1)], id="a-tag"),
        pytest.param([build_rule(build_image_overrider("Tag")), build_rule(build_image_overrider("Registry"))], [], id="another-part"),
        pytest.param([build_rule(build_image_overrider("Tag", ("x",))), build_rule(build_image_overrider("Tag", ("y",)))], [], id="another-container"),
        pytest.param([build_rule(build_image_overrider("Tag")), build_rule(build_image_overrider("Tag", ("x",)))], [], id="one-of-all-containers"),
        pytest.param([build_rule(build_image_overrider("Tag")), build_rule(build_image_overrider("Tag", operator="addIfAbsent"))], [], id="an-image-that-has-it"),
        pytest.param([build_rule(build_args("a")), build_rule(build_args("b"))], [(0, 1)], id="arguments"),
        pytest.param([build_rule(build_args("a")), build_rule(build_args("b", "append"))], [], id="arguments-that-are-appended"),
        pytest.param([build_rule(build_env("A")), build_rule(build_env("A"))], [(0, 1)], id="a-variable-of-a-container"),
        pytest.param([build_rule(build_env("A")), build_rule(build_env("B"))], [], id="another-variable"),
        pytest.param([build_rule({}), build_rule(build_labels(a="1"))], [], id="a-rule-without-overriders"),
        pytest.param([build_rule(build_labels(a="1"), {"clusters": ["z"]}), build_rule(build_labels(a="2"))], [], id="for-no-cluster"),
    ],
)  # fmt: skip
def test_overwritten_rules_are_reported(rules: list[Any], idle: list[tuple[int, int]]) -> None:
    policies = read_policies(build_policy(rules))
    assert policies.findings == ()
    findings = [*lint_policies(policies.valid.values(), CLUSTERS)]

    assert [finding.location.pointer for finding in findings] == [f"/spec/overrideRules/{number}" for number, _ in idle]
    assert all(
        f"spec.overrideRules[{later}] applies later" in finding.message
        for finding, (_, later) in zip(findings, idle, strict=True)
    )


def test_rollout_rule_is_not_checked() -> None:
    rollout = {"waves": [NORTH], "soak": "1h"}

    rules = [build_rule(build_labels(a="1"), name="r", rollout=rollout), build_rule(build_labels(a="2"))]

    assert [*lint_policies(read_policies(build_policy(rules)).valid.values(), CLUSTERS)] == []


def test_rule_without_resource_is_reported() -> None:
    nowhere = build_rule(build_labels(a="1"), {"clusters": ["z"]})
    policies = read_policies(
        build_policy([build_rule(build_labels(a="1"), NORTH), build_rule(build_labels(a="1"), SOUTH), nowhere])
    )
    (key,) = policies.valid
    (finding,) = check_unreached_rules(
        [PolicyUsage(key, (("apps", "Deployment", 1),), ((), ("c",), ()))], policies, CLUSTERS
    )

    assert finding.location.pointer == "/spec/overrideRules/0"
    assert finding.message.startswith(
        "spec.overrideRules[0] has no effect, because no resource on the clusters of this rule (a and 1 more)"
    )


def test_rules_of_an_unused_policy_are_not_reported() -> None:
    policies = read_policies(build_policy([build_rule(build_labels(a="1"))]))
    (key,) = policies.valid

    assert [*check_unreached_rules([PolicyUsage(key, (), ((),))], policies, CLUSTERS)] == []
