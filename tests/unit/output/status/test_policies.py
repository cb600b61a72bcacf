"""What the status branch says of override policies, and of owners that have a package on many clusters."""

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
from tests.unit.output.world import destination_plan, draft, fleet, key, told_of, variant

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


def using(name: str, used: dict[str, Any] | None, **fields: Any) -> TargetPlan:
    """Return the plan of a cluster with one package that uses a policy so."""
    result = draft({}, {"a": "x"}, desired_variant=variant(repository=name))
    assert isinstance(result, Draft)
    record = replace(result.record, policy_usage={NAME: used} if used else {}, **fields)
    return destination_plan(replace(result, record=record), name=name)


def plan(*plans: TargetPlan, **fields: Any) -> FleetPlan:
    return replace(fleet(*plans), **{"policies": POLICIES, **fields})


def told(fleet_plan: FleetPlan) -> dict[str, Any]:
    (status,) = build_policy_statuses(fleet_plan)
    return {"reason": status.conditions[0].reason, **status.fields}


WEB = {"resources": {"apps/Deployment": ["web.yaml Deployment/shop/web"]}, "rules": [0]}


def test_a_policy_that_is_used() -> None:
    both = plan(using("eu-1", WEB), using("eu-2", {**WEB, "rules": [0, 1]}))

    assert told(both) == {
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
        pytest.param(plan(using("eu-1", None)), "PolicyUnused", id="unused"),
        pytest.param(plan(using("eu-1", WEB, is_owned=False)), "PolicyUnused", id="by-what-is-gone"),
        pytest.param(plan(using("eu-1", {**WEB, "failed": ["a"]})), "ApplyOverridesFailed", id="and-fails"),
        pytest.param(plan(policies=INVALID), "PolicyInvalid", id="invalid"),
    ],
)
def test_how_a_policy_is(fleet_plan: FleetPlan, reason: str) -> None:
    assert told(fleet_plan)["reason"] == reason


def test_a_rule_that_waits_says_for_what() -> None:
    rule = parse_rule_id(f"{NAME}#replicas")
    assert rule
    waiting = plan(
        using("eu-1", WEB), rollout_gates={rule: RolloutGate(frozenset({"eu-1"}), None, {1: "waits for eu-1"})}
    )

    assert told(waiting)["rules"][0]["waits"] == [{"wave": 1, "why": "waits for eu-1"}]


def test_many_clusters_are_counted() -> None:
    many = plan(*(using(f"eu-{number:02}", WEB) for number in range(30)))

    assert (len(told(many)["rules"][0]["clusters"]), told(many)["rules"][0]["clustersCount"]) == (20, 30)


# an owner with a package on every cluster


READY, NOT_READY = Condition("Ready", "True", "NoErrors", "fine"), Condition("Ready", "False", "Error", "broken")
GOING, STALLED = Condition("Stalled", "False", "Valid", "fine"), Condition("Stalled", "True", "Exists", "in the way")
PLACEMENT = key("Placement", "shop", "", "reconciler.dev")


def status(*conditions: Condition, **fields: Any) -> ObjectStatus:
    return ObjectStatus(PLACEMENT, "reconciler.dev/v1alpha1", conditions, fields)


def test_an_owner_is_as_well_as_its_worst_cluster() -> None:
    object_status = merge_statuses([status(READY, GOING), status(NOT_READY, STALLED), status(NOT_READY, GOING)])

    assert [(condition.status, condition.reason, condition.message) for condition in object_status.conditions] == [
        ("False", "Error", "2 of 3 clusters: broken"),
        ("True", "Exists", "1 of 3 clusters: in the way"),
    ]


def test_what_clusters_say_alike_is_said_once() -> None:
    object_status = merge_statuses(
        [status(READY, targets=["a"], pending=["x"]), status(READY, targets=["b"], pending=["x"])]
    )

    assert object_status.conditions == (READY,)
    assert object_status.fields == {"targets": ["a", "b"], "pending": ["x"]}


def test_only_owners_that_spread_are_united() -> None:
    spread = [replace(variant(repository=name), is_per_cluster=True) for name in ("eu-1", "eu-2")]
    both = fleet(
        *(
            destination_plan(draft({}, {"a": name}, desired_variant=item), name=name)
            for item, name in zip(spread, ("eu-1", "eu-2"), strict=True)
        )
    )

    targets = told_of(both)[spread[0].owner.key].fields["downstreamTargets"]

    assert [target["name"].partition(".")[0] for target in targets] == ["eu-1", "eu-2"]
