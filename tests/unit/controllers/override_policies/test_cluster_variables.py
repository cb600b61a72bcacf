"""Cluster variables: a text may ask for the name and labels of its cluster; other `${…}` is text (kubeadmiral 12)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from tests.unit.controllers.override_policies.override_world import (
    at,
    attached,
    codes,
    emit,
    error_codes,
    override,
    override_resource,
    policy,
    read,
    resource,
    rules_of,
    yaml,
)

NORTH = Cluster("north-1", {"region": "north", "replicas": "3", "site.example/zone": "b", "bad": "a_b"})
SHOP = yaml("""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop, annotations: {}}
spec:
  replicas: 1
  template: {spec: {containers: [{name: api, image: "hub.example/team/api:1"}]}}
""")


def annotated(text: str) -> dict[str, Any]:
    return {"jsonpatch": [{"operator": "set", "path": "/metadata/annotations/a", "value": text}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${cluster.name}", "north-1"),
        ("${ cluster.labels.region }", "north"),
        ("${cluster.labels['site.example/zone']}-${cluster.name}", "b-north-1"),
        ("a ${cluster.labels.region == 'north' ? '}{' : '\\''} b", "a }{ b"),
        ("${cluster.labels.exists(k, k == 'gpu') ? 'g' : 'c'}", "c"),
        ("${has(cluster.labels.gpu) ? 'g' : 'c'}", "c"),
        ("${int(cluster.labels.replicas)}", 3),
        ("${has(cluster.labels.gpu)}", False),
        ("$${cluster.name}", "${cluster.name}"),
        ("$${cluster.name} of ${cluster.name}", "${cluster.name} of north-1"),
        ("${HOME} $HOME $${x} ${DOMAIN:-cluster.local} ${clusterName} ${cluster}", None),
    ],
)
def test_a_text_with_variables(text: str, expected: Any) -> None:
    final_resource = override(SHOP, annotated(text), cluster=NORTH)

    assert error_codes(final_resource) == []
    result = at(final_resource.document.data, "/metadata/annotations/a")
    assert (result, type(result)) == ((text, str) if expected is None else (expected, type(expected)))


def test_every_overrider_takes_them() -> None:
    rule = yaml("""\
image: [{operations: [{imageComponent: Registry, value: "${cluster.labels.region}.example"}]}]
args: [{containerName: api, operator: append, value: ["--at=${cluster.name}"]}]
envs: [{containerName: api, operator: set, value: [{name: AT, value: "${cluster.name}"}]}]
labels: [{operator: set, value: {at: "${cluster.name}"}}]
jsonpatch: [{path: "/metadata/annotations/${cluster.name}", value: "x"}]
""")

    data = override(SHOP, rule, cluster=NORTH).document.data

    assert at(data, "/spec/template/spec/containers/0") == {
        "name": "api",
        "image": "north.example/team/api:1",
        "args": ["--at=north-1"],
        "env": [{"name": "AT", "value": "north-1"}],
    }
    assert data["metadata"]["labels"] == {"at": "north-1"}
    assert data["metadata"]["annotations"] == {"north-1": "x"}


@pytest.mark.parametrize(
    ("overriders", "text"),
    [
        pytest.param(
            annotated("${cluster.labels.gpu}"),
            "must contain variables that have a value for cluster north-1: ${cluster.labels.gpu}: no such key: gpu",
            id="no-such-label",
        ),
        pytest.param(annotated("a${int(cluster.labels.replicas)}"), "must be a string", id="a-number-inside"),
        pytest.param(annotated("${cluster.labels}"), "must be a string, a number or a boolean", id="a-mapping"),
        pytest.param(annotated("${int(cluster.labels.region)}"), "jsonpatch[0].value must", id="no-number"),
        pytest.param(
            {"labels": [{"operator": "set", "value": {"a": "${cluster.labels.region + ' x'}"}}]},
            "on north-1, spec.overrideRules[0].overriders.labels[0].value must be valid",
            id="no-label-value",
        ),
        pytest.param(
            {"labels": [{"operator": "set", "value": {"a": "${int(cluster.labels.replicas)}"}}]},
            "labels[0].value.a must be a string",
            id="a-number-as-label",
        ),
    ],
)
def test_what_a_cluster_cannot_answer_withholds_the_resource_there(overriders: dict[str, Any], text: str) -> None:
    final_resource = override(SHOP, overriders, cluster=NORTH)

    assert error_codes(final_resource) == ["ClusterVariableUnresolved"]
    assert text in final_resource.findings[0].message
    assert final_resource.findings[0].message.startswith("ClusterOverridePolicy/tuning: ")


def test_a_rule_for_other_clusters_asks_nothing() -> None:
    rules = [{"targetClusters": {"clusters": ["south"]}, "overriders": annotated("${cluster.labels.gpu}")}]

    final_resource = override_resource(resource(emit(attached(SHOP))), read(policy(rules)), NORTH)

    assert final_resource.findings == ()


@pytest.mark.parametrize(
    ("overriders", "code", "text"),
    [
        pytest.param(annotated("${cluster.foo}"), "PolicyInvalid", "no field 'foo'", id="unknown-field"),
        pytest.param(annotated("${cluster.name + }"), "PolicyInvalid", "must contain valid variables", id="no-CEL"),
        pytest.param(annotated("${cluster.name"), "PolicyInvalid", "closed by a brace", id="not-closed"),
        pytest.param(annotated("${cluster.name == '}"), "PolicyInvalid", "closed by a brace", id="open-string"),
        pytest.param(
            {"labels": [{"operator": "${cluster.name}", "value": {}}]}, "OperatorUnsupported", "", id="operator"
        ),
        pytest.param(
            {"labels": [{"value": {"a": "${cluster.name}", "b": "b c"}}]}, "PolicyInvalid", "b c", id="other-faults"
        ),
    ],
)
def test_what_can_be_told_is_told_when_the_policy_is_read(overriders: dict[str, Any], code: str, text: str) -> None:
    (finding,) = read(policy(rules_of(overriders))).findings

    assert codes([finding]) == [code]
    assert text in finding.message
