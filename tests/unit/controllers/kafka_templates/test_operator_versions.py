"""Tests of merged templates with both Strimzi behaviors: before 0.49 a pool template hides the whole Kafka template,
and since 0.49 each property is inherited separately. Both must read the same values from a merged pool.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_builders import MISSING, SHARED, data_of, kafka, pair, pool


def read_before_049(kafka_template: Any, pool_template: Any) -> dict[str, Any]:
    """Return the effective properties in Strimzi before 0.49, where a pool template replaces the Kafka template."""
    chosen = kafka_template if pool_template is None else pool_template
    return {name: (chosen or {}).get(name) for name in SHARED}


def read_since_049(kafka_template: Any, pool_template: Any) -> dict[str, Any]:
    """Return the effective properties in Strimzi 0.49 and later, where a null property of the pool is inherited."""
    ours, theirs = pool_template or {}, kafka_template or {}
    return {name: theirs.get(name) if ours.get(name) is None else ours[name] for name in SHARED}


SIDES: dict[str, Any] = {
    "no-template": MISSING,
    "null-template": None,
    "empty-template": {},
    "null": {"pod": None},
    "empty": {"pod": {}},
    "empty-metadata": {"pod": {"metadata": {}}},
    "value": {"pod": {"priorityClassName": "x"}},
    "falsy": {"pod": {"hostUsers": False}, "kafkaContainer": {"env": []}},
    "other": {"podSet": {"metadata": {"labels": {"a": "b"}}}},
    "other-and-null": {"podSet": {}, "pod": None},
    "of-kafka-alone": {"podDisruptionBudget": {"maxUnavailable": 1}},
}


@pytest.mark.parametrize(("parent", "child"), [*product(SIDES, SIDES)])
def test_all_operator_versions_read_the_same_merged_template(parent: str, child: str) -> None:
    inputs = parse_yaml(kafka(SIDES[parent])).documents[0].data, parse_yaml(pool(SIDES[child])).documents[0].data
    package = pair(SIDES[parent], SIDES[child])

    theirs = data_of(package, "kafka.yaml")["spec"]["kafka"].get("template")
    written = data_of(package)["spec"].get("template")
    expected = read_since_049(inputs[0]["spec"]["kafka"].get("template"), inputs[1]["spec"].get("template"))
    assert is_equal_data(read_since_049(theirs, written), expected)
    assert is_equal_data(read_before_049(theirs, written), expected)


def test_operator_versions_differ_without_the_merge() -> None:
    parent, child = SIDES["value"], SIDES["other"]

    assert not is_equal_data(read_before_049(parent, child), read_since_049(parent, child))
