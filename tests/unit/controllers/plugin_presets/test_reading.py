"""Reading presets, definitions and overrides: everything that is wrong is told, with its place and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    cluster,
    definition,
    finding,
    given,
    option,
    organization,
    override,
    plugin,
    plugins,
    preset,
    room,
    told,
    values,
    written,
)

SIZE = definition([option("size", "int", 1)])


@pytest.mark.parametrize(
    ("more", "code", "pointer", "says"),
    [
        pytest.param(
            {"plugin": {"clusterName": "x"}},
            "PluginPresetInvalid",
            "/spec/plugin",
            "clusterName is unknown; allowed are",
            id="no-cluster-in-a-preset",
        ),
        pytest.param(
            {"plugin": {"deletionPolicy": "Keep"}},
            "PluginPresetInvalid",
            "/spec/plugin/deletionPolicy",
            'must be one of Delete, Retain, not "Keep"',
            id="deletion-policy",
        ),
        pytest.param(
            {"spec": {"deletionPolicy": "Keep"}},
            "PluginPresetInvalid",
            "/spec/deletionPolicy",
            "must be one of Delete, Retain",
            id="of-the-preset",
        ),
        pytest.param(
            {"kind": "Definition"},
            "PluginPresetInvalid",
            "/spec/plugin/pluginDefinitionRef/kind",
            "PluginDefinition, ClusterPluginDefinition",
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
            "must be a string, not 5: quote it",
            id="a-number-for-a-text",
        ),
        pytest.param(
            {"spec": {"clusterOptionOverrides": [{"overrides": []}]}},
            "PluginPresetInvalid",
            "/spec/clusterOptionOverrides/0/clusterName",
            "must be a string that is not empty",
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
def test_a_preset_that_is_wrong(more: dict[str, Any], code: str, pointer: str, says: str) -> None:
    result = room([EAST, SIZE, preset(**more)])

    actual_finding = finding(result, code)
    assert actual_finding.location.pointer.startswith(pointer)
    assert says in actual_finding.message
    assert (actual_finding.location.file, actual_finding.location.line > 0, actual_finding.severity) == (
        "02.yaml",
        True,
        Severity.ERROR,
    )
    assert result.variants == ()


def test_everything_that_is_wrong_with_a_preset_is_told_at_once() -> None:
    text = preset([{"name": "a"}], selector={}, definition="", plugin={"releaseName": "Not Helm's"})

    assert told(room([EAST, SIZE, text])) == [
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
def test_spellings_of_the_definition(plugin_fields: dict[str, Any], kind: str) -> None:
    spec = plugins(room([EAST, SIZE, preset(plugin=plugin_fields)]))["east/logs-east"]["spec"]

    assert spec["pluginDefinitionRef"] == {"kind": kind, "name": "shipper"}


def test_definitions_of_both_kinds_may_share_a_name() -> None:
    texts = [SIZE, definition([option("size", "int", 5)], cluster_scoped=True)]

    result = room(
        [EAST, *texts, preset(), preset(name="all", kind="ClusterPluginDefinition", plugin={"releaseName": "b"})]
    )

    assert values(result, "east/logs-east") == {"size": 1}
    assert values(result, "east/all-east") == {"size": 5}


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        pytest.param(definition([], version=""), "DefinitionInvalid", "/spec/version", id="no-version"),
        pytest.param(definition([], version=1.5), "DefinitionInvalid", "/spec/version", id="a-number-for-a-version"),
        pytest.param(definition([], helmChart=None), "DefinitionInvalid", "/spec", id="nothing-to-deploy"),
        pytest.param(definition([], helmChart={"name": "c"}), "DefinitionInvalid", "/spec/helmChart", id="chart"),
        pytest.param(
            definition([], uiApplication={"name": "u"}), "DefinitionInvalid", "/spec/uiApplication", id="interface"
        ),
        pytest.param(definition([option("a", "number")]), "DefinitionInvalid", "/spec/options/0/type", id="type"),
        pytest.param(
            definition([option("a", "int", "5")]), "DefinitionInvalid", "/spec/options/0/default", id="default"
        ),
        pytest.param(
            definition([option("a", "int", True)]),
            "DefinitionInvalid",
            "/spec/options/0/default",
            id="a-boolean-is-no-int",
        ),
        pytest.param(
            definition([option("a", "secret", "x")]), "DefinitionInvalid", "/spec/options/0/default", id="secret"
        ),
        pytest.param(definition([option("a", regex="(")]), "DefinitionInvalid", "/spec/options/0/regex", id="regex"),
        pytest.param(definition([option("a..b")]), "DefinitionInvalid", "/spec/options/0/name", id="name"),
        pytest.param(
            definition([option("a"), option("a")]), "DuplicateOptionDefinition", "/spec/options/1/name", id="twice"
        ),
    ],
)
def test_a_definition_that_is_wrong(text: str, code: str, pointer: str) -> None:
    result = room([EAST, text, preset()])

    assert finding(result, code).location.pointer.startswith(pointer)
    assert "DefinitionInvalid" in told(result)
    assert {str(object_key) for object_key in result.kept_owners} == {"PluginPreset/acme/logs"}


def test_unknown_fields_of_a_definition_are_kept_out_of_the_way() -> None:
    assert told(room([EAST, definition([option("a", colour="red")], shape="round"), preset()])) == []


def test_the_empty_default_of_a_secret_is_no_secret() -> None:
    result = room([EAST, definition([option("key", "secret", "")]), preset()])

    assert (told(result), values(result, "east/logs-east")) == ([], {"key": ""})


@pytest.mark.parametrize(
    ("value", "codes"), [pytest.param("abc", [], id="matches"), pytest.param("xyz", ["RegexMismatch"], id="does-not")]
)
def test_a_pattern_is_only_warned_of(value: str, codes: list[str]) -> None:
    result = room([EAST, definition([option("a", regex="^a")]), preset([given("a", value)])])

    assert told(result) == codes
    assert values(result, "east/logs-east") == {"a": value}


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
def test_an_override_that_is_wrong(more: dict[str, Any], code: str, pointer: str) -> None:
    result = room([EAST, SIZE, preset(), override([given("size", 2)], **more)])

    assert finding(result, code).location.pointer.startswith(pointer)
    assert values(result, "east/logs-east") == {"size": 1}


def test_an_override_must_override_something() -> None:
    assert told(room([EAST, SIZE, preset(), override([])])) == ["PluginOverrideInvalid"]


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
def test_definitions_of_an_override(names: list[str], reached: list[int], codes: list[str]) -> None:
    whole = definition([option("size", "int", 1)], cluster_scoped=True)
    of_all = preset(name="all", kind="ClusterPluginDefinition", plugin={"releaseName": "b"})

    result = room([EAST, SIZE, whole, preset(), of_all, override([given("size", 5)], definitions=names)])

    assert [values(result, f"east/{name}-east")["size"] for name in ("logs", "all")] == reached
    assert told(result) == codes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(organization([{"name": "a"}]), id="organization"),
        pytest.param(cluster("east", overrides=[{"name": "a"}]), id="cluster"),
        pytest.param(written("Organization", "acme", {"pluginOverrides": 5}, namespace=""), id="no-list"),
    ],
)
def test_overrides_of_organizations_and_clusters_that_are_wrong_stop_their_plugins(text: str) -> None:
    result = room([text, *([] if "kind: Cluster\n" in text else [EAST]), SIZE, preset()])

    assert result.variants == ()
    assert len(result.stalled) == 1
    assert told(result)[0] in ("NoValueSource", "PluginOverridesInvalid")


def test_what_else_an_organization_says_is_not_looked_at() -> None:
    text = written("Organization", "acme", {"authentication": {"x": 1}, "pluginOverrides": None}, namespace="")

    assert told(room([EAST, SIZE, preset(), text])) == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        pytest.param({"pluginDefinitionRef": {}}, "DefinitionRefMissing", id="no-definition"),
        pytest.param({"pluginDefinitionRef": {"name": "nothing"}}, "PluginDefinitionNotFound", id="not-there"),
        pytest.param({"optionValues": 5}, "PluginInvalid", id="no-list"),
    ],
)
def test_a_plugin_that_is_wrong(more: dict[str, Any], code: str) -> None:
    result = room([EAST, SIZE, plugin(**more)])

    assert (told(result), result.variants) == ([code], ())


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
def test_what_stands_where_a_value_should_is_not_quoted(entry: Any) -> None:
    result = room([EAST, SIZE, preset([entry])])

    assert result.variants == ()
    assert told(result)
    assert "hunter2" not in repr([result.findings, result.statuses, result.stalled])


@pytest.mark.parametrize("kind", ["PluginPreset", "PluginOverride", "Plugin"])
def test_another_version_is_not_read(kind: str) -> None:
    text = written(kind, "x", {"a": 1}).replace("v1alpha1", "v9")

    controller_result = room([EAST, SIZE, text])

    assert [
        item for item in controller_result.findings if "must be greenhouse.sap/v1alpha1" in item.message
    ] or controller_result.stalled
