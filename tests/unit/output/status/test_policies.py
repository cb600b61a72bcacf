"""Tests of the status of override policies, and of owners that have a package on many clusters."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.override_policies.read_policies import read_override_policies
from reconciler.controllers.override_policies.rollout import RolloutGate, parse_rule_id
from reconciler.krm.objects import Condition
from reconciler.output.status.config_statuses import build_policy_statuses
from reconciler.output.status.owner_statuses import merge_statuses
from reconciler.output.status.target_statuses import ObjectStatus
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import Draft
from tests.unit.output.builders import (
    build_draft,
    build_fleet_plan,
    build_key,
    build_target_plan,
    build_variant,
    list_object_statuses,
)

POLICY = """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: OverridePolicy
metadata: {name: sizing, namespace: shop}
spec:
  overrideRules:
  - {name: replicas, overriders: {}}
  - {overriders: {}}
"""
POLICIES = read_override_policies(read_catalog(FileTree({"p.yaml": File(POLICY.encode())})))
INVALID = read_override_policies(
    read_catalog(FileTree({"p.yaml": File(POLICY.replace("overriders: {}", "overrider: {}").encode())}))
)
NAME = "OverridePolicy/shop/sizing"


def build_policy_usage(name: str, used: dict[str, Any] | None, **fields: Any) -> TargetPlan:
    """Return the plan of a cluster with one package that has this policy usage."""
    result = build_draft({}, {"a": "x"}, desired_variant=build_variant(repository=name))
    assert isinstance(result, Draft)
    record = replace(result.record, policy_usage={NAME: used} if used else {}, **fields)
    return build_target_plan(replace(result, record=record), name=name)


def build_plan(*plans: TargetPlan, **fields: Any) -> FleetPlan:
    return replace(build_fleet_plan(*plans), **{"policies": POLICIES, **fields})


def read_policy_status(fleet_plan: FleetPlan) -> dict[str, Any]:
    (status,) = build_policy_statuses(fleet_plan)
    return {"reason": status.conditions[0].reason, **status.fields}


WEB = {"resources": {"apps/Deployment": ["web.yaml Deployment/shop/web"]}, "rules": [0]}


def test_used_policy_lists_resources_and_clusters_of_each_rule() -> None:
    both = build_plan(build_policy_usage("eu-1", WEB), build_policy_usage("eu-2", {**WEB, "rules": [0, 1]}))

    assert read_policy_status(both) == {
        "reason": "InUse",
        "refCount": 1,
        "typedRefCount": [{"group": "apps", "kind": "Deployment", "count": 1}],
        "rules": [
            {"rule": "replicas", "clusters": ["eu-1", "eu-2"], "clustersCount": 2},
            {"rule": "1", "clusters": ["eu-2"], "clustersCount": 1},
        ],
    }


@pytest.mark.parametrize(
    ("fleet_plan", "reason"),
    [
        pytest.param(build_plan(build_policy_usage("eu-1", None)), "PolicyUnused", id="unused"),
        pytest.param(build_plan(build_policy_usage("eu-1", WEB, is_owned=False)), "PolicyUnused", id="by-what-is-gone"),
        pytest.param(
            build_plan(build_policy_usage("eu-1", {**WEB, "failed": ["a"]})), "ApplyOverridesFailed", id="and-fails"
        ),
        pytest.param(build_plan(policies=INVALID), "PolicyInvalid", id="invalid"),
    ],
)
def test_reason_of_a_policy(fleet_plan: FleetPlan, reason: str) -> None:
    assert read_policy_status(fleet_plan)["reason"] == reason


def test_waiting_rule_shows_its_reason() -> None:
    rule = parse_rule_id(f"{NAME}#replicas")
    assert rule
    waiting = build_plan(
        build_policy_usage("eu-1", WEB),
        rollout_gates={rule: RolloutGate(frozenset({"eu-1"}), None, {1: "waits for eu-1"})},
    )

    assert read_policy_status(waiting)["rules"][0]["waits"] == [{"wave": 1, "why": "waits for eu-1"}]


def test_long_list_of_clusters_is_limited_and_counted() -> None:
    many = build_plan(*(build_policy_usage(f"eu-{number:02}", WEB) for number in range(30)))

    assert (
        len(read_policy_status(many)["rules"][0]["clusters"]),
        read_policy_status(many)["rules"][0]["clustersCount"],
    ) == (20, 30)


# Owners with a package on every cluster


READY, NOT_READY = Condition("Ready", "True", "NoErrors", "fine"), Condition("Ready", "False", "Error", "broken")
GOING, STALLED = Condition("Stalled", "False", "Valid", "fine"), Condition("Stalled", "True", "Exists", "in the way")
PLACEMENT = build_key("Placement", "shop", "", "reconciler.dev")


def build_status(*conditions: Condition, **fields: Any) -> ObjectStatus:
    return ObjectStatus(PLACEMENT, "reconciler.dev/v1alpha1", conditions, fields)


def test_merged_status_shows_the_worst_cluster() -> None:
    object_status = merge_statuses(
        [build_status(READY, GOING), build_status(NOT_READY, STALLED), build_status(NOT_READY, GOING)]
    )

    assert [(condition.status, condition.reason, condition.message) for condition in object_status.conditions] == [
        ("False", "Error", "2 of 3 clusters: broken"),
        ("True", "Exists", "1 of 3 clusters: in the way"),
    ]


def test_equal_statuses_are_merged() -> None:
    object_status = merge_statuses(
        [build_status(READY, targets=["a"], pending=["x"]), build_status(READY, targets=["b"], pending=["x"])]
    )

    assert object_status.conditions == (READY,)
    assert object_status.fields == {"targets": ["a", "b"], "pending": ["x"]}


def test_only_statuses_of_owners_with_many_clusters_are_merged() -> None:
    spread = [replace(build_variant(repository=name), is_per_cluster=True) for name in ("eu-1", "eu-2")]
    both = build_fleet_plan(
        *(
            build_target_plan(build_draft({}, {"a": name}, desired_variant=item), name=name)
            for item, name in zip(spread, ("eu-1", "eu-2"), strict=True)
        )
    )

    targets = list_object_statuses(both)[spread[0].owner.key].fields["downstreamTargets"]

    assert [target["name"].partition(".")[0] for target in targets] == ["eu-1", "eu-2"]
