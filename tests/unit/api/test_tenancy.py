"""Tests of the model of Tenants: each mistake names the field and the next step."""

from typing import Any

import pytest

from reconciler.api.manifest import read_manifest
from reconciler.api.tenancy import Tenant


def read_errors(spec: dict[str, Any], name: str = "payments") -> tuple[str, ...]:
    data = {"apiVersion": "reconciler.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": name}, "spec": spec}
    return read_manifest(Tenant, data).error_texts


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        ({}, ["spec.directories"]),
        ({"directories": []}, ["spec.directories"]),
        ({"directories": ["a/**"], "allow": {"kindz": []}}, ["spec.allow.kindz", 'did you mean "kinds"']),
        ({"directories": ["a/**"], "allow": {"kinds": "all"}}, ["spec.allow.kinds", "list"]),
        ({"directories": ["a/**"], "allow": {"targets": {}}}, ["spec.allow.targets.selector"]),
        ({"directories": ["a/**"], "allow": {"functions": {"network": True}}}, ["network", "must be false"]),
        (
            {"directories": ["a/**"], "limits": {"maxDeletePercent": 101}},
            ["spec.limits.maxDeletePercent must be at most 100, but is 101"],
        ),
        ({"directories": ["a/**"], "limits": {"celSteps": 0}}, ["spec.limits.celSteps must be at least 1, but is 0"]),
        ({"directories": ["a/**"], "limits": {"packages": True}}, ["spec.limits.packages must be a whole number"]),
    ],
)
def test_mistake_in_the_spec(spec: dict[str, Any], texts: list[str]) -> None:
    (message,) = read_errors(spec)

    assert all(text in message for text in texts)


def test_name_without_dots() -> None:
    (message,) = read_errors({"directories": ["a/**"]}, name="a.b")

    assert "metadata.name" in message


def test_missing_lists_allow_nothing() -> None:
    data = {"apiVersion": "reconciler.dev/v1alpha1", "metadata": {"name": "a"}, "spec": {"directories": ["a/**"]}}
    tenant = read_manifest(Tenant, data).model

    assert tenant is not None
    assert tenant.spec.allow.model_dump() == {
        "upstreams": (), "targets": None, "kinds": (), "packages": (), "namespaces": (),
        "cluster_scoped_resources": (), "functions": {"images": (), "exec": (), "starlark": False, "network": False},
        "reference": (),
    }  # fmt: skip
