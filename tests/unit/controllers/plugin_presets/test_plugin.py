"""The Plugin as it is written: its labels, what is passed on to it, its release, its text."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.results import GeneratedSource
from reconciler.krm.yaml import emit, parse_yaml
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    Branches,
    cluster,
    data_of,
    definition,
    finding,
    given,
    option,
    plugin,
    plugins,
    preset,
    room,
    told,
    variant_of,
)

UNIT = ("east", "plugins/logs-east")
LABEL = "greenhouse.sap/pluginpreset"
MEMORY = "greenhouse.sap/last-applied-propagator"
OWN = {LABEL: "logs", "greenhouse.sap/cluster": "east", "greenhouse.sap/plugindefinition": "shipper"}
UI = definition([], helmChart=None, uiApplication={"name": "ui", "version": "1"})


def standing(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """Return a Plugin that stands on the branch of east, with the preset's label."""
    metadata = {"name": "logs-east", "namespace": "acme", "labels": {LABEL: "logs", **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "greenhouse.sap/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": spec}


def over(there: dict[str, Any], *texts: str) -> dict[str, Any]:
    """Return the Plugin that is made where another stands."""
    result = room([EAST, definition(), *texts], Branches().with_plugin(UNIT, there))
    return data_of(variant_of(result, "east/logs-east"), there)


def of_preset(**more: Any) -> dict[str, Any]:
    return plugins(room([EAST, definition(), preset(**more)]))["east/logs-east"]


def propagating(labels: str = "", annotations: str = "") -> dict[str, Any]:
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
        pytest.param("cost/*", {"cost/x": "2", "cost/y": "3"}, id="17.16-wildcard"),
        pytest.param("cost*", {}, id="a-star-without-a-slash-is-none"),
        pytest.param("missing", {}, id="what-is-not-there"),
    ],
)
def test_labels_are_passed_on(listed: str, labels: dict[str, str]) -> None:
    assert of_preset(**propagating(listed))["metadata"]["labels"] == {**OWN, **labels}


@pytest.mark.parametrize(
    ("listed", "annotations"),
    [
        pytest.param("docs/page", {"docs/page": "5"}, id="one"),
        pytest.param("docs/*", {}, id="annotations-have-no-wildcard"),
        pytest.param("greenhouse.sap/propagate-labels", {}, id="never-how-it-is-passed-on"),
    ],
)
def test_annotations_are_passed_on(listed: str, annotations: dict[str, str]) -> None:
    result = of_preset(**propagating(annotations=listed))["metadata"].get("annotations", {})

    assert {key: value for key, value in result.items() if key != MEMORY} == annotations


def test_what_was_passed_on_is_remembered_in_order() -> None:
    result = of_preset(**propagating("cost/*,a", "docs/page"))

    assert (
        result["metadata"]["annotations"][MEMORY]
        == '{"labelKeys":["a","cost/x","cost/y"],"annotationKeys":["docs/page"]}'
    )


def test_nothing_passed_on_is_not_remembered() -> None:
    assert "annotations" not in of_preset(**propagating("missing"))["metadata"]


def test_what_is_passed_on_no_more_is_taken_away() -> None:
    """17.16"""
    memory = {MEMORY: '{"labelKeys":["cost/x","gone"],"annotationKeys":["docs/page"]}'}
    there = standing({"cost/x": "2", "gone": "1", "mine": "7"}, {**memory, "docs/page": "5", "wiki": "8"})

    metadata = over(there, preset(**propagating("a")))["metadata"]

    assert metadata["labels"] == {**OWN, "mine": "7", "a": "1"}
    assert metadata["annotations"] == {"wiki": "8", MEMORY: '{"labelKeys":["a"],"annotationKeys":[]}'}


def test_the_memory_goes_when_there_is_nothing_to_remember() -> None:
    there = standing({"gone": "1"}, {MEMORY: '{"labelKeys":["gone"],"annotationKeys":[]}'})

    metadata = over(there, preset())["metadata"]

    assert metadata["labels"] == OWN
    assert "annotations" not in metadata


@pytest.mark.parametrize("memory", ["", "{", "[]", '{"labelKeys": 5}', '{"labelKeys": [5, "a"]}'])
def test_a_memory_that_people_have_changed_takes_nothing_else_away(memory: str) -> None:
    metadata = over(standing({"mine": "7"}, {MEMORY: memory, "wiki": "8"}), preset())["metadata"]

    assert metadata["labels"] == {**OWN, "mine": "7"}
    assert metadata["annotations"] == {"wiki": "8"}


def test_labels_of_another_definition_and_of_old_times_go() -> None:
    there = standing({"greenhouse.sap/clusterplugindefinition": "x", "greenhouse.sap/plugin": "y"})

    assert over(there, preset())["metadata"]["labels"] == OWN


def test_a_spec_that_people_have_changed_is_given_back() -> None:
    there = standing(optionValues=[given("mine", 1)], displayName="Mine", other=5)

    spec = over(there, preset([given("a", 1)]))["spec"]

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
def test_the_release(more: dict[str, Any], published: dict[str, Any], release: tuple[str, str]) -> None:
    spec = over(standing(**published), preset(plugin=more))["spec"]

    assert (spec["releaseNamespace"], spec["releaseName"]) == release


def test_a_release_that_keeps_its_name_is_told() -> None:
    there = Branches().with_plugin(UNIT, standing(releaseName="old"))

    result = room([EAST, definition(), preset(plugin={"releaseName": "new"})], there)

    assert told(result) == ["ImmutableFieldChanged"]
    assert finding(result, "ImmutableFieldChanged").severity == "warning"


def test_a_user_interface_has_no_release() -> None:
    spec = plugins(room([EAST, UI, preset()]))["east/logs-east"]["spec"]

    assert "releaseName" not in spec
    assert "releaseNamespace" not in spec


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(preset(plugin={"releaseName": "x" * 54}), "ReleaseNameInvalid", id="too-long"),
        pytest.param(preset(plugin={"releaseName": "Big"}), "ReleaseNameInvalid", id="upper-case"),
        pytest.param(preset(definition="c" * 50), "ReleaseNameInvalid", id="of-a-long-chart"),
    ],
)
def test_a_release_name_that_helm_refuses(text: str, code: str) -> None:
    result = room([EAST, definition(), definition([], "c" * 50), text])

    assert told(result) == [code]
    assert result.variants == ()


def test_what_is_only_copied() -> None:
    ignored = [{"kind": "Deployment", "paths": ["/spec/replicas"]}]

    spec = of_preset(plugin={"deletionPolicy": "Retain", "ignoreDifferences": ignored, "displayName": "Logs"})["spec"]

    assert spec["deletionPolicy"] == "Retain"
    assert spec["ignoreDifferences"] == ignored
    assert spec["displayName"] == "Logs"


def test_options_are_sorted_by_name_with_what_is_injected_among_them() -> None:
    texts = [cluster("east"), definition([option("b"), option("z", default="q")]), preset([given("b", "x")])]

    names = [option_value["name"] for option_value in plugins(room(texts))["east/logs-east"]["spec"]["optionValues"]]

    assert names == ["b", "global.greenhouse.clusterName", "global.greenhouse.organizationName", "z"]


def test_who_owns_a_plugin_is_injected_from_its_preset() -> None:
    entries = of_preset(labels={"greenhouse.sap/owned-by": "lanterns"})["spec"]["optionValues"]

    assert given("global.greenhouse.ownedBy", "lanterns") in entries


def test_the_base_domain_is_a_setting() -> None:
    result = room([EAST, definition(), preset()], base_domain="example.test")

    entries = plugins(result)["east/logs-east"]["spec"]["optionValues"]
    assert given("global.greenhouse.baseDomain", "example.test") in entries


@pytest.mark.parametrize(
    "value", ["a\nb\n", "a\n\nb", " \n x\n", "\n", "x: y", [], {}, [{"a": [1, {"b": "c\nd"}]}], 1.5, True, "yes"]
)
def test_the_text_is_what_the_emitter_writes(value: Any) -> None:
    result = room([EAST, definition(), preset([given("a", value), given("b", value)])])

    source = variant_of(result, "east/logs-east").source
    assert isinstance(source, GeneratedSource)
    text = source.files["plugin.yaml"].data
    assert emit(parse_yaml(text).documents[0].data).encode() == text
    assert given("a", value) in parse_yaml(text).documents[0].data["spec"]["optionValues"]


def test_a_plugin_of_its_own_keeps_what_it_says() -> None:
    text = plugin(
        [given("a", 1)], labels={"team": "x"}, annotations={"note": "y"}, unknown={"z": 1}, displayName="Mine"
    )

    mapping = plugins(room([EAST, definition(), text]))["east/boards"]

    assert mapping["metadata"] == {
        "name": "boards", "namespace": "acme", "labels": {"team": "x"}, "annotations": {"note": "y"},
    }  # fmt: skip
    spec = {name: mapping["spec"][name] for name in ("unknown", "displayName", "clusterName", "releaseName")}
    assert spec == {"unknown": {"z": 1}, "displayName": "Mine", "clusterName": "east", "releaseName": "shipper-chart"}


def test_a_plugin_without_a_cluster_goes_to_the_central_one() -> None:
    result = room([EAST, definition(), plugin(cluster="")], central_cluster="east")

    names = [option_value["name"] for option_value in plugins(result)["east/boards"]["spec"]["optionValues"]]
    assert names == ["global.greenhouse.organizationName"]
    assert "clusterName" not in plugins(result)["east/boards"]["spec"]


@pytest.mark.parametrize(
    ("name", "central"),
    [
        pytest.param("", "", id="none-and-nowhere-else"),
        pytest.param("", "moon", id="the-central-one-is-none"),
        pytest.param("moon", "east", id="one-that-is-none"),
    ],
)
def test_a_plugin_without_a_place_stays_where_it_is(name: str, central: str) -> None:
    result = room([EAST, definition(), plugin(cluster=name)], central_cluster=central)

    assert told(result) == ["NoDestination"]
    assert {str(object_key) for object_key in result.kept_owners} == {"Plugin/acme/boards"}
