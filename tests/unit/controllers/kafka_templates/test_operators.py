"""Operators before and after 0.49 make one thing of a materialised pool: what newer ones make of the inputs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_world import MISSING, SHARED, data_of, kafka, pair, pool


def before_049(kafka_template: Any, pool_template: Any) -> dict[str, Any]:
    """A pool's template, if there is one, hides all of the Kafka's, as the seed describes it ("Current situation")."""
    chosen = kafka_template if pool_template is None else pool_template
    return {name: (chosen or {}).get(name) for name in SHARED}


def since_049(kafka_template: Any, pool_template: Any) -> dict[str, Any]:
    """Every property is the pool's, or if that is null the Kafka's, as the seed proposes it."""
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
def test_every_operator_means_the_same(parent: str, child: str) -> None:
    inputs = parse_yaml(kafka(SIDES[parent])).documents[0].data, parse_yaml(pool(SIDES[child])).documents[0].data
    package = pair(SIDES[parent], SIDES[child])

    theirs = data_of(package, "kafka.yaml")["spec"]["kafka"].get("template")
    written = data_of(package)["spec"].get("template")
    expected = since_049(inputs[0]["spec"]["kafka"].get("template"), inputs[1]["spec"].get("template"))
    assert is_equal_data(since_049(theirs, written), expected)
    assert is_equal_data(before_049(theirs, written), expected)


def test_without_us_they_differ() -> None:
    parent, child = SIDES["value"], SIDES["other"]

    assert not is_equal_data(before_049(parent, child), since_049(parent, child))
