"""Rules that do nothing: what a later rule sets anew wherever they apply, and what no resource ever meets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.policy_usage import PolicyUsage, check_unreached_rules, lint_policies
from tests.unit.controllers.override_policies.override_world import policy, read

CLUSTERS = {
    name: Cluster(name, {"region": region}) for name, region in (("a", "north"), ("b", "north"), ("c", "south"))
}
NORTH, SOUTH = {"clusterSelector": {"region": "north"}}, {"clusterSelector": {"region": "south"}}
BETWEEN = {"jsonpatch": [{"operator": "add", "path": "/data/x", "value": "1"}]}


def labels(operator: str = "overwrite", **value: str) -> dict[str, Any]:
    return {"labels": [{"operator": operator, "value": value}]}


def image(component: str, names: tuple[str, ...] = (), operator: str = "overwrite") -> dict[str, Any]:
    operation = {"imageComponent": component, "operator": operator, "value": "x"}
    chosen = {"containerNames": list(names)} if names else {}
    return {"image": [{**chosen, "operations": [operation]}]}


def rule(overriders: Mapping[str, Any], targets: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"overriders": overriders, **({"targetClusters": targets} if targets else {}), **more}


def args(value: str, operator: str = "overwrite") -> dict[str, Any]:
    return {"args": [{"containerName": "main", "operator": operator, "value": [value]}]}


def env(name: str) -> dict[str, Any]:
    return {"envs": [{"containerName": "main", "operator": "set", "value": [{"name": name, "value": "1"}]}]}


@pytest.mark.parametrize(
    ("rules", "idle"),
    [
        pytest.param([rule(labels(a="1")), rule(labels(a="2"))], [(0, 1)], id="one-label"),
        pytest.param([rule(labels(a="1"), NORTH), rule(labels(a="2", b="2"))], [(0, 1)], id="on-fewer-clusters"),
        pytest.param([rule(labels(a="1")), rule(labels(a="2"), NORTH)], [], id="on-more-clusters"),
        pytest.param([rule(labels(a="1"), NORTH), rule(labels(a="2"), SOUTH)], [], id="on-others"),
        pytest.param([rule(labels(a="1", b="1")), rule(labels(a="2"))], [], id="not-all-of-it"),
        pytest.param([rule(labels("set", a="1")), rule(labels(a="2"))], [], id="what-must-be-there-first"),
        pytest.param([rule(labels("addIfAbsent", a="1")), rule(labels(a="2"))], [], id="what-depends-on-what-is-there"),
        pytest.param([rule(labels(a="1")), rule(BETWEEN), rule(labels(a="2"))], [], id="something-between"),
        pytest.param([rule(labels(a="1")), rule(labels(b="1")), rule(labels(a="2"))], [(0, 2)], id="two-later"),
        pytest.param([rule(labels(a="1")), rule(labels(a="${cluster.name}"))], [], id="a-variable"),
        pytest.param([rule(image("Tag")), rule(image("Tag"))], [(0, 1)], id="a-tag"),
        pytest.param([rule(image("Tag")), rule(image("Registry"))], [], id="another-part"),
        pytest.param([rule(image("Tag", ("x",))), rule(image("Tag", ("y",)))], [], id="another-container"),
        pytest.param([rule(image("Tag")), rule(image("Tag", ("x",)))], [], id="one-of-all-containers"),
        pytest.param([rule(image("Tag")), rule(image("Tag", operator="addIfAbsent"))], [], id="an-image-that-has-it"),
        pytest.param([rule(args("a")), rule(args("b"))], [(0, 1)], id="arguments"),
        pytest.param([rule(args("a")), rule(args("b", "append"))], [], id="arguments-that-are-appended"),
        pytest.param([rule(env("A")), rule(env("A"))], [(0, 1)], id="a-variable-of-a-container"),
        pytest.param([rule(env("A")), rule(env("B"))], [], id="another-variable"),
        pytest.param([rule({}), rule(labels(a="1"))], [], id="a-rule-that-says-nothing"),
        pytest.param([rule(labels(a="1"), {"clusters": ["z"]}), rule(labels(a="2"))], [], id="for-no-cluster"),
    ],
)  # fmt: skip
def test_rules_that_are_overwritten(rules: list[Any], idle: list[tuple[int, int]]) -> None:
    policies = read(policy(rules))
    assert policies.findings == ()
    findings = [*lint_policies(policies.valid.values(), CLUSTERS)]

    assert [finding.location.pointer for finding in findings] == [f"/spec/overrideRules/{number}" for number, _ in idle]
    assert all(
        f"spec.overrideRules[{later}] applies later" in finding.message
        for finding, (_, later) in zip(findings, idle, strict=True)
    )


def test_a_rollout_is_not_looked_at() -> None:
    rollout = {"waves": [NORTH], "soak": "1h"}

    rules = [rule(labels(a="1"), name="r", rollout=rollout), rule(labels(a="2"))]

    assert [*lint_policies(read(policy(rules)).valid.values(), CLUSTERS)] == []


def test_rules_that_no_resource_meets() -> None:
    nowhere = rule(labels(a="1"), {"clusters": ["z"]})
    policies = read(policy([rule(labels(a="1"), NORTH), rule(labels(a="1"), SOUTH), nowhere]))
    (key,) = policies.valid
    (finding,) = check_unreached_rules(
        [PolicyUsage(key, (("apps", "Deployment", 1),), ((), ("c",), ()))], policies, CLUSTERS
    )

    assert finding.location.pointer == "/spec/overrideRules/0"
    assert finding.message.startswith(
        "spec.overrideRules[0] never applies: it selects a and 1 more, and no resource with"
    )


def test_what_nothing_uses_has_no_rule_that_is_not_reached() -> None:
    policies = read(policy([rule(labels(a="1"))]))
    (key,) = policies.valid

    assert [*check_unreached_rules([PolicyUsage(key, (), ((),))], policies, CLUSTERS)] == []
