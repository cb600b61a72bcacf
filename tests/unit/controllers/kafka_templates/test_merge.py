"""Tests of the merge of a Kafka template with a pool template. Each row is one pair of templates and its result."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.kafka_templates.package_templates import apply_templates
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_builders import (
    MISSING,
    PACKAGE,
    format_codes,
    kafka,
    merge,
    pair,
    pool,
    sources_of,
    template_of,
    tree,
)

K = {"metadata": {"labels": {"tier": "gold"}}, "priorityClassName": "high"}
V = {"terminationGracePeriodSeconds": 90}
SIDES: dict[str, Any] = {"missing": MISSING, "null": None, "empty": {}}
# The columns are the Kafka template, the pool template, the merged value and its source.
MATRIX = [
    ("missing", "missing", MISSING, "unset"),
    ("missing", "null", MISSING, "unset"),
    ("missing", "empty", {}, "pool"),
    ("missing", "value", V, "pool"),
    ("null", "missing", MISSING, "unset"),
    ("null", "null", MISSING, "unset"),
    ("null", "empty", {}, "pool"),
    ("null", "value", V, "pool"),
    ("empty", "missing", {}, "kafka"),
    ("empty", "null", {}, "kafka"),
    ("empty", "empty", {}, "pool-reset"),
    ("empty", "value", V, "pool"),
    ("value", "missing", K, "kafka"),
    ("value", "null", K, "kafka"),
    ("value", "empty", {}, "pool-reset"),
    ("value", "value", V, "pool"),
]


def side(name: str, value: Any) -> Any:
    chosen = SIDES.get(name, value)
    return {} if chosen is MISSING else {"pod": chosen}


@pytest.mark.parametrize(("parent", "child", "expected", "source"), MATRIX, ids=[f"{k}-{p}" for k, p, *_ in MATRIX])
def test_all_combinations_of_missing_null_empty_and_value(parent: str, child: str, expected: Any, source: str) -> None:
    package = pair(side(parent, K), side(child, V))

    written = template_of(package)
    assert written is MISSING if expected is MISSING else is_equal_data(written, {"pod": expected})
    assert sources_of(package).get("pod", "unset") == source
    assert ("W NullTemplateProperty" in format_codes(package.findings)) == (child == "null")


ORDERS = {
    "pod": {
        "metadata": {"labels": {"tier": "streaming"}, "annotations": {"team.example.com/owner": "data-platform"}},
        "priorityClassName": "platform-high",
    },
    "kafkaContainer": {"securityContext": {"runAsUser": 4100}, "env": [{"name": "TZ", "value": "UTC"}]},
    "persistentVolumeClaim": {"metadata": {"labels": {"backup": "nightly"}}},
    "podDisruptionBudget": {"maxUnavailable": 1},
}
SHARED = {name: value for name, value in ORDERS.items() if name != "podDisruptionBudget"}
DUMP = {"env": [{"name": "HEAP_DUMP", "value": "on"}]}
STRICT = {"priorityClassName": "platform-high", "tolerations": [{"key": "dedicated", "operator": "Exists"}]}
CLAIMS = {"type": "persistent-claim", "size": "1Gi"}
ALL_KAFKA = dict.fromkeys(SHARED, "kafka")
OF_POD = ["metadata.labels.tier", 'metadata.annotations["team.example.com/owner"]', "priorityClassName"]
OF_CONTAINER = ["securityContext.runAsUser", "env[TZ]"]


@pytest.mark.parametrize(
    ("child", "expected", "source_by_property", "hidden", "values"),
    [
        pytest.param(MISSING, SHARED, ALL_KAFKA, {}, [], id="A-missing"),
        pytest.param({}, SHARED, ALL_KAFKA, {}, [], id="A-empty"),
        pytest.param(None, SHARED, ALL_KAFKA, {}, [], id="A-null"),
        pytest.param(
            {"kafkaContainer": DUMP},
            {**SHARED, "kafkaContainer": DUMP},
            {**ALL_KAFKA, "kafkaContainer": "pool"},
            {"kafkaContainer": OF_CONTAINER},
            ["W ShadowedTemplateFields"],
            id="B-a-value-replaces",
        ),
        pytest.param(
            {"pod": {}},
            {**SHARED, "pod": {}},
            {**ALL_KAFKA, "pod": "pool-reset"},
            {"pod": OF_POD},
            [],
            id="C-empty-resets",
        ),
        pytest.param({"pod": None}, SHARED, ALL_KAFKA, {}, ["W NullTemplateProperty"], id="D-null-inherits"),
        pytest.param(
            {"pod": {"metadata": {}}},
            {**SHARED, "pod": {"metadata": {}}},
            {**ALL_KAFKA, "pod": "pool"},
            {"pod": OF_POD},
            ["W ShadowedTemplateFields"],
            id="E-empty-inside-replaces",
        ),
        pytest.param(
            {"pod": STRICT},
            {**SHARED, "pod": STRICT},
            {**ALL_KAFKA, "pod": "pool"},
            {"pod": OF_POD[:2]},
            ["W ShadowedTemplateFields"],
            id="F-repeated-settings-are-kept",
        ),
        pytest.param(
            {"podSet": {"metadata": {"labels": {"team": "a"}}}},
            {"podSet": {"metadata": {"labels": {"team": "a"}}}, **SHARED},
            {"podSet": "pool", **ALL_KAFKA},
            {},
            [],
            id="G-another-property",
        ),
        pytest.param(
            {"podDisruptionBudget": {"maxUnavailable": 2}},
            SHARED,
            ALL_KAFKA,
            {},
            ["W UnknownTemplateProperty"],
            id="H-of-kafka-alone",
        ),
        pytest.param(
            {"pod": {}, "kafkaContainer": DUMP},
            {**SHARED, "pod": {}, "kafkaContainer": DUMP},
            {**ALL_KAFKA, "pod": "pool-reset", "kafkaContainer": "pool"},
            {"pod": OF_POD, "kafkaContainer": OF_CONTAINER},
            ["W ShadowedTemplateFields"],
            id="I-reset-and-own-value",
        ),
    ],
)
def test_merged_templates_of_a_complete_kafka(
    child: Any, expected: Any, source_by_property: Any, hidden: Any, values: list[str]
) -> None:
    package = pair(ORDERS, child, storage=CLAIMS)

    assert is_equal_data(template_of(package), expected)
    assert sources_of(package) == source_by_property
    (effect,) = package.effects
    assert {item["name"]: item["shadowed"] for item in effect.as_data()["properties"] if "shadowed" in item} == hidden
    assert format_codes(package.findings) == values


@pytest.mark.parametrize(
    ("parent", "child", "expected"),
    [
        pytest.param(
            {"pod": {"metadata": {"labels": {"a": "b"}}}},
            {"pod": {"tolerations": []}},
            {"pod": {"tolerations": []}},
            id="disjoint-keys-are-not-united",
        ),
        pytest.param(
            {"pod": {"tolerations": [{"key": "a"}, {"key": "b"}]}},
            {"pod": {"tolerations": [{"key": "c"}]}},
            {"pod": {"tolerations": [{"key": "c"}]}},
            id="lists-are-not-united",
        ),
        pytest.param(
            {"pod": {"terminationGracePeriodSeconds": 0, "enableServiceLinks": False, "imagePullSecrets": []}},
            {},
            {"pod": {"terminationGracePeriodSeconds": 0, "enableServiceLinks": False, "imagePullSecrets": []}},
            id="falsy-values-are-inherited",
        ),
        pytest.param(
            {"pod": {"hostUsers": True}},
            {"pod": {"hostUsers": False}, "kafkaContainer": {"env": []}},
            {"pod": {"hostUsers": False}, "kafkaContainer": {"env": []}},
            id="falsy-values-are-kept",
        ),
        pytest.param(
            {"kafkaContainer": {"env": [{"name": "DEBUG", "value": ""}]}},
            {},
            {"kafkaContainer": {"env": [{"name": "DEBUG", "value": ""}]}},
            id="an-empty-text-is-a-value",
        ),
        pytest.param({"pod": {}}, MISSING, {"pod": {}}, id="an-empty-property-is-inherited"),
        pytest.param({"bootstrapService": {"metadata": {}}}, {}, MISSING, id="properties-of-kafka-alone-stay-there"),
        pytest.param(
            {"pod": {"shareProcessNamespace": True}},
            {},
            {"pod": {"shareProcessNamespace": True}},
            id="unknown-fields-inside-pass",
        ),
        pytest.param(MISSING, {"pod": None, "podSet": None}, MISSING, id="nothing-but-nulls"),
        pytest.param(MISSING, {}, MISSING, id="nothing-at-all"),
        pytest.param(None, {"pod": {}}, {"pod": {}}, id="a-null-template-of-kafka"),
    ],
)
def test_merge_edge_cases(parent: Any, child: Any, expected: Any) -> None:
    package = pair(parent, child)

    written = template_of(package)
    assert written is MISSING if expected is MISSING else is_equal_data(written, expected)


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_merge_does_not_depend_on_roles(role: str) -> None:
    parent = {"perPodService": {"metadata": {"labels": {"a": "b"}}}, "initContainer": {"env": []}}

    package = merge({"k.yaml": kafka(parent), "p.yaml": pool(roles=[role]), "o.yaml": pool(name="others")})

    assert is_equal_data(template_of(package, "p.yaml"), parent)
    assert format_codes(package.findings).count("I TemplateWithoutEffect") == 4


def test_properties_have_the_order_of_the_rule() -> None:
    names = ["initContainer", "kafkaContainer", "pod", "podSet"]

    package = pair({name: {} for name in names}, {"perPodIngress": {}, "persistentVolumeClaim": {}})

    assert [*template_of(package)] == [
        "podSet",
        "pod",
        "perPodIngress",
        "persistentVolumeClaim",
        "kafkaContainer",
        "initContainer",
    ]


def test_property_that_kafka_drops_is_absent_in_the_next_pass() -> None:
    both = {"pod": K, "kafkaContainer": {"env": []}}
    first, then = pair(both, {"podSet": {}}), pair({"pod": K}, {"podSet": {}})
    last = pair({}, MISSING)

    assert is_equal_data(template_of(first), {"podSet": {}, **both})
    assert is_equal_data(template_of(then), {"podSet": {}, "pod": K})
    assert last.files["pool.yaml"].data.decode() == pool()


def test_merged_output_is_refused_as_input() -> None:
    once = pair({"pod": K}, {"podSet": {}})

    package = merge(once.files)

    assert format_codes(package.findings) == ["E MaterialisedInput"]
    assert package.files == once.files


def test_same_input_gives_the_same_bytes() -> None:
    files = tree({"kafka.yaml": kafka(ORDERS), "pool.yaml": pool({"pod": {}})})
    pairs = find_pairs({PACKAGE: files})

    first, second = apply_templates(files, pairs), apply_templates(files, pairs)

    assert (first.files, first.findings, first.as_data()) == (second.files, second.findings, second.as_data())
    assert first.files["kafka.yaml"] == files["kafka.yaml"]


def test_pools_do_not_share_values() -> None:
    package = merge({"k.yaml": kafka({"pod": K}), "a.yaml": pool(name="a"), "b.yaml": pool(name="b")})

    entry, other = (
        templated_resource.document.data["spec"]["template"]
        for templated_resource in package.resources
        if templated_resource.effect
    )
    assert is_equal_data(entry, other)
    assert entry["pod"] is not other["pod"]
    assert entry["pod"]["metadata"] is not other["pod"]["metadata"]


@pytest.mark.parametrize(
    ("parent", "child", "pointers"),
    [
        pytest.param([], MISSING, ["/spec/kafka/template", "/spec/template"], id="kafkas-template-a-list"),
        pytest.param("x", {"pod": {}}, ["/spec/kafka/template", "/spec/template"], id="kafkas-template-a-text"),
        pytest.param({"pod": [1]}, MISSING, ["/spec/kafka/template/pod", "/spec/template"], id="kafkas-property"),
        pytest.param({"pod": 0}, {"pod": {}}, ["/spec/kafka/template/pod", "/spec/template"], id="kafkas-hidden"),
        pytest.param({}, [], ["/spec/template"], id="template-a-list"),
        pytest.param({}, False, ["/spec/template"], id="template-false"),
        pytest.param({}, {"pod": "x", "podSet": []}, ["/spec/template/podSet", "/spec/template/pod"], id="properties"),
    ],
)
def test_template_that_is_no_mapping_is_an_error(parent: Any, child: Any, pointers: list[str]) -> None:
    package = pair(parent, child)

    assert format_codes(package.findings) == ["E InvalidTemplateType"] * len(pointers)
    assert [finding.location.pointer for finding in package.findings] == pointers
    assert package.files == tree({"kafka.yaml": kafka(parent), "pool.yaml": pool(child)})
    assert package.effects == ()


def test_property_equal_to_the_inherited_one_is_reported() -> None:
    package = pair({"pod": V}, {"pod": dict(V)})

    assert format_codes(package.findings) == ["I RedundantOverride"]
