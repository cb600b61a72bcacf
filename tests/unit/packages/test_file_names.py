"""Tests of the file names of rendered resources: unique, and independent of the order of the resources."""

from __future__ import annotations

import pytest

from reconciler.krm.objects import ObjectKey
from reconciler.packages.file_names import assign_rendered_file_names


def build_key(text: str) -> ObjectKey:
    group, kind, namespace, name = text.split(" ")
    return ObjectKey("" if group == "core" else group, kind, "" if namespace == "-" else namespace, name)


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        pytest.param(["apps Deployment shop web"], ["deployment-web"], id="kind-and-name"),
        pytest.param(
            ["rbac ClusterRole - system:a_B"], ["clusterrole-system%3Aa%5F%42"], id="characters-that-are-escaped"
        ),
        pytest.param(
            ["rbac Role shop a", "rbac Role kube-system a", "rbac Role shop b"],
            ["role-shop-a", "role-kube-system-a", "role-b"],
            id="namespaces",
        ),
        pytest.param(
            ["core Service shop a", "knative Service shop a"],
            ["service-shop-a", "service.knative-shop-a"],
            id="namespace-and-group",
        ),
        pytest.param(
            ["x.y Role a b-c", "x.y Role a-b c", "x.y Role z b-c", "x.y Role z c"],
            ["role.x.y-a%2Fb-c", "role.x.y-a-b%2Fc", "role-z-b-c", "role-z-c"],
            id="ambiguous-hyphens",
        ),
        pytest.param(
            ["apiextensions.k8s.io CustomResourceDefinition - a.b.c"],
            ["crds/customresourcedefinition-a.b.c"],
            id="crds",
        ),
    ],
)
def test_file_names(keys: list[str], names: list[str]) -> None:
    expected = {build_key(key): f"{name}.yaml" for key, name in zip(keys, names, strict=True)}

    assert assign_rendered_file_names(map(build_key, keys)) == expected
    assert assign_rendered_file_names(map(build_key, reversed(keys))) == expected
