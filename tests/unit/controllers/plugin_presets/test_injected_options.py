"""Tests of injected options: their names, their order, and the variables of expressions."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.controllers.plugin_presets.injected_options import (
    build_expression_variables,
    is_removed_option,
    list_injected_options,
)

FULL: dict[str, Any] = {
    "organization": "acme",
    "cluster": "edge-01",
    "cluster_labels": {
        "tier": "edge",
        "metadata.greenhouse.sap/zone": "b",
        "metadata.greenhouse.sap/region": "north-2",
        "greenhouse.sap/owned-by": "team-of-the-cluster",
    },
    "owner": "logging",
    "base_domain": "example.test",
}


def test_all_options_are_injected_in_order() -> None:
    assert [
        (injected_option.name, injected_option.value, injected_option.label)
        for injected_option in list_injected_options(**FULL)
    ] == [
        ("global.greenhouse.organizationName", "acme", ""),
        ("global.greenhouse.clusterName", "edge-01", ""),
        ("global.greenhouse.metadata.region", "north-2", "metadata.greenhouse.sap/region"),
        ("global.greenhouse.metadata.zone", "b", "metadata.greenhouse.sap/zone"),
        ("global.greenhouse.baseDomain", "example.test", ""),
        ("global.greenhouse.ownedBy", "logging", "greenhouse.sap/owned-by"),
    ]


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        pytest.param({"cluster": ""}, "clusterName", None, id="no-cluster"),
        pytest.param({"cluster": ""}, "metadata.region", None, id="no-metadata-without-a-cluster"),
        pytest.param({"cluster_labels": {}}, "clusterName", "edge-01", id="cluster-that-does-not-exist-has-its-name"),
        pytest.param({"cluster_labels": {}}, "metadata.region", None, id="and-no-metadata"),
        pytest.param({"base_domain": ""}, "baseDomain", None, id="no-setting-no-domain"),
        pytest.param({"owner": ""}, "ownedBy", None, id="no-owner"),
        pytest.param(
            {"cluster_labels": {"metadata.greenhouse.sap/ring": ""}}, "metadata.ring", "", id="empty-metadata-is-there"
        ),
        pytest.param(
            {"cluster_labels": {"metadata.greenhouse.sap/net.v4": "on"}}, "metadata.net.v4", "on", id="dot-nests"
        ),
        pytest.param(
            {"cluster_labels": {"metadata.greenhouse.sap/a[99999],b=c": "x"}},
            r"metadata.a\[99999]\,b\=c",
            "x",
            id="odd-label-stays-one-key",
        ),
    ],
)
def test_options_depend_on_the_context(change: dict[str, Any], name: str, expected: str | None) -> None:
    mapping = {
        injected_option.name: injected_option.value for injected_option in list_injected_options(**{**FULL, **change})
    }

    assert mapping.get(f"global.greenhouse.{name}") == expected


def test_label_that_equals_the_prefix_is_no_metadata() -> None:
    options = list_injected_options(**{**FULL, "cluster_labels": {"metadata.greenhouse.sap/": "x"}})

    assert not [injected_option for injected_option in options if "metadata" in injected_option.name]


def test_order_of_labels_does_not_matter() -> None:
    reverse = dict(sorted(FULL["cluster_labels"].items(), reverse=True))

    assert list_injected_options(**{**FULL, "cluster_labels": reverse}) == list_injected_options(**FULL)


def test_variables_of_expressions() -> None:
    labels = {"metadata.greenhouse.sap/net.v4": "10.0.0.0", "metadata.greenhouse.sap/net.v6": "fd00"}
    variables = build_expression_variables(list_injected_options(**{**FULL, "cluster_labels": labels}))

    assert variables == {
        "global": {
            "greenhouse": {
                "organizationName": "acme",
                "clusterName": "edge-01",
                "metadata": {"net": {"v4": "10.0.0.0", "v6": "fd00"}},
                "baseDomain": "example.test",
                "ownedBy": "logging",
            }
        }
    }


def test_conflicting_metadata_labels_are_reported_as_options() -> None:
    labels = {"metadata.greenhouse.sap/net": "a", "metadata.greenhouse.sap/net.v4": "b"}
    entries = list_injected_options(**{**FULL, "cluster_labels": labels})

    assert [
        (path_conflict.name, path_conflict.conflicting_name)
        for path_conflict in build_values(
            (injected_option.name, injected_option.value) for injected_option in entries
        ).conflicts
    ] == [("global.greenhouse.metadata.net.v4", "global.greenhouse.metadata.net")]
    assert build_expression_variables(entries)["global"]["greenhouse"]["metadata"] == {"net": "a"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("global.greenhouse.clusterNames", True),
        ("global.greenhouse.teamNames", True),
        ("global.greenhouse.teamNames[0]", True),
        (r"global.greenhouse.\teamNames", True),
        ("global.greenhouse.clusterName", False),
        ("global.greenhouse.custom", False),
        ("global.greenhouse", False),
        ("greenhouse.teamNames", False),
        (r"global\.greenhouse.teamNames", False),
    ],
)
def test_removed_options_are_recognized(name: str, expected: bool) -> None:
    assert is_removed_option(name) == expected
