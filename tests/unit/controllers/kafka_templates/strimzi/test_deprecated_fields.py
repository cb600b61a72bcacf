"""Tests of the check for Kafka and KafkaNodePool fields that current Strimzi versions do not support."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.kafka_templates.strimzi.kafka_checks import find_deprecated_fields
from reconciler.packages.package import Package


def read_messages(api_version: str, kind: str, spec: str) -> list[str]:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a, namespace: b}}\nspec: {spec}\n"
    (resource,) = Package(FileTree({"a.yaml": File(text.encode())})).resources
    return [note.message for note in find_deprecated_fields(resource)]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "expected"),
    [
        pytest.param("kafka.strimzi.io/v1", "Kafka", "{kafka: {}}", [], id="a-present-kafka"),
        pytest.param("kafka.strimzi.io/v1", "KafkaNodePool", "{replicas: 1, storage: {}}", [], id="a-present-pool"),
        pytest.param("kafka.strimzi.io/v1", "Kafka", "{kafka: {replicas: null}}", [], id="null-counts-as-absent"),
        pytest.param(
            "kafka.strimzi.io/v1beta2", "Kafka", "{kafka: {replicas: 3, storage: {}, resources: {}}}",
            ["v1beta2", "replicas", "storage", "resources"], id="all-that-is-old",
        ),
        pytest.param("kafka.strimzi.io/v1beta2", "KafkaNodePool", "{replicas: 1}", ["v1beta2"], id="an-old-pool"),
        pytest.param("kafka.strimzi.io/v1beta2", "KafkaTopic", "{replicas: 1}", [], id="another-kind"),
        pytest.param("example.com/v1beta2", "Kafka", "{kafka: {replicas: 1}}", [], id="another-group"),
    ],
)  # fmt: skip
def test_deprecated_fields_are_reported(api_version: str, kind: str, spec: str, expected: list[str]) -> None:
    result = read_messages(api_version, kind, spec)

    assert len(result) == len(expected)
    assert all(word in message for word, message in zip(expected, result, strict=True))
