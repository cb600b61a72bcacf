"""Tests of template changes: changed properties, affected objects, and pod restarts."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.kafka_templates.effective_templates import find_template_changes
from reconciler.controllers.kafka_templates.pairing import TemplatePairs, find_pairs
from tests.unit.controllers.kafka_templates.template_builders import MISSING, PACKAGE, kafka, key, merge, pool, tree

HIGH, LOW = {"priorityClassName": "high"}, {"priorityClassName": "low"}
LABEL = {"metadata": {"labels": {"a": "b"}}}
CLAIM = {"storage": {"type": "persistent-claim"}}
NODEPORT = {"listeners": [{"name": "x", "type": "nodeport", "port": 9099}]}


def pair_templates(parent: Any, child: Any, kafka_spec: Any = None, **spec: Any) -> TemplatePairs:
    files = {"k.yaml": kafka(parent, **(kafka_spec or {})), "p.yaml": pool(child, **spec)}
    return find_pairs({PACKAGE: tree(files)})


@pytest.mark.parametrize(
    ("before", "now", "spec", "properties", "objects", "rolls"),
    [
        pytest.param(({"pod": HIGH}, {}), ({"pod": LOW}, {}), {}, ["pod"], ["Pod"], True, id="an-inherited-pod"),
        pytest.param(({}, {}), ({}, {"pod": LABEL}), {}, ["pod"], ["Pod"], True, id="a-label-rolls"),
        pytest.param(({"pod": HIGH}, {}), ({"pod": HIGH}, {"pod": {}}), {}, ["pod"], ["Pod"], True, id="a-reset"),
        pytest.param(
            ({}, {}), ({"kafkaContainer": {"env": []}}, {}), {}, ["kafkaContainer"], ["Pod"], True, id="a-container"
        ),
        pytest.param(({}, {}), ({"podSet": LABEL}, {}), {}, ["podSet"], ["StrimziPodSet"], False, id="the-pod-set"),
        pytest.param(
            ({}, {}),
            ({"persistentVolumeClaim": LABEL}, {}),
            CLAIM,
            ["persistentVolumeClaim"],
            ["PersistentVolumeClaim"],
            False,
            id="claims",
        ),
        pytest.param(
            ({}, {}), ({"persistentVolumeClaim": LABEL}, {}), {}, ["persistentVolumeClaim"], [], False, id="no-claims"
        ),
        pytest.param(
            ({}, {}), ({"initContainer": {"env": []}}, {}), {}, ["initContainer"], [], False, id="no-init-container"
        ),
        pytest.param(
            ({"podSet": LABEL, "pod": HIGH}, {}),
            ({}, {}),
            {},
            ["podSet", "pod"],
            ["StrimziPodSet", "Pod"],
            True,
            id="several",
        ),
    ],
)
def test_change_reports_properties_objects_and_restarts(
    before: Any, now: Any, spec: Any, properties: list[str], objects: list[str], rolls: bool
) -> None:
    (template_change,) = find_template_changes(pair_templates(*before, **spec), pair_templates(*now, **spec))

    assert template_change.as_data() == {
        "resource": "KafkaNodePool/shop/brokers",
        "properties": properties,
        "objects": objects,
        "rolls": rolls,
    }


def test_change_of_an_existing_init_container_restarts_pods() -> None:
    before, now = pair_templates({}, {}, NODEPORT), pair_templates({"initContainer": {"env": []}}, {}, NODEPORT)

    (template_change,) = find_template_changes(before, now)

    assert (template_change.restarts_pods, template_change.affected_kinds) == (True, ("Pod",))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(({"pod": HIGH}, {"pod": LOW}), ({"pod": LABEL}, {"pod": LOW}), id="hidden"),
        pytest.param(({"podDisruptionBudget": {}}, {}), ({}, {}), id="of-kafka-alone"),
        pytest.param(({"pod": HIGH}, {}), ({"pod": HIGH}, {"pod": HIGH}), id="repeated"),
        pytest.param(({}, None), ({}, {"pod": None}), id="nulls"),
        pytest.param(({}, {}), ({"pod": 7}, {}), id="invalid-property"),
    ],
)
def test_change_without_effect_is_not_reported(before: Any, now: Any) -> None:
    assert find_template_changes(pair_templates(*before), pair_templates(*now)) == ()


def test_published_merged_template_is_no_change() -> None:
    files = {"k.yaml": kafka({"pod": HIGH, "podSet": {}}), "p.yaml": pool({"podSet": LABEL})}
    published = find_pairs({PACKAGE: merge(files).files})

    assert find_template_changes(published, find_pairs({PACKAGE: tree(files)})) == ()
    assert [
        template_change.restarts_pods
        for template_change in find_template_changes(published, pair_templates({"pod": LOW}, {"podSet": LABEL}))
    ] == [True]


def test_pool_with_a_new_parent() -> None:
    kafkas = {"a.yaml": kafka({"pod": HIGH}, name="a"), "b.yaml": kafka({"pod": HIGH}, name="b")}

    def pair_with(name: str) -> TemplatePairs:
        return find_pairs({PACKAGE: tree({**kafkas, "p.yaml": pool(cluster=name)})})

    (template_change,) = find_template_changes(pair_with("a"), pair_with("b"))

    assert (template_change.properties, template_change.previous_parent) == ((), key("a", "Kafka"))
    assert template_change.as_data()["movedFrom"] == "Kafka/shop/a"


def test_new_pools_and_orphans_are_not_reported() -> None:
    nothing, orphan = find_pairs({}), find_pairs({PACKAGE: tree({"p.yaml": pool({"pod": HIGH})})})
    whole = pair_templates({"pod": LOW}, MISSING)

    assert (
        find_template_changes(nothing, whole)
        == find_template_changes(whole, nothing)
        == find_template_changes(whole, orphan)
        == ()
    )
