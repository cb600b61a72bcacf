"""Tests of the readers of presets, definitions, overrides and Plugins: each error is reported with its location and
the allowed values.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    build_cluster,
    build_definition,
    build_object,
    build_option,
    build_organization,
    build_override,
    build_plugin,
    build_preset,
    build_value,
    find_finding,
    list_codes,
    list_plugins,
    list_values,
    run_controller,
)

SIZE = build_definition([build_option("size", "int", 1)])


@pytest.mark.parametrize(
    ("more", "code", "pointer", "message"),
    [
        pytest.param(
            {"plugin": {"clusterName": "x"}},
            "PluginPresetInvalid",
            "/spec/plugin",
            "clusterName is an unknown field; allowed fie",
            id="no-cluster-in-a-preset",
        ),
        pytest.param(
            {"plugin": {"deletionPolicy": "Keep"}},
            "PluginPresetInvalid",
            "/spec/plugin/deletionPolicy",
            'must be "Delete" or "Retain", but is "Keep"',
            id="deletion-policy",
        ),
        pytest.param(
            {"spec": {"deletionPolicy": "Keep"}},
            "PluginPresetInvalid",
            "/spec/deletionPolicy",
            'must be "Delete" or "Retain',
            id="of-the-preset",
        ),
        pytest.param(
            {"kind": "Definition"},
            "PluginPresetInvalid",
            "/spec/plugin/pluginDefinitionRef/kind",
            'PluginDefinition" or "ClusterPluginDefinition',
            id="kind-of-the-definition",
        ),
        pytest.param(
            {"plugin": {"ignoreDifferences": [{"kind": "X"}]}},
            "PluginPresetInvalid",
            "/spec/plugin/ignoreDifferences/0/paths",
            "must be a list of paths",
            id="ignore-without-paths",
        ),
        pytest.param(
            {"plugin": {"displayName": 5}},
            "PluginPresetInvalid",
            "/spec/plugin/displayName",
            "must be a string, but is 5; put the value in quotes",
            id="a-number-for-a-text",
        ),
        pytest.param(
            {"spec": {"clusterOptionOverrides": [{"overrides": []}]}},
            "PluginPresetInvalid",
            "/spec/clusterOptionOverrides/0/clusterName",
            "spec.clusterOptionOverrides[0].clusterName must be set",
            id="no-cluster-name",
        ),
        pytest.param(
            {"spec": {"clusterOptionOverrides": [{"clusterName": "east"}]}},
            "PluginPresetInvalid",
            "/spec/clusterOptionOverrides/0/overrides",
            "must be a list of options",
            id="no-overrides",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a b": "c"}}},
            "SelectorInvalid",
            "/spec/clusterSelector",
            "a b",
            id="selector",
        ),
    ],
)
def test_invalid_preset_is_reported(more: dict[str, Any], code: str, pointer: str, message: str) -> None:
    result = run_controller([EAST, SIZE, build_preset(**more)])

    actual_finding = find_finding(result, code)
    assert actual_finding.location.pointer.startswith(pointer)
    assert message in actual_finding.message
    assert (actual_finding.location.file, actual_finding.location.line > 0, actual_finding.severity) == (
        "02.yaml",
        True,
        Severity.ERROR,
    )
    assert result.variants == ()


def test_all_errors_of_a_preset_are_reported_together() -> None:
    text = build_preset([{"name": "a"}], selector={}, definition="", plugin={"releaseName": "Not Helm's"})

    assert list_codes(run_controller([EAST, SIZE, text])) == [
        "DefinitionRefMissing",
        "NoValueSource",
        "ReleaseNameInvalid",
        "SelectorEmpty",
    ]


@pytest.mark.parametrize(
    ("plugin_fields", "kind"),
    [
        pytest.param({"pluginDefinitionRef": {"name": "shipper"}}, "PluginDefinition", id="without-a-kind"),
        pytest.param({"pluginDefinitionRef": None, "pluginDefinitionName": "shipper"}, "PluginDefinition", id="short"),
    ],
)
def test_definition_reference_has_two_forms(plugin_fields: dict[str, Any], kind: str) -> None:
    spec = list_plugins(run_controller([EAST, SIZE, build_preset(plugin=plugin_fields)]))["east/logs-east"]["spec"]

    assert spec["pluginDefinitionRef"] == {"kind": kind, "name": "shipper"}


def test_definitions_of_both_kinds_can_have_the_same_name() -> None:
    texts = [SIZE, build_definition([build_option("size", "int", 5)], cluster_scoped=True)]

    result = run_controller(
        [
            EAST,
            *texts,
            build_preset(),
            build_preset(name="all", kind="ClusterPluginDefinition", plugin={"releaseName": "b"}),
        ]
    )

    assert list_values(result, "east/logs-east") == {"size": 1}
    assert list_values(result, "east/all-east") == {"size": 5}


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        pytest.param(build_definition([], version=""), "DefinitionInvalid", "/spec/version", id="no-version"),
        pytest.param(
            build_definition([], version=1.5), "DefinitionInvalid", "/spec/version", id="a-number-for-a-version"
        ),
        pytest.param(build_definition([], helmChart=None), "DefinitionInvalid", "/spec", id="nothing-to-deploy"),
        pytest.param(
            build_definition([], helmChart={"name": "c", "repository": "oci://me:canary@h.example/a", "version": "1"}),
            "CredentialInUrl",
            "/spec/helmChart/repository",
            id="credentials-in-a-url",
        ),
        pytest.param(build_definition([], helmChart={"name": "c"}), "DefinitionInvalid", "/spec/helmChart", id="chart"),
        pytest.param(
            build_definition([], uiApplication={"name": "u"}),
            "DefinitionInvalid",
            "/spec/uiApplication",
            id="interface",
        ),
        pytest.param(
            build_definition([build_option("a", "number")]), "DefinitionInvalid", "/spec/options/0/type", id="type"
        ),
        pytest.param(
            build_definition([build_option("a", "int", "5")]),
            "DefinitionInvalid",
            "/spec/options/0/default",
            id="default",
        ),
        pytest.param(
            build_definition([build_option("a", "int", True)]),
            "DefinitionInvalid",
            "/spec/options/0/default",
            id="a-boolean-is-no-int",
        ),
        pytest.param(
            build_definition([build_option("a", "secret", "x")]),
            "DefinitionInvalid",
            "/spec/options/0/default",
            id="secret",
        ),
        pytest.param(
            build_definition([build_option("a", regex="(")]), "DefinitionInvalid", "/spec/options/0/regex", id="regex"
        ),
        pytest.param(build_definition([build_option("a..b")]), "DefinitionInvalid", "/spec/options/0/name", id="name"),
        pytest.param(
            build_definition([build_option("a"), build_option("a")]),
            "DuplicateOptionDefinition",
            "/spec/options/1/name",
            id="twice",
        ),
    ],
)
def test_invalid_definition_is_reported(text: str, code: str, pointer: str) -> None:
    result = run_controller([EAST, text, build_preset()])

    assert find_finding(result, code).location.pointer.startswith(pointer)
    assert "DefinitionInvalid" in list_codes(result)
    assert {object_key.reference for object_key in result.kept_owners} == {"PluginPreset/acme/logs"}


def test_unknown_fields_of_a_definition_are_ignored() -> None:
    assert (
        list_codes(
            run_controller([EAST, build_definition([build_option("a", colour="red")], shape="round"), build_preset()])
        )
        == []
    )


def test_empty_default_of_a_secret_is_allowed() -> None:
    result = run_controller([EAST, build_definition([build_option("key", "secret", "")]), build_preset()])

    assert (list_codes(result), list_values(result, "east/logs-east")) == ([], {"key": ""})


@pytest.mark.parametrize(
    ("value", "codes"), [pytest.param("abc", [], id="matches"), pytest.param("xyz", ["RegexMismatch"], id="does-not")]
)
def test_pattern_mismatch_is_only_a_warning(value: str, codes: list[str]) -> None:
    result = run_controller(
        [EAST, build_definition([build_option("a", regex="^a")]), build_preset([build_value("a", value)])]
    )

    assert list_codes(result) == codes
    assert list_values(result, "east/logs-east") == {"a": value}


@pytest.mark.parametrize(
    ("more", "code", "pointer"),
    [
        pytest.param({"mode": "Sometimes"}, "PluginOverrideInvalid", "/spec/mode", id="mode"),
        pytest.param({"priority": "high"}, "PluginOverrideInvalid", "/spec/priority", id="priority"),
        pytest.param({"priority": True}, "PluginOverrideInvalid", "/spec/priority", id="a-boolean-is-no-priority"),
        pytest.param(
            {"definitions": ["Definition/a"]}, "PluginOverrideInvalid", "/spec/pluginDefinitionNames/0", id="kind"
        ),
        pytest.param(
            {"definitions": ["PluginDefinition/"]},
            "PluginOverrideInvalid",
            "/spec/pluginDefinitionNames/0",
            id="no-name",
        ),
        pytest.param({"clusters": 5}, "PluginOverrideInvalid", "/spec/clusterSelector", id="clusters"),
        pytest.param(
            {"clusters": [5]}, "PluginOverrideInvalid", "/spec/clusterSelector/0", id="a-number-among-clusters"
        ),
        pytest.param(
            {"clusters": {"labels": {}}}, "PluginOverrideInvalid", "/spec/clusterSelector", id="unknown-field"
        ),
        pytest.param(
            {"clusters": {"matchLabels": {"a b": "c"}}}, "SelectorInvalid", "/spec/clusterSelector", id="selector"
        ),
        pytest.param({"colour": "red"}, "PluginOverrideInvalid", "/spec", id="unknown"),
    ],
)
def test_invalid_override_is_reported_and_ignored(more: dict[str, Any], code: str, pointer: str) -> None:
    result = run_controller([EAST, SIZE, build_preset(), build_override([build_value("size", 2)], **more)])

    assert find_finding(result, code).location.pointer.startswith(pointer)
    assert list_values(result, "east/logs-east") == {"size": 1}


def test_override_without_options_is_invalid() -> None:
    assert list_codes(run_controller([EAST, SIZE, build_preset(), build_override([])])) == ["PluginOverrideInvalid"]


@pytest.mark.parametrize(
    ("names", "reached", "codes"),
    [
        pytest.param(["shipper"], [5, 5], [], id="either-kind"),
        pytest.param(["PluginDefinition/shipper"], [5, 1], [], id="one-kind"),
        pytest.param(["ClusterPluginDefinition/shipper"], [1, 5], [], id="the-other-kind"),
        pytest.param(["shipper", "nothing"], [5, 5], ["OverrideDefinitionUnknown"], id="one-that-is-not-there"),
        pytest.param(["nothing"], [1, 1], ["OverrideDefinitionUnknown", "OverrideUnused"], id="none-of-them"),
    ],
)
def test_override_selects_definitions(names: list[str], reached: list[int], codes: list[str]) -> None:
    whole = build_definition([build_option("size", "int", 1)], cluster_scoped=True)
    of_all = build_preset(name="all", kind="ClusterPluginDefinition", plugin={"releaseName": "b"})

    result = run_controller(
        [EAST, SIZE, whole, build_preset(), of_all, build_override([build_value("size", 5)], definitions=names)]
    )

    assert [list_values(result, f"east/{name}-east")["size"] for name in ("logs", "all")] == reached
    assert list_codes(result) == codes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(build_organization([{"name": "a"}]), id="organization"),
        pytest.param(build_cluster("east", overrides=[{"name": "a"}]), id="cluster"),
        pytest.param(build_object("Organization", "acme", {"pluginOverrides": 5}, namespace=""), id="no-list"),
    ],
)
def test_invalid_overrides_of_organizations_and_clusters_stall_their_plugins(text: str) -> None:
    result = run_controller([text, *([] if "kind: Cluster\n" in text else [EAST]), SIZE, build_preset()])

    assert result.variants == ()
    assert len(result.stalled) == 1
    assert list_codes(result)[0] in ("NoValueSource", "PluginOverridesInvalid")


def test_other_fields_of_an_organization_are_ignored() -> None:
    text = build_object("Organization", "acme", {"authentication": {"x": 1}, "pluginOverrides": None}, namespace="")

    assert list_codes(run_controller([EAST, SIZE, build_preset(), text])) == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        pytest.param({"pluginDefinitionRef": {}}, "DefinitionRefMissing", id="no-definition"),
        pytest.param({"pluginDefinitionRef": {"name": "nothing"}}, "PluginDefinitionNotFound", id="not-there"),
        pytest.param({"optionValues": 5}, "PluginInvalid", id="no-list"),
    ],
)
def test_invalid_plugin_is_reported(more: dict[str, Any], code: str) -> None:
    result = run_controller([EAST, SIZE, build_plugin(**more)])

    assert (list_codes(result), result.variants) == ([code], ())


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("hunter2", id="no-mapping"),
        pytest.param({"name": "a", "valueFrom": "hunter2"}, id="value-from"),
        pytest.param({"name": "a", "valueFrom": {"secret": ["hunter2"]}}, id="secret"),
        pytest.param({"name": "a", "expression": ["hunter2"]}, id="expression"),
        pytest.param({"name": "a", "value": "hunter2", "expression": "hunter2"}, id="two-sources"),
        pytest.param({"name": "a", "value": "hunter2", "hint": "hunter2"}, id="unknown-field"),
    ],
)
def test_invalid_value_is_not_quoted(entry: Any) -> None:
    result = run_controller([EAST, SIZE, build_preset([entry])])

    assert result.variants == ()
    assert list_codes(result)
    assert "hunter2" not in repr([result.findings, result.statuses, result.stalled])


@pytest.mark.parametrize("kind", ["PluginPreset", "PluginOverride", "Plugin"])
def test_other_api_version_is_refused(kind: str) -> None:
    text = build_object(kind, "x", {"a": 1}).replace("v1alpha1", "v9")

    controller_result = run_controller([EAST, SIZE, text])

    assert [
        item for item in controller_result.findings if 'must be "greenhouse.sap/v1alpha1"' in item.message
    ] or controller_result.stalled
