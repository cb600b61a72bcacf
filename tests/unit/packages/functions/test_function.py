"""Tests of shared code of functions: values at paths, and fields that cannot be set."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.function import FieldError, FunctionContext, KrmFunction, set_value_at
from reconciler.packages.functions.google_cloud import enable_gcp_services, set_project_id
from reconciler.packages.functions.labels_and_annotations import set_annotations, set_labels
from tests.unit.packages.builders import KPTFILE, build_config, format_items, list_messages, parse_items


@pytest.mark.parametrize(
    ("data", "path", "expected"),
    [
        pytest.param({}, ("a", "b"), {"a": {"b": 1}}, id="made"),
        pytest.param({"a": None}, ("a", "b"), {"a": {"b": 1}}, id="null"),
        pytest.param({"a": [{}]}, ("a", 0, "b"), {"a": [{"b": 1}]}, id="in-a-list"),
        pytest.param({"a": {"b": []}}, ("a", "b"), {"a": {"b": 1}}, id="replaced"),
    ],
)
def test_set_at(data: Any, path: tuple[str | int, ...], expected: Any) -> None:
    set_value_at(data, path, 1)

    assert data == expected


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        pytest.param({"a": "x"}, ("a", "b"), "a must be a mapping, but is 'x'", id="text"),
        pytest.param({"a": {"b": []}}, ("a", "b", "c"), "a.b must be a mapping, but is []", id="list"),
        pytest.param({"a": {}}, ("a", 0), "a must be a list, but is {}", id="mapping"),
        pytest.param([], ("a",), "a resource must be a mapping, but is []", id="root"),
    ],
)
def test_fields_that_cannot_be_set(data: Any, path: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(FieldError) as error:
        set_value_at(data, path, 1)

    assert str(error.value) == message


SET = "apiVersion: blueprints.cloud.google.com/v1alpha1\nkind: ProjectServiceSet\n"


@pytest.mark.parametrize(
    ("function", "data", "text"),
    [
        pytest.param(
            set_annotations, {"a": "b"}, "apiVersion: v1\nkind: A\nmetadata: {name: a, annotations: []}\n", id="a-list"
        ),
        pytest.param(
            set_labels,
            {"a": "b"},
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: x\n",
            id="a-spec-that-is-a-text",
        ),
        pytest.param(
            set_project_id,
            {"project-id": "p"},
            KPTFILE.replace("  name: app\n", "  name: app\npipeline: []\n"),
            id="pipeline",
        ),
        pytest.param(
            enable_gcp_services,
            {},
            f"{SET}metadata: {{name: a, annotations: x}}\nspec: {{services: [a.b.c]}}\n",
            id="annotations-that-are-a-text",
        ),
    ],
)
def test_field_that_cannot_be_set_is_an_error(function: KrmFunction, data: dict[str, str], text: str) -> None:
    output = function(parse_items(text, "Kptfile"), build_config("ConfigMap", data), FunctionContext())

    assert output.has_failed
    assert "must be a mapping, but is" in list_messages(output)[0][1]
    assert format_items(output.items) == text


@pytest.mark.parametrize(
    ("value", "other", "shared"),
    [
        pytest.param({"a": 1}, {"a": 1}, True, id="equal"),
        pytest.param({"a": 1}, {"a": 1.0}, False, id="a-float"),
        pytest.param({"a": 1}, {"a": True}, False, id="a-truth"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, False, id="another-order"),
    ],
)
def test_items_with_equal_data_are_shared(value: Any, other: Any, shared: bool) -> None:
    item = parse_items("kind: A\n")[0]

    first, second = item.with_shared_data(value), item.with_shared_data(other)

    assert (first is second) == shared
    assert repr(second.data) == repr(other)


@pytest.mark.parametrize(
    ("value", "other", "shared"),
    [
        pytest.param("1", "1", True, id="equal-texts"),
        pytest.param("1", "2", False, id="other-texts"),
        pytest.param(1, True, False, id="equal-and-not-the-same"),
    ],
)
def test_items_with_equal_texts_are_shared(value: Any, other: Any, shared: bool) -> None:
    item = parse_items("kind: A\n")[0]

    first, second = item.with_values([(("a",), value)]), item.with_values([(("a",), other)])

    assert (first is second) == shared
    assert second.data["a"] is other
