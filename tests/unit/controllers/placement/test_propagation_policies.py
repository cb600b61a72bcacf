"""Tests of the propagation policy reader: allowed fields, fields without effect, and errors with their lines."""

from __future__ import annotations

import pytest

from reconciler.controllers.placement.model import PropagationPolicy
from reconciler.controllers.placement.propagation_policies import read_propagation_policies, read_propagation_policy
from reconciler.krm.findings import Finding
from tests.unit.controllers.placement.controller_world import build_catalog, build_cluster_policy, build_policy


def read(text: str) -> tuple[PropagationPolicy | None, tuple[Finding, ...]]:
    (config_object,) = build_catalog({"policy.yaml": text}).objects.values()
    return read_propagation_policy(config_object)


def read_valid_policy(text: str) -> PropagationPolicy:
    propagation_policy, findings = read(text)
    assert findings == ()
    assert propagation_policy is not None
    return propagation_policy


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        pytest.param(build_policy(), (), id="nothing-means-every-cluster"),
        pytest.param(build_policy("{placement: [{cluster: b}, {cluster: a}]}"), ("b", "a"), id="names"),
        pytest.param(build_policy("{placement: []}"), (), id="no-names-are-no-restriction"),
        pytest.param(build_policy("{schedulingMode: Duplicate}"), (), id="the-mode-that-is-in-effect"),
        pytest.param(build_policy("{schedulingMode: null, maxClusters: null}"), (), id="null-is-nothing"),
        pytest.param(build_cluster_policy("{placement: [{cluster: a}]}"), ("a",), id="of-the-cluster"),
    ],
)
def test_targets_of_a_policy(text: str, clusters: tuple[str, ...]) -> None:
    assert read_valid_policy(text).targets.clusters == clusters


def test_selectors_are_the_same_as_in_override_rules() -> None:
    targets = read_valid_policy(
        build_policy("{clusterSelector: {a: b}, clusterAffinity: [{matchExpressions: [{key: a, operator: Exists}]}]}")
    ).targets

    assert targets.selector == {"a": "b"}
    assert targets.affinity[0].match_expressions[0].operator == "Exists"


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        pytest.param("schedulingMode: Divide", "schedulingMode", '"Divide"', id="divide"),
        pytest.param("schedulingProfile: busy", "schedulingProfile", '"busy"', id="profile"),
        pytest.param("stickyCluster: true", "stickyCluster", "true", id="sticky"),
        pytest.param("maxClusters: 3", "maxClusters", "3", id="max"),
        pytest.param("replicasStrategy: spread", "replicasStrategy", '"spread"', id="replicas"),
        pytest.param("disableFollowerScheduling: false", "disableFollowerScheduling", "false", id="followers"),
        pytest.param(
            "tolerations: [{key: a, operator: Equal, value: b, effect: NoSchedule, tolerationSeconds: 4}]",
            "tolerations", '[{"key":"a"', id="tolerations",
        ),
        pytest.param(
            "autoMigration: {when: {podUnschedulableFor: 1m}, keepUnschedulableReplicas: true}",
            "autoMigration", '{"when":', id="migration",
        ),
        pytest.param(
            "replicaRescheduling: {avoidDisruption: true}", "replicaRescheduling", '{"avoid', id="old-rescheduling"
        ),
        pytest.param(
            "reschedulePolicy: {disableRescheduling: true, replicaRescheduling: {avoidDisruption: true},"
            " rescheduleWhen: {policyContentChanged: true, clusterJoined: true, clusterLabelsChanged: true,"
            " clusterAPIResourcesChanged: true}}",
            "reschedulePolicy", '{"disable', id="rescheduling",
        ),
        pytest.param(
            "placement: [{cluster: a}, {cluster: b,"
            " preferences: {minReplicas: 1, maxReplicas: 2, weight: 3, priority: 0}}]",
            "placement[1].preferences", '{"minReplicas":1', id="preferences",
        ),
    ],
)  # fmt: skip
def test_scheduler_field_without_effect_is_reported(spec: str, field: str, value: str) -> None:
    propagation_policy, findings = read(build_policy(f"\n  {spec}"))

    assert propagation_policy is not None
    (finding,) = findings
    assert (finding.code, finding.severity) == ("NotInEffect", "warning")
    assert finding.message.startswith(f"spec.{field} is {value}")
    assert str(finding.location).startswith("policy.yaml:5")


def test_each_field_without_effect_is_reported_once() -> None:
    _, findings = read(build_policy("{schedulingMode: Divide, maxClusters: 1, stickyCluster: true}"))

    assert sorted(finding.location.pointer for finding in findings) == [
        "/spec/maxClusters", "/spec/schedulingMode", "/spec/stickyCluster",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param(
            build_policy(kind="ClusterPropagationPolicy"), "PropagationPolicyInvalid", "must be absent", id="a-namespace"
        ),
        pytest.param(build_policy("null"), "PropagationPolicyInvalid", "spec must be set", id="no-spec"),
        pytest.param(build_policy("[]"), "PropagationPolicyInvalid", "spec must be a mapping, but is []", id="a-list"),
        pytest.param(
            build_policy().replace("v1alpha1", "v1"), "PropagationPolicyInvalid", "must be \"core.kubeadmiral.io/v1alpha1\", but is",
            id="another-version",
        ),
        pytest.param(
            build_policy("{clusterSelectors: {a: b}}"), "PropagationPolicyInvalid", "did you mean \"clusterSelector\"?",
            id="a-typo",
        ),
        pytest.param(
            build_policy("{excludeClusters: [a]}"), "PropagationPolicyInvalid", "excludeClusters is an unknown",
            id="a-field-of-override-rules",
        ),
        pytest.param(
            build_policy("{placement: [{cluster: a, prefrences: {}}]}"), "PropagationPolicyInvalid",
            "spec.placement[0].prefrences is an unknown field; allowed fields: cluster, preferences; did you mean \"preferences\"?",
            id="a-typo-below",
        ),
        pytest.param(
            build_policy("{placement: [{preferences: {}}]}"), "PropagationPolicyInvalid", "spec.placement[0].cluster must be",
            id="a-placement-without-cluster",
        ),
        pytest.param(
            build_policy("{placement: [a]}"), "PropagationPolicyInvalid", 'spec.placement[0] must be a mapping, but is "a"',
            id="names-alone",
        ),
        pytest.param(
            build_policy("{placement: [{cluster: a, preferences: {wait: 1}}]}"), "PropagationPolicyInvalid",
            "preferences.wait is an unknown", id="an-unknown-field-among-ignored-fields",
        ),
        pytest.param(
            build_policy("{tolerations: [{keys: a}]}"), "PropagationPolicyInvalid", "tolerations[0].keys is an unknown",
            id="nor-in-a-list",
        ),
        pytest.param(
            build_policy("{reschedulePolicy: {rescheduleWhen: {joined: true}}}"), "PropagationPolicyInvalid",
            "rescheduleWhen.joined is an unknown", id="nor-deeper",
        ),
        pytest.param(
            build_policy("{schedulingMode: Copy}"), "PropagationPolicyInvalid", "must be \"Duplicate\" or \"Divide\", bu",
            id="no-mode",
        ),
        pytest.param(
            build_policy("{clusterAffinity: [{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]}"), "SelectorInvalid",
            "must be one 64-bit integer", id="no-number",
        ),
    ],
)  # fmt: skip
def test_invalid_policy_is_refused(text: str, code: str, message: str) -> None:
    propagation_policy, findings = read(text)

    assert propagation_policy is None
    (finding,) = findings
    assert (finding.code, finding.severity, finding.location.file) == (code, "error", "policy.yaml")
    assert message in finding.message


def test_invalid_policy_hides_a_valid_policy_with_the_same_name() -> None:
    texts = {"a.yaml": build_cluster_policy(), "b.yaml": build_policy(kind="ClusterPropagationPolicy")}

    propagation_policies = read_propagation_policies(build_catalog(texts))

    assert not propagation_policies.valid
    assert [key.reference for key in propagation_policies.invalid] == ["ClusterPropagationPolicy/_cluster/edge"]
