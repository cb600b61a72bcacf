"""Tests of the written Plugin: propagated labels and annotations, release, options and text."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.results import GeneratedSource
from reconciler.krm.yaml import emit, parse_yaml
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    FakeBranches,
    build_cluster,
    build_definition,
    build_option,
    build_plugin,
    build_preset,
    build_value,
    find_finding,
    find_variant,
    list_codes,
    list_plugins,
    read_plugin,
    run_controller,
)

UNIT = ("east", "plugins/logs-east")
LABEL = "greenhouse.sap/pluginpreset"
RECORD = "greenhouse.sap/last-applied-propagator"
OWN = {LABEL: "logs", "greenhouse.sap/cluster": "east", "greenhouse.sap/plugindefinition": "shipper"}
UI = build_definition([], helmChart=None, uiApplication={"name": "ui", "version": "1"})


def build_published_plugin(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """Return a Plugin on the branch of east, with the label of the preset."""
    metadata = {"name": "logs-east", "namespace": "acme", "labels": {LABEL: "logs", **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "greenhouse.sap/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": spec}


def merge_plugin(plugin_before: dict[str, Any], *texts: str) -> dict[str, Any]:
    """Return the Plugin that is written over a published Plugin."""
    result = run_controller([EAST, build_definition(), *texts], FakeBranches().with_plugin(UNIT, plugin_before))
    return read_plugin(find_variant(result, "east/logs-east"), plugin_before)


def build_from_preset(**more: Any) -> dict[str, Any]:
    return list_plugins(run_controller([EAST, build_definition(), build_preset(**more)]))["east/logs-east"]


def build_propagation(labels: str = "", annotations: str = "") -> dict[str, Any]:
    marks = {"greenhouse.sap/propagate-labels": labels, "greenhouse.sap/propagate-annotations": annotations}
    return {
        "labels": {"a": "1", "cost/x": "2", "cost/y": "3", "costs": "4"},
        "annotations": {**marks, "docs/page": "5", "docs/other": "6"},
    }


@pytest.mark.parametrize(
    ("listed", "labels"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("a", {"a": "1"}, id="one"),
        pytest.param(" a ,, cost/x ", {"a": "1", "cost/x": "2"}, id="blanks-are-trimmed"),
        pytest.param("cost/*", {"cost/x": "2", "cost/y": "3"}, id="wildcard"),
        pytest.param("cost*", {}, id="a-star-without-a-slash-is-none"),
        pytest.param("missing", {}, id="what-is-not-there"),
    ],
)
def test_labels_are_propagated(listed: str, labels: dict[str, str]) -> None:
    assert build_from_preset(**build_propagation(listed))["metadata"]["labels"] == {**OWN, **labels}


@pytest.mark.parametrize(
    ("listed", "annotations"),
    [
        pytest.param("docs/page", {"docs/page": "5"}, id="one"),
        pytest.param("docs/*", {}, id="annotations-have-no-wildcard"),
        pytest.param("greenhouse.sap/propagate-labels", {}, id="never-how-it-is-passed-on"),
    ],
)
def test_annotations_are_propagated(listed: str, annotations: dict[str, str]) -> None:
    result = build_from_preset(**build_propagation(annotations=listed))["metadata"].get("annotations", {})

    assert {key: value for key, value in result.items() if key != RECORD} == annotations


def test_propagated_keys_are_recorded_in_order() -> None:
    result = build_from_preset(**build_propagation("cost/*,a", "docs/page"))

    assert (
        result["metadata"]["annotations"][RECORD]
        == '{"labelKeys":["a","cost/x","cost/y"],"annotationKeys":["docs/page"]}'
    )


def test_no_record_without_propagated_keys() -> None:
    assert "annotations" not in build_from_preset(**build_propagation("missing"))["metadata"]


def test_keys_that_are_not_propagated_any_more_are_removed() -> None:
    record = {RECORD: '{"labelKeys":["cost/x","gone"],"annotationKeys":["docs/page"]}'}
    plugin_before = build_published_plugin(
        {"cost/x": "2", "gone": "1", "mine": "7"}, {**record, "docs/page": "5", "wiki": "8"}
    )

    metadata = merge_plugin(plugin_before, build_preset(**build_propagation("a")))["metadata"]

    assert metadata["labels"] == {**OWN, "mine": "7", "a": "1"}
    assert metadata["annotations"] == {"wiki": "8", RECORD: '{"labelKeys":["a"],"annotationKeys":[]}'}


def test_record_is_removed_without_propagated_keys() -> None:
    plugin_before = build_published_plugin({"gone": "1"}, {RECORD: '{"labelKeys":["gone"],"annotationKeys":[]}'})

    metadata = merge_plugin(plugin_before, build_preset())["metadata"]

    assert metadata["labels"] == OWN
    assert "annotations" not in metadata


@pytest.mark.parametrize("record", ["", "{", "[]", '{"labelKeys": 5}', '{"labelKeys": [5, "a"]}'])
def test_changed_record_removes_nothing_else(record: str) -> None:
    metadata = merge_plugin(build_published_plugin({"mine": "7"}, {RECORD: record, "wiki": "8"}), build_preset())[
        "metadata"
    ]

    assert metadata["labels"] == {**OWN, "mine": "7"}
    assert metadata["annotations"] == {"wiki": "8"}


def test_labels_of_another_definition_and_old_labels_are_removed() -> None:
    plugin_before = build_published_plugin(
        {"greenhouse.sap/clusterplugindefinition": "x", "greenhouse.sap/plugin": "y"}
    )

    assert merge_plugin(plugin_before, build_preset())["metadata"]["labels"] == OWN


def test_local_change_of_the_spec_is_replaced() -> None:
    plugin_before = build_published_plugin(optionValues=[build_value("mine", 1)], displayName="Mine", other=5)

    spec = merge_plugin(plugin_before, build_preset([build_value("a", 1)]))["spec"]

    assert "other" not in spec
    assert spec["displayName"] == "logs east"
    assert "mine" not in [option_value["name"] for option_value in spec["optionValues"]]


@pytest.mark.parametrize(
    ("more", "published", "release"),
    [
        pytest.param({}, {}, ("acme", "shipper-chart"), id="chart-and-organization"),
        pytest.param({"releaseName": "r", "releaseNamespace": "n"}, {}, ("n", "r"), id="of-the-preset"),
        pytest.param({"releaseName": "new"}, {"releaseName": "old"}, ("acme", "old"), id="a-name-is-sticky"),
        pytest.param({}, {"releaseName": "old", "releaseNamespace": "acme"}, ("acme", "old"), id="and-cannot-be-unset"),
    ],
)
def test_release_name_and_namespace(more: dict[str, Any], published: dict[str, Any], release: tuple[str, str]) -> None:
    spec = merge_plugin(build_published_plugin(**published), build_preset(plugin=more))["spec"]

    assert (spec["releaseNamespace"], spec["releaseName"]) == release


def test_changed_release_name_is_a_warning() -> None:
    plugin_before = FakeBranches().with_plugin(UNIT, build_published_plugin(releaseName="old"))

    result = run_controller([EAST, build_definition(), build_preset(plugin={"releaseName": "new"})], plugin_before)

    assert list_codes(result) == ["ImmutableFieldChanged"]
    assert find_finding(result, "ImmutableFieldChanged").severity == "warning"


def test_plugin_without_chart_has_no_release() -> None:
    spec = list_plugins(run_controller([EAST, UI, build_preset()]))["east/logs-east"]["spec"]

    assert "releaseName" not in spec
    assert "releaseNamespace" not in spec


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(build_preset(plugin={"releaseName": "x" * 54}), "ReleaseNameInvalid", id="too-long"),
        pytest.param(build_preset(plugin={"releaseName": "Big"}), "ReleaseNameInvalid", id="upper-case"),
        pytest.param(build_preset(definition="c" * 50), "ReleaseNameInvalid", id="of-a-long-chart"),
    ],
)
def test_invalid_release_name_is_reported(text: str, code: str) -> None:
    result = run_controller([EAST, build_definition(), build_definition([], "c" * 50), text])

    assert list_codes(result) == [code]
    assert result.variants == ()


def test_plain_fields_are_copied() -> None:
    ignored = [{"kind": "Deployment", "paths": ["/spec/replicas"]}]

    spec = build_from_preset(plugin={"deletionPolicy": "Retain", "ignoreDifferences": ignored, "displayName": "Logs"})[
        "spec"
    ]

    assert spec["deletionPolicy"] == "Retain"
    assert spec["ignoreDifferences"] == ignored
    assert spec["displayName"] == "Logs"


def test_options_and_injected_options_are_sorted_together() -> None:
    texts = [
        build_cluster("east"),
        build_definition([build_option("b"), build_option("z", default="q")]),
        build_preset([build_value("b", "x")]),
    ]

    names = [
        option_value["name"]
        for option_value in list_plugins(run_controller(texts))["east/logs-east"]["spec"]["optionValues"]
    ]

    assert names == ["b", "global.greenhouse.clusterName", "global.greenhouse.organizationName", "z"]


def test_owner_of_the_preset_is_injected() -> None:
    entries = build_from_preset(labels={"greenhouse.sap/owned-by": "lanterns"})["spec"]["optionValues"]

    assert build_value("global.greenhouse.ownedBy", "lanterns") in entries


def test_base_domain_comes_from_the_settings() -> None:
    result = run_controller([EAST, build_definition(), build_preset()], base_domain="example.test")

    entries = list_plugins(result)["east/logs-east"]["spec"]["optionValues"]
    assert build_value("global.greenhouse.baseDomain", "example.test") in entries


@pytest.mark.parametrize(
    "value", ["a\nb\n", "a\n\nb", " \n x\n", "\n", "x: y", [], {}, [{"a": [1, {"b": "c\nd"}]}], 1.5, True, "yes"]
)
def test_text_is_the_same_as_from_the_emitter(value: Any) -> None:
    result = run_controller(
        [EAST, build_definition(), build_preset([build_value("a", value), build_value("b", value)])]
    )

    source = find_variant(result, "east/logs-east").source
    assert isinstance(source, GeneratedSource)
    text = source.files["plugin.yaml"].data
    assert emit(parse_yaml(text).documents[0].data).encode() == text
    assert build_value("a", value) in parse_yaml(text).documents[0].data["spec"]["optionValues"]


def test_single_plugin_keeps_its_fields() -> None:
    text = build_plugin(
        [build_value("a", 1)], labels={"team": "x"}, annotations={"note": "y"}, unknown={"z": 1}, displayName="Mine"
    )

    mapping = list_plugins(run_controller([EAST, build_definition(), text]))["east/boards"]

    assert mapping["metadata"] == {
        "name": "boards", "namespace": "acme", "labels": {"team": "x"}, "annotations": {"note": "y"},
    }  # fmt: skip
    spec = {name: mapping["spec"][name] for name in ("unknown", "displayName", "clusterName", "releaseName")}
    assert spec == {"unknown": {"z": 1}, "displayName": "Mine", "clusterName": "east", "releaseName": "shipper-chart"}


def test_single_plugin_without_cluster_is_for_the_central_cluster() -> None:
    result = run_controller([EAST, build_definition(), build_plugin(cluster="")], central_cluster="east")

    names = [option_value["name"] for option_value in list_plugins(result)["east/boards"]["spec"]["optionValues"]]
    assert names == ["global.greenhouse.organizationName"]
    assert "clusterName" not in list_plugins(result)["east/boards"]["spec"]


@pytest.mark.parametrize(
    ("name", "central"),
    [
        pytest.param("", "", id="none-and-nowhere-else"),
        pytest.param("", "moon", id="the-central-one-is-none"),
        pytest.param("moon", "east", id="one-that-is-none"),
    ],
)
def test_single_plugin_without_target_stays(name: str, central: str) -> None:
    result = run_controller([EAST, build_definition(), build_plugin(cluster=name)], central_cluster=central)

    assert list_codes(result) == ["NoDestination"]
    assert {object_key.reference for object_key in result.kept_owners} == {"Plugin/acme/boards"}
