"""Reach: what of a policy a cluster can feel, and that nothing else of it makes a difference there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.effective_rules import (
    DUPLICATE_POLICY,
    INVALID_POLICY,
    digest_policy_for_cluster,
)
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from reconciler.controllers.override_policies.read_policies import build_override_policy_key
from reconciler.krm.yaml import emit
from tests.unit.controllers.override_policies.override_world import (
    POLICY,
    attached,
    override_package,
    policy,
    read,
    tree,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS

KEY = build_override_policy_key("ClusterOverridePolicy", "", POLICY)
EAST = Cluster("east", {"ring": "early"})
FILES = tree({"all.yaml": emit(attached(ORDERS))})


def rule(ring: str, value: str = "a", **more: Any) -> dict[str, Any]:
    targets = {"clusterSelector": {"ring": ring}} if ring else {}
    return {**more, "targetClusters": targets, "overriders": {"labels": [{"operator": "set", "value": {"app": value}}]}}


WAVES = {"waves": [{"clusters": ["west"]}]}
TODAY = [rule("early"), rule("late")]


@pytest.mark.parametrize(
    ("rules", "same"),
    [
        pytest.param([rule("early"), rule("late", "b")], True, id="a-rule-for-others"),
        pytest.param([rule("early")], True, id="a-rule-for-others-goes"),
        pytest.param([rule("early"), rule("late", name="late")], True, id="the-name-of-a-rule-for-others"),
        pytest.param([rule("early", "b"), rule("late")], False, id="its-rule"),
        pytest.param([rule("early", name="early"), rule("late")], False, id="the-name-of-its-rule"),
        pytest.param([rule("late"), rule("early")], False, id="the-number-of-its-rule"),
        pytest.param([rule("early"), rule("")], False, id="a-rule-for-others-is-for-it-now"),
        pytest.param([rule("late"), rule("late")], False, id="its-rule-is-for-others-now"),
        pytest.param([rule("early"), rule("late", rollout=WAVES)], False, id="a-rule-for-others-goes-in-waves"),
    ],
)
def test_what_a_cluster_feels(rules: list[Mapping[str, Any]], same: bool) -> None:
    result = digest_policy_for_cluster(read(policy(rules)), KEY, EAST)

    assert (result == digest_policy_for_cluster(read(policy(TODAY)), KEY, EAST)) is same


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([], "", id="absent"),
        pytest.param([policy([{"nonsense": 1}])], INVALID_POLICY, id="invalid"),
        pytest.param([policy(TODAY), policy(TODAY)], DUPLICATE_POLICY, id="twice"),
    ],
)
def test_a_policy_that_says_nothing_tells_why(documents: list[Mapping[str, Any]], expected: str) -> None:
    assert digest_policy_for_cluster(read(*documents), KEY, EAST) == expected


def test_where_waves_are_is_not_felt() -> None:
    values = {
        digest_policy_for_cluster(read(policy([rule("early", rollout=WAVES | more)])), KEY, EAST)
        for more in ({}, {"soak": "1h"}, {"waves": [{"clusters": ["east"]}]})
    }

    assert len(values) == 1


rings = st.sampled_from(["early", "late", ""])
rules = st.lists(st.builds(rule, rings, st.sampled_from("abc")), max_size=3)


@given(before=rules, after=rules)
def test_equal_reach_makes_equal_packages(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    was, now = read(policy(before)), read(policy(after))
    is_same = digest_policy_for_cluster(was, KEY, EAST) == digest_policy_for_cluster(now, KEY, EAST)

    assert not is_same or _made(override_package(FILES, was, EAST)) == _made(override_package(FILES, now, EAST))


def _made(package: OverriddenPackage) -> tuple[Any, ...]:
    numbers = [
        matched_policy.rule_numbers for resource in package.resources for matched_policy in resource.matched_policies
    ]
    return package.files.id, package.findings, package.as_data(), package.rule_texts, numbers
