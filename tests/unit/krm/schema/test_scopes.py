"""Tests of the scope of kinds: namespaced or cluster-wide."""

from __future__ import annotations

import pytest

from reconciler.krm.schema import KindScope, find_kind_scope


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        pytest.param("", "Namespace", "cluster", id="namespace"),
        pytest.param("", "Service", "namespaced", id="core"),
        pytest.param("apps", "Deployment", "namespaced", id="group"),
        pytest.param("extensions", "Deployment", "namespaced", id="the-group-it-came-from"),
        pytest.param("autoscaling", "HorizontalPodAutoscaler", "namespaced", id="autoscaler"),
        pytest.param("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "cluster", id="newer-than-the-table"),
        pytest.param("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "cluster", id="its-binding"),
        pytest.param("networking.k8s.io", "IngressClass", "cluster", id="one-group-cluster"),
        pytest.param("networking.k8s.io", "Ingress", "namespaced", id="one-group-namespaced"),
        pytest.param("example.org", "Deployment", None, id="custom-resource"),
        pytest.param("", "Deployment", None, id="group-missing"),
    ],
)
def test_find_kind_scope(group: str, kind: str, expected: KindScope | None) -> None:
    assert find_kind_scope(group, kind) == expected
