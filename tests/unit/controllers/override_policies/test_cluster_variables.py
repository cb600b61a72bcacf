"""Tests of cluster variables: name and labels of the cluster in texts. Other `${…}` texts stay unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from tests.unit.controllers.override_policies.override_world import (
    attach_policy,
    build_policy,
    build_rules,
    emit,
    get_at_pointer,
    list_codes,
    list_error_codes,
    override_data,
    override_resource,
    parse_document,
    read_policies,
    read_resource,
)

NORTH = Cluster("north-1", {"region": "north", "replicas": "3", "site.example/zone": "b", "bad": "a_b"})
SHOP = parse_document("""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop, annotations: {}}
spec:
  replicas: 1
  template: {spec: {containers: [{name: api, image: "hub.example/team/api:1"}]}}
""")


def build_annotation_overrider(text: str) -> dict[str, Any]:
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
def test_variables_in_a_text_are_replaced(text: str, expected: Any) -> None:
    final_resource = override_data(SHOP, build_annotation_overrider(text), cluster=NORTH)

    assert list_error_codes(final_resource) == []
    result = get_at_pointer(final_resource.document.data, "/metadata/annotations/a")
    assert (result, type(result)) == ((text, str) if expected is None else (expected, type(expected)))


def test_variables_work_in_all_overriders() -> None:
    rule = parse_document("""\
image: [{operations: [{imageComponent: Registry, value: "${cluster.labels.region}.example"}]}]
args: [{containerName: api, operator: append, value: ["--at=${cluster.name}"]}]
envs: [{containerName: api, operator: set, value: [{name: AT, value: "${cluster.name}"}]}]
labels: [{operator: set, value: {at: "${cluster.name}"}}]
jsonpatch: [{path: "/metadata/annotations/${cluster.name}", value: "x"}]
""")

    data = override_data(SHOP, rule, cluster=NORTH).document.data

    assert get_at_pointer(data, "/spec/template/spec/containers/0") == {
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
            build_annotation_overrider("${cluster.labels.gpu}"),
            'contains ${cluster.labels.gpu}, but on cluster "north-1" this expression cannot be evaluated. CEL reports: "no such key: gpu',
            id="no-such-label",
        ),
        pytest.param(
            build_annotation_overrider("a${int(cluster.labels.replicas)}"), "must be a string", id="a-number-inside"
        ),
        pytest.param(
            build_annotation_overrider("${cluster.labels}"), "must be a string, a number or a boolean", id="a-mapping"
        ),
        pytest.param(
            build_annotation_overrider("${int(cluster.labels.region)}"), "jsonpatch[0].value contains", id="no-number"
        ),
        pytest.param(
            {"labels": [{"operator": "set", "value": {"a": "${cluster.labels.region + ' x'}"}}]},
            'for cluster "north-1", spec.overrideRules[0].overriders.labels[0].value is invalid',
            id="no-label-value",
        ),
        pytest.param(
            {"labels": [{"operator": "set", "value": {"a": "${int(cluster.labels.replicas)}"}}]},
            "labels[0].value.a must be a string",
            id="a-number-as-label",
        ),
    ],
)
def test_unresolved_variable_blocks_the_resource(overriders: dict[str, Any], text: str) -> None:
    final_resource = override_data(SHOP, overriders, cluster=NORTH)

    assert list_error_codes(final_resource) == ["ClusterVariableUnresolved"]
    assert text in final_resource.findings[0].message
    assert final_resource.findings[0].message.startswith("ClusterOverridePolicy/tuning: ")


def test_rule_for_other_clusters_is_not_evaluated() -> None:
    rules = [
        {"targetClusters": {"clusters": ["south"]}, "overriders": build_annotation_overrider("${cluster.labels.gpu}")}
    ]

    final_resource = override_resource(
        read_resource(emit(attach_policy(SHOP))), read_policies(build_policy(rules)), NORTH
    )

    assert final_resource.findings == ()


@pytest.mark.parametrize(
    ("overriders", "code", "text"),
    [
        pytest.param(
            build_annotation_overrider("${cluster.foo}"), "PolicyInvalid", "no field 'foo'", id="unknown-field"
        ),
        pytest.param(
            build_annotation_overrider("${cluster.name + }"),
            "PolicyInvalid",
            "this expression cannot be evaluated",
            id="no-CEL",
        ),
        pytest.param(
            build_annotation_overrider("${cluster.name"), "PolicyInvalid", "has no closing brace", id="not-closed"
        ),
        pytest.param(
            build_annotation_overrider("${cluster.name == '}"),
            "PolicyInvalid",
            "has no closing brace",
            id="open-string",
        ),
        pytest.param(
            {"labels": [{"operator": "${cluster.name}", "value": {}}]}, "OperatorUnsupported", "", id="operator"
        ),
        pytest.param(
            {"labels": [{"value": {"a": "${cluster.name}", "b": "b c"}}]}, "PolicyInvalid", "b c", id="other-errors"
        ),
    ],
)
def test_invalid_expression_is_reported_when_the_policy_is_read(
    overriders: dict[str, Any], code: str, text: str
) -> None:
    (finding,) = read_policies(build_policy(build_rules(overriders))).findings

    assert list_codes([finding]) == [code]
    assert text in finding.message
