"""Tests of the status of propagation policies: number of resources and clusters, or the code of the error."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.controllers.placement.controller_world import (
    FLEET,
    build_cluster,
    build_cluster_policy,
    build_config_map,
    build_policy,
    build_policy_label,
    build_single_file,
    run_controller,
)


@pytest.mark.parametrize(
    ("texts", "ready", "fields"),
    [
        pytest.param(
            [build_config_map(n, labels=build_policy_label()) for n in "ab"] + [build_policy("{clusterSelector: {zone: e}}")],
            ("True", "Placed"), {"clusters": ["east"], "clusterCount": 1, "resources": 2}, id="placed",
        ),
        pytest.param(
            [build_cluster_policy("{placement: [{cluster: moon}]}")], ("True", "Placed"),
            {"clusters": [], "clusterCount": 0, "resources": 0}, id="nothing-to-place",
        ),
        pytest.param([build_policy("{placement: 5}")], ("False", "PropagationPolicyInvalid"), {}, id="invalid"),
    ],
)  # fmt: skip
def test_status_of_policies(texts: list[str], ready: tuple[str, str], fields: Mapping[str, object]) -> None:
    (status,) = run_controller(build_single_file(*texts)).statuses

    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Ready", *ready)
    assert status.fields == fields


def test_long_cluster_list_is_truncated_with_a_count() -> None:
    fleet = {f"{number}.yaml": build_cluster(f"edge-{number:02}") for number in range(30)}

    (status,) = run_controller({"p.yaml": build_policy()}, fleet=fleet).statuses

    assert status.fields["clusters"] == [f"edge-{number:02}" for number in range(20)]
    assert status.fields["clusterCount"] == 30


def test_policies_are_sorted_by_name() -> None:
    texts = {"a.yaml": build_policy(name="b"), "b.yaml": build_policy(name="a"), "c.yaml": build_cluster_policy()}

    statuses = run_controller(texts, fleet=FLEET).statuses

    assert [f"{config_status.key.kind} {config_status.key.name}" for config_status in statuses] == [
        "ClusterPropagationPolicy edge", "PropagationPolicy a", "PropagationPolicy b",
    ]  # fmt: skip
