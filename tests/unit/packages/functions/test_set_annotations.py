"""Tests of set-annotations: which fields receive annotations."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.function import get_value_at
from reconciler.packages.functions.labels_and_annotations import set_annotations
from tests.unit.packages.builders import build_config, list_messages, run_function

COLOR = {"color": "red"}
COLORED = build_config("ConfigMap", COLOR)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("apiVersion: v1\nkind: A\nmetadata: {name: a}\n", "metadata.annotations", id="everything"),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
            "spec.template.metadata.annotations",
            id="template",
        ),
        pytest.param(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n",
            "spec.jobTemplate.spec.template.metadata.annotations",
            id="cron-job",
        ),
    ],
)
def test_annotated_fields(text: str, path: str) -> None:
    output = run_function(set_annotations, text, build_config("ConfigMap", COLOR))

    assert get_value_at(output.items[0].data, tuple(path.split("."))) == COLOR
    assert path in [result.field for result in output.results]


@pytest.mark.parametrize(
    ("configuration", "failed"),
    [
        pytest.param(build_config("SetAnnotations", {"annotations": COLOR}), False, id="own-kind"),
        pytest.param(
            build_config("SetAnnotationConfig", {"annotations": COLOR, "fieldSpecs": [{"path": "a"}]}),
            False,
            id="legacy",
        ),
        pytest.param(build_config("SetAnnotations", {"annotations": COLOR}, "v1"), True, id="own-kind-of-no-group"),
        pytest.param(build_config("ConfigMap", {}), True, id="empty"),
        pytest.param(None, True, id="none"),
        pytest.param(
            build_config(
                "SetAnnotations", {"annotations": COLOR, "fieldSpecs": [{}], "additionalAnnotationFields": [{}]}
            ),
            True,
            id="two-spellings-of-fields",
        ),
    ],
)
def test_configuration(configuration: dict[str, Any] | None, failed: bool) -> None:
    output = run_function(set_annotations, "apiVersion: v1\nkind: A\nmetadata: {name: a}\n", configuration)

    assert output.has_failed is failed
    assert bool(output.items[0].annotations) is not failed


def test_message() -> None:
    output = run_function(
        set_annotations,
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\n",
        build_config("ConfigMap", {"b": "2", "a": "1"}),
    )

    assert list_messages(output) == [("info", 'set annotations: {"a":"1","b":"2"}')]


def test_results_are_sorted_by_position() -> None:
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
    output = run_function(
        set_annotations, f"{deployment}---\napiVersion: v1\nkind: A\nmetadata: {{name: a}}\n", COLORED
    )

    assert [(result.index, result.field) for result in output.results] == [
        (0, "metadata.annotations"),
        (0, "spec.template.metadata.annotations"),
        (1, "metadata.annotations"),
    ]


@pytest.mark.parametrize("key", ["additionalAnnotationFields", "fieldSpecs"])
def test_additional_fields(key: str) -> None:
    fields = [{"kind": "A", "path": "spec/notes", "create": True}]
    text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n"
    output = run_function(set_annotations, text, build_config("SetAnnotations", {"annotations": COLOR, key: fields}))

    assert [get_value_at(item.data, ("spec", "notes")) for item in output.items] == [COLOR, None]


def test_nothing_to_annotate() -> None:
    assert list_messages(run_function(set_annotations, "", COLORED)) == [("info", "no annotations applied")]
