"""Tests of the digest of a policy for a cluster: it changes with each rule for this cluster, and with nothing else."""

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
    attach_policy,
    build_policy,
    build_tree,
    override_package,
    read_policies,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS

KEY = build_override_policy_key("ClusterOverridePolicy", "", POLICY)
EAST = Cluster("east", {"ring": "early"})
FILES = build_tree({"all.yaml": emit(attach_policy(ORDERS))})


def build_rule(ring: str, value: str = "a", **more: Any) -> dict[str, Any]:
    targets = {"clusterSelector": {"ring": ring}} if ring else {}
    return {**more, "targetClusters": targets, "overriders": {"labels": [{"operator": "set", "value": {"app": value}}]}}


WAVES = {"waves": [{"clusters": ["west"]}]}
TODAY = [build_rule("early"), build_rule("late")]


@pytest.mark.parametrize(
    ("rules", "same"),
    [
        pytest.param([build_rule("early"), build_rule("late", "b")], True, id="a-rule-for-others"),
        pytest.param([build_rule("early")], True, id="a-rule-for-other-clusters-is-removed"),
        pytest.param([build_rule("early"), build_rule("late", name="late")], True, id="the-name-of-a-rule-for-others"),
        pytest.param([build_rule("early", "b"), build_rule("late")], False, id="its-rule"),
        pytest.param([build_rule("early", name="early"), build_rule("late")], False, id="the-name-of-its-rule"),
        pytest.param([build_rule("late"), build_rule("early")], False, id="the-number-of-its-rule"),
        pytest.param([build_rule("early"), build_rule("")], False, id="a-rule-for-others-is-for-it-now"),
        pytest.param([build_rule("late"), build_rule("late")], False, id="its-rule-is-for-others-now"),
        pytest.param(
            [build_rule("early"), build_rule("late", rollout=WAVES)], False, id="a-rule-for-other-clusters-gets-waves"
        ),
    ],
)
def test_digest_covers_the_rules_of_the_cluster(rules: list[Mapping[str, Any]], same: bool) -> None:
    result = digest_policy_for_cluster(read_policies(build_policy(rules)), KEY, EAST)

    assert (result == digest_policy_for_cluster(read_policies(build_policy(TODAY)), KEY, EAST)) is same


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([], "", id="absent"),
        pytest.param([build_policy([{"nonsense": 1}])], INVALID_POLICY, id="invalid"),
        pytest.param([build_policy(TODAY), build_policy(TODAY)], DUPLICATE_POLICY, id="twice"),
    ],
)
def test_digest_of_an_unusable_policy_is_its_reason(documents: list[Mapping[str, Any]], expected: str) -> None:
    assert digest_policy_for_cluster(read_policies(*documents), KEY, EAST) == expected


def test_digest_does_not_depend_on_the_waves() -> None:
    values = {
        digest_policy_for_cluster(read_policies(build_policy([build_rule("early", rollout=WAVES | more)])), KEY, EAST)
        for more in ({}, {"soak": "1h"}, {"waves": [{"clusters": ["east"]}]})
    }

    assert len(values) == 1


rings = st.sampled_from(["early", "late", ""])
rules = st.lists(st.builds(build_rule, rings, st.sampled_from("abc")), max_size=3)


@given(before=rules, after=rules)
def test_equal_digests_give_equal_packages(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    was, now = read_policies(build_policy(before)), read_policies(build_policy(after))
    is_same = digest_policy_for_cluster(was, KEY, EAST) == digest_policy_for_cluster(now, KEY, EAST)

    assert not is_same or _summarize_package(override_package(FILES, was, EAST)) == _summarize_package(
        override_package(FILES, now, EAST)
    )


def _summarize_package(package: OverriddenPackage) -> tuple[Any, ...]:
    numbers = [
        matched_policy.rule_numbers for resource in package.resources for matched_policy in resource.matched_policies
    ]
    return package.files.id, package.findings, package.as_data(), package.rule_texts, numbers
