"""Tests of depends-on entries and the resources that they refer to."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.name_references import Dependency, parse_dependency
from tests.unit.packages.builders import parse_items


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param("apps/namespaces/ns/Deployment/a", Dependency("apps", "ns", "Deployment", "a"), id="namespaced"),
        pytest.param("/namespaces/ns/Service/a", Dependency("", "ns", "Service", "a"), id="core-group"),
        pytest.param("rbac.k/ClusterRole/a", Dependency("rbac.k", "", "ClusterRole", "a"), id="cluster"),
        pytest.param(" a/B/c ", Dependency("a", "", "B", "c"), id="blanks-around"),
        pytest.param("a/b", None, id="too-short"),
        pytest.param("a/b/c/d/e/f", None, id="too-long"),
    ],
)
def test_parse_dependency(entry: str, expected: Dependency | None) -> None:
    dependency = parse_dependency(entry)

    assert dependency == expected
    assert dependency is None or str(dependency) == entry.strip()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param("apps/namespaces/default/Deployment/a", True, id="no-namespace-is-default"),
        pytest.param("apps/namespaces/other/Deployment/a", False, id="another-namespace"),
        pytest.param("apps/Deployment/a", True, id="no-namespace"),
        pytest.param("/namespaces/default/Deployment/a", False, id="another-group"),
    ],
)
def test_entry_refers_to_a_resource(entry: str, expected: bool) -> None:
    item = parse_items("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n")[0]
    dependency = parse_dependency(entry)

    assert dependency is not None
    assert dependency.refers_to(item) is expected
