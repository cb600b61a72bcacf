"""Tests of overrides for many clusters: clusters with equal rules share one result, and the results stay correct."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.package_overrides import PackageOverrider
from reconciler.controllers.override_policies.read_policies import build_override_policy_key
from reconciler.controllers.override_policies.rollout import RuleId
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
