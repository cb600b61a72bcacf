"""Tests of the placement request of a resource: its annotation, its labels, and the errors in them."""

from __future__ import annotations

import pytest

from reconciler.controllers.placement.resources import check_placeable, has_placement, read_placement_request
from reconciler.krm.findings import select_errors
from tests.unit.controllers.placement.controller_world import (
    CLUSTER_POLICY_LABEL,
    POLICY_LABEL,
    build_catalog,
    build_config_map,
)

NAMES = "reconciler.dev/clusters"


def read_request(text: str) -> tuple[tuple[tuple[str, ...], str] | None, list[str]]:
    """Return the clusters and the policy, and the codes of the findings."""
    (config_object,) = build_catalog({"a.yaml": text}).objects.values()
    assert has_placement(config_object)
    assert check_placeable(config_object) is None
    marks, findings = read_placement_request(config_object)
    for finding in findings:
        assert finding.location.line
        assert finding.location.pointer.startswith("/metadata/")
    read_as = None if select_errors(findings) else (marks.clusters, marks.policy.reference if marks.policy else "")
    return read_as, [item.code for item in findings]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        pytest.param("a", ("a",), id="one"),
        pytest.param("' b , a,b'", ("b", "a"), id="blanks-are-trimmed"),
        pytest.param("'*'", ("*",), id="all"),
        pytest.param("'*, a'", ("*", "a"), id="all-and-one"),
        pytest.param("''", None, id="nothing"),
        pytest.param("' '", None, id="a-blank"),
        pytest.param("'a,,b'", None, id="an-empty-item"),
        pytest.param("'a,'", None, id="a-comma-too-many"),
        pytest.param("5", None, id="a-number"),
        pytest.param("null", None, id="null"),
        pytest.param("[a]", None, id="a-list"),
    ],
)
def test_annotation_names_the_clusters(value: str, names: tuple[str, ...] | None) -> None:
    assert read_request(build_config_map(clusters=value)) == (
        ((names, ""), []) if names else (None, ["PlacementInvalid"])
    )


HERE = "PropagationPolicy/ferry/p"
EVERYWHERE = "ClusterPropagationPolicy/_cluster/c"


@pytest.mark.parametrize(
    ("namespace", "kind", "labels", "policy", "codes"),
    [
        pytest.param("ferry", "v1 ConfigMap", {POLICY_LABEL: "p"}, HERE, [], id="in-its-namespace"),
        pytest.param("ferry", "v1 ConfigMap", {CLUSTER_POLICY_LABEL: "c"}, EVERYWHERE, [], id="of-the-cluster"),
        pytest.param(
            "ferry", "v1 ConfigMap", {POLICY_LABEL: "p", CLUSTER_POLICY_LABEL: "c"}, HERE, ["PropagationLabelIgnored"],
            id="of-both-the-namespaced-one-counts",
        ),
        pytest.param("", "v1 Namespace", {CLUSTER_POLICY_LABEL: "c"}, EVERYWHERE, [], id="a-cluster-scoped-kind"),
        pytest.param(
            "", "v1 Namespace", {POLICY_LABEL: "p"}, "", ["PropagationLabelIgnored"], id="which-a-namespaced-one-misses"
        ),
        pytest.param(
            "ferry", "v1 Namespace", {POLICY_LABEL: "p", CLUSTER_POLICY_LABEL: "c"}, EVERYWHERE,
            ["PropagationLabelIgnored"], id="whatever-namespace-it-states",
        ),
        pytest.param(
            "", "v1 ConfigMap", {POLICY_LABEL: "p"}, "", ["PropagationLabelIgnored"], id="a-resource-that-states-none"
        ),
        pytest.param("ferry", "my.dev/v1 Widget", {POLICY_LABEL: "p"}, HERE, [], id="an-unknown-kind"),
        pytest.param(
            "", "v1 Namespace", {POLICY_LABEL: "''"}, "", ["PropagationLabelIgnored"], id="with-an-empty-policy-name"
        ),
        pytest.param(
            "ferry", "v1 ConfigMap", {POLICY_LABEL: "p", CLUSTER_POLICY_LABEL: "7"}, HERE, ["PropagationLabelIgnored"],
            id="nor-that-of-one-beside-it",
        ),
        pytest.param("ferry", "v1 ConfigMap", {POLICY_LABEL: "''"}, None, ["PlacementInvalid"], id="no-name"),
        pytest.param("ferry", "v1 ConfigMap", {CLUSTER_POLICY_LABEL: "7"}, None, ["PlacementInvalid"], id="a-number"),
    ],
)  # fmt: skip
def test_label_names_the_policy(
    namespace: str, kind: str, labels: dict[str, str], policy: str | None, codes: list[str]
) -> None:
    read_as = None if policy is None else ((), policy)

    assert read_request(build_config_map("a", namespace, labels=labels, kind=kind)) == (read_as, codes)


@pytest.mark.parametrize(
    ("kind", "extra", "message"),
    [
        pytest.param("config.porch.kpt.dev/v1alpha1 PackageVariant", "", "a controller reads", id="a-package-variant"),
        pytest.param("core.kubeadmiral.io/v1alpha1 OverridePolicy", "", "a controller reads", id="a-policy"),
        pytest.param("core.kubeadmiral.io/v1alpha1 FederatedCluster", "", "a controller reads", id="a-cluster"),
        pytest.param("greenhouse.sap/v1alpha1 Plugin", "", "a controller reads", id="a-plugin"),
        pytest.param("platform/v1alpha1 Component", "", "a controller reads", id="a-component"),
        pytest.param("reconciler.dev/v1alpha1 Environment", "", "a controller reads", id="a-kind-of-the-reconciler"),
        pytest.param("v1 ConfigMapList", "items: []\n", "are not placed", id="a-list"),
        pytest.param(
            "core.kubeadmiral.io/v1alpha1 SchedulingProfile", "", "", id="a-kind-that-no-controller-reads-is-placed"
        ),
        pytest.param("kafka.strimzi.io/v1beta2 KafkaNodePool", "", "", id="kafka-is-placed"),
        pytest.param("my.dev/v1 ConfigMapList", "", "", id="a-kind-that-is-only-called-so"),
    ],
)
def test_kinds_that_are_not_placed(kind: str, extra: str, message: str) -> None:
    (config_object,) = build_catalog({"a.yaml": build_config_map(clusters="a", kind=kind) + extra}).objects.values()

    finding = check_placeable(config_object)

    assert bool(finding) == bool(message)
    if finding:
        assert (finding.code, finding.severity, finding.location.line) == ("NotPlaced", "warning", 6)
        assert message in finding.message


def test_resource_without_request_has_no_placement() -> None:
    (config_object,) = build_catalog({"a.yaml": build_config_map(labels={"app": "a"})}).objects.values()

    assert not has_placement(config_object)
