"""Tests of the ResourceList format: paths, IDs and results that a function returns."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.function import FunctionResult
from reconciler.packages.functions.resource_list import build_resource_list, read_returned_items, read_returned_results
from tests.unit.packages.builders import parse_items

PATH, LEGACY_PATH = "internal.config.kubernetes.io/path", "config.kubernetes.io/path"
INDEX = "internal.config.kubernetes.io/index"
ONE = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"


def test_round_trip_changes_nothing() -> None:
    input_items = parse_items(
        ONE + "  annotations: {}\n---\n" + ONE + "  annotations: {own: x, config.kubernetes.io/index: '7'}\n"
    )

    returned = read_returned_items(input_items, build_resource_list(input_items, None))

    assert not isinstance(returned, str)
    assert [item.data for item in returned] == [item.data for item in input_items]
    assert [item.document for item in returned] == [item.base for item in input_items]


@pytest.mark.parametrize("text", ["resources: [a.yaml]\n", "metadata:\nresources: []\n", "metadata: {}\na: 1\n"])
def test_resource_without_metadata_receives_a_path(text: str) -> None:
    input_items = parse_items(text)
    wire = build_resource_list(input_items, None)
    returned = read_returned_items(input_items, wire)

    assert wire["items"][0]["metadata"]["annotations"][PATH] == "r.yaml"
    assert not isinstance(returned, str)
    assert [item.data for item in returned] == [item.data for item in input_items]


@pytest.mark.parametrize(
    ("sorts", "order"),
    [
        pytest.param(True, ["apiVersion", "kind", "metadata", "a", "z"], id="sorted"),
        pytest.param(False, ["apiVersion", "kind", "metadata", "z", "a"], id="as-returned"),
    ],
)
def test_new_keys_come_last(order: list[str], *, sorts: bool) -> None:
    input_items = parse_items(ONE)
    wire = build_resource_list(input_items, None)
    wire["items"][0] = {"z": 1, "a": 2, **wire["items"][0]}

    returned = read_returned_items(input_items, wire, sort_new_keys=sorts)

    assert not isinstance(returned, str)
    assert list(returned[0].data) == order


@pytest.mark.parametrize(
    ("annotations", "place"),
    [
        pytest.param({}, ("r.yaml", 0), id="unchanged"),
        pytest.param({PATH: "x/../y.yaml"}, ("y.yaml", 0), id="path"),
        pytest.param({LEGACY_PATH: "y.yaml"}, ("y.yaml", 0), id="legacy-path"),
        pytest.param({PATH: "/y.yaml"}, ("y.yaml", 0), id="absolute-path"),
        pytest.param({PATH: "a/../../y.yaml"}, ("a/../../y.yaml", 0), id="what-will-be-refused"),
        pytest.param({INDEX: 3}, ("r.yaml", 3), id="index-as-a-number"),
    ],
)
def test_returned_paths(annotations: dict[str, Any], place: tuple[str, int]) -> None:
    input_items = parse_items(ONE)
    wire = build_resource_list(input_items, None)
    wire["items"][0]["metadata"]["annotations"].update(annotations)

    returned = read_returned_items(input_items, wire)

    assert not isinstance(returned, str)
    assert [(item.path, item.index) for item in returned] == [place]
    assert returned[0].data == input_items[0].data


@pytest.mark.parametrize(
    ("own", "emptied"),
    [
        pytest.param("", True, id="a-mapping-that-only-we-filled"),
        pytest.param("  annotations: {}\n", False, id="one-that-was-there-and-empty"),
    ],
)
def test_empty_annotations(own: str, *, emptied: bool) -> None:
    input_items = parse_items(ONE + own)
    wire = build_resource_list(input_items, None)
    wire["items"][0]["metadata"]["annotations"] = {"config.k8s.io/id": "0"}
    returned = read_returned_items(input_items, wire)
    wire["items"][0]["metadata"]["annotations"] = {}
    new = read_returned_items([], wire)

    assert not isinstance(returned, str)
    assert not isinstance(new, str)
    assert returned[0].data == input_items[0].data
    assert ("annotations" not in returned[0].data["metadata"]) is emptied
    assert "annotations" not in new[0].data["metadata"]


def test_copied_item_is_new() -> None:
    input_items = parse_items(ONE)
    wire = build_resource_list(input_items, None)
    wire["items"].append(wire["items"][0])

    returned = read_returned_items(input_items, wire)

    assert not isinstance(returned, str)
    assert [item.id for item in returned] == [0, None]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        pytest.param({"items": 1}, "items are mappings", id="no-list"),
        pytest.param({"items": [1]}, "items are mappings", id="no-mapping"),
        pytest.param(None, "items are mappings", id="nothing"),
        pytest.param({"items": [{"a": float("nan")}]}, "must be finite", id="nan"),
        pytest.param({"items": [{"a": [{1: 2}]}]}, "must be strings", id="number-as-key"),
    ],
)
def test_invalid_items_are_refused(returned: Any, message: str) -> None:
    assert message in str(read_returned_items([], returned))


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param(None, (), id="none"),
        pytest.param([{"message": "m"}], (FunctionResult("m"),), id="info-is-the-default"),
        pytest.param(
            {"items": [{"message": "m", "severity": "error"}]}, (FunctionResult("m", "error"),), id="in-items"
        ),
        pytest.param(
            [{"message": "m", "resourceRef": {"metadata": {"name": "n", "namespace": "s"}}}],
            (FunctionResult("m", resource=("", "", "s", "n")),),
            id="legacy-reference",
        ),
        pytest.param(
            [{"message": "m", "field": {"path": "a", "currentValue": 1, "suggestedValue": 2}}],
            (FunctionResult("m", field="a", current=1, proposed=2),),
            id="legacy-suggestion",
        ),
        pytest.param(
            [{"message": "m", "file": {"path": "f", "index": 2}, "tags": {"b": 1, "a": 2}}],
            (FunctionResult("m", file="f", index=2, tags=(("a", "2"), ("b", "1"))),),
            id="file-and-tags",
        ),
    ],
)
def test_results(results: Any, expected: tuple[FunctionResult, ...]) -> None:
    assert read_returned_results({"results": results}) == expected


def test_results_as_data() -> None:
    result = FunctionResult("m", "error", ("v1", "A", "", "n"), "spec.x", 1, 2, "f.yaml", 1, (("k", "v"),))

    assert result.as_data() == {
        "message": "m",
        "severity": "error",
        "resourceRef": {"apiVersion": "v1", "kind": "A", "name": "n"},
        "field": {"path": "spec.x", "currentValue": 1, "proposedValue": 2},
        "file": {"path": "f.yaml", "index": 1},
        "tags": {"k": "v"},
    }
    assert read_returned_results({"results": [result.as_data()]}) == (result,)
