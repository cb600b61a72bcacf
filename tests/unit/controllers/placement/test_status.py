"""What policies are told: where they place how much, or the code of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.controllers.placement.placement_world import (
    FLEET,
    by_policy,
    cluster,
    cluster_policy,
    config_map,
    one_file,
    policy,
    room,
)


@pytest.mark.parametrize(
    ("texts", "ready", "fields"),
    [
        pytest.param(
            [config_map(n, labels=by_policy()) for n in "ab"] + [policy("{clusterSelector: {zone: e}}")],
            ("True", "Placed"), {"clusters": ["east"], "clusterCount": 1, "resources": 2}, id="placed",
        ),
        pytest.param(
            [cluster_policy("{placement: [{cluster: moon}]}")], ("True", "Placed"),
            {"clusters": [], "clusterCount": 0, "resources": 0}, id="nothing-to-place",
        ),
        pytest.param([policy("{placement: 5}")], ("False", "PropagationPolicyInvalid"), {}, id="invalid"),
    ],
)  # fmt: skip
def test_status(texts: list[str], ready: tuple[str, str], fields: Mapping[str, object]) -> None:
    (status,) = room(one_file(*texts)).statuses

    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Ready", *ready)
    assert status.fields == fields


def test_many_clusters_are_counted() -> None:
    fleet = {f"{number}.yaml": cluster(f"edge-{number:02}") for number in range(30)}

    (status,) = room({"p.yaml": policy()}, fleet=fleet).statuses

    assert status.fields["clusters"] == [f"edge-{number:02}" for number in range(20)]
    assert status.fields["clusterCount"] == 30


def test_policies_are_told_in_the_order_of_their_names() -> None:
    texts = {"a.yaml": policy(name="b"), "b.yaml": policy(name="a"), "c.yaml": cluster_policy()}

    statuses = room(texts, fleet=FLEET).statuses

    assert [f"{config_status.key.kind} {config_status.key.name}" for config_status in statuses] == [
        "ClusterPropagationPolicy edge", "PropagationPolicy a", "PropagationPolicy b",
    ]  # fmt: skip
