"""Tests of the clusters of a rule: selection, and invalid selectors."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster, is_cluster_selected
from reconciler.controllers.override_policies.policy_usage import check_rule_clusters
from reconciler.krm.numbers import parse_int64
from tests.unit.controllers.override_policies.override_world import (
    build_policy,
    list_codes,
    parse_document,
    read_policies,
)

NORTH = Cluster("north-1", {"region": "north", "ram": "64", "empty": ""})


def read_target(targets: Any) -> Any:
    return read_policies(build_policy([{"targetClusters": targets}]))


def build_label_expression(text: str) -> Any:
    return {"clusterAffinity": [{"matchExpressions": [parse_document(text)]}]}


def build_field_expression(text: str) -> Any:
    return {"clusterAffinity": [{"matchFields": [parse_document(text)]}]}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        pytest.param(None, True, id="no-targets"),
        pytest.param({}, True, id="empty-targets"),
        pytest.param({"clusters": []}, True, id="no-names"),
        pytest.param({"clusters": ["north-1", "unheard-of"]}, True, id="named"),
        pytest.param({"clusters": ["north-2"]}, False, id="not-named"),
        pytest.param({"excludeClusters": ["north-2"]}, True, id="another-excluded"),
        pytest.param({"clusters": ["north-1"], "excludeClusters": ["north-1"]}, False, id="excluded"),
        pytest.param({"clusterSelector": {}}, True, id="empty-selector"),
        pytest.param({"clusterSelector": {"region": "north", "ram": "64"}}, True, id="all-labels"),
        pytest.param({"clusterSelector": {"region": "north", "ram": "32"}}, False, id="one-label-differs"),
        pytest.param({"clusterSelector": {"gpu": ""}}, False, id="absent-is-not-empty"),
        pytest.param({"clusterSelector": {"empty": ""}}, True, id="empty-label"),
        pytest.param({"clusterAffinity": []}, True, id="no-terms"),
        pytest.param({"clusterAffinity": [{}]}, False, id="empty-term"),
        pytest.param({"clusterAffinity": [{"matchExpressions": [], "matchFields": []}]}, False, id="empty-lists"),
        pytest.param(build_label_expression("{key: region, operator: In, values: [south, north]}"), True, id="In"),
        pytest.param(build_label_expression("{key: region, operator: In, values: [south]}"), False, id="In-other"),
        pytest.param(build_label_expression("{key: gpu, operator: In, values: [a]}"), False, id="In-absent"),
        pytest.param(build_label_expression("{key: region, operator: NotIn, values: [north]}"), False, id="NotIn"),
        pytest.param(build_label_expression("{key: gpu, operator: NotIn, values: [a]}"), True, id="NotIn-absent"),
        pytest.param(build_label_expression("{key: empty, operator: Exists}"), True, id="Exists-empty"),
        pytest.param(build_label_expression("{key: gpu, operator: Exists, values: []}"), False, id="Exists-absent"),
        pytest.param(build_label_expression("{key: gpu, operator: DoesNotExist}"), True, id="DoesNotExist"),
        pytest.param(build_label_expression("{key: empty, operator: DoesNotExist}"), False, id="DoesNotExist-empty"),
        pytest.param(build_label_expression('{key: ram, operator: Gt, values: ["63"]}'), True, id="Gt"),
        pytest.param(build_label_expression('{key: ram, operator: Gt, values: ["64"]}'), False, id="Gt-equal"),
        pytest.param(build_label_expression('{key: ram, operator: Lt, values: ["0065"]}'), True, id="Lt-leading-zeros"),
        pytest.param(build_label_expression('{key: region, operator: Gt, values: ["1"]}'), False, id="Gt-of-a-word"),
        pytest.param(build_label_expression('{key: gpu, operator: Lt, values: ["1"]}'), False, id="Lt-absent"),
        pytest.param(
            build_field_expression("{key: metadata.name, operator: In, values: [north-1]}"), True, id="name-In"
        ),
        pytest.param(
            build_field_expression("{key: metadata.name, operator: NotIn, values: [north-1]}"), False, id="name-NotIn"
        ),
        pytest.param(
            {
                "clusterAffinity": [
                    parse_document(
                        "{matchExpressions: [{key: gpu, operator: Exists}], "
                        "matchFields: [{key: metadata.name, operator: In, values: [north-1]}]}"
                    )
                ]
            },
            False,
            id="both-lists-of-a-term",
        ),
        pytest.param(
            {"clusterAffinity": [{}, {"matchExpressions": [{"key": "ram", "operator": "Exists"}]}]},
            True,
            id="one-term-is-enough",
        ),
        pytest.param({"clusters": ["north-1"], "clusterSelector": {"region": "south"}}, False, id="all-parts"),
    ],
)
def test_rule_selects_a_cluster(targets: Any, expected: bool) -> None:
    policies = read_target(targets)

    (item,) = policies.valid.values()
    assert is_cluster_selected(item.rules[0].targets, NORTH) is expected


@pytest.mark.parametrize(
    ("targets", "field"),
    [
        (build_label_expression('{key: ram, operator: Gt, values: ["1.5"]}'), "values"),
        (build_label_expression('{key: ram, operator: Gt, values: ["1", "2"]}'), "values"),
        (build_label_expression('{key: ram, operator: Lt, values: ["-1"]}'), "values"),
        (build_label_expression('{key: ram, operator: Lt, values: ["9223372036854775808"]}'), "values"),
        (build_label_expression('{key: ram, operator: Lt, values: ["٣"]}'), "values"),
        (build_label_expression("{key: ram, operator: Lt}"), "values"),
        (build_label_expression("{key: ram, operator: Exists, values: [a]}"), "values"),
        (build_label_expression("{key: ram, operator: DoesNotExist, values: [a]}"), "values"),
        (build_label_expression("{key: ram, operator: In, values: []}"), "values"),
        (build_label_expression("{key: ram, operator: NotIn}"), "values"),
        (build_label_expression("{key: ram, operator: In, values: ['a b']}"), "values"),
        (build_label_expression("{key: -ram, operator: Exists}"), "key"),
        (build_label_expression("{key: ram, operator: exists}"), "operator"),
        (build_label_expression("{key: ram}"), "operator"),
        (build_field_expression("{key: metadata.name, operator: In, values: [a, b]}"), "values"),
        (build_field_expression("{key: metadata.name, operator: Exists}"), "operator"),
        (build_field_expression("{key: spec.region, operator: In, values: [a]}"), "key"),
        ({"clusterSelector": {"a b": "c"}}, "clusterSelector"),
        ({"clusterSelector": {"a": "c d"}}, "clusterSelector"),
    ],
)
def test_invalid_selector_makes_the_policy_invalid(targets: Any, field: str) -> None:
    policies = read_target(targets)

    assert policies.valid == {}
    assert {*list_codes(policies.findings)} == {"SelectorInvalid"}
    assert any(field in finding.message.partition(" must ")[0] for finding in policies.findings)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("0204", 204),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-5", -5),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("٣", None),
        ("9" * 5000, None),
    ],
)
def test_label_is_parsed_as_a_number(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


def test_unknown_and_unmatched_clusters_are_warnings_at_the_rule() -> None:
    rules = [
        {"targetClusters": {"clusters": ["north-1", "gone", "gone"], "excludeClusters": ["gone"]}},
        {"targetClusters": {"clusterSelector": {"region": "west"}}},
        {},
    ]

    findings = check_rule_clusters(read_policies(build_policy(rules)).valid.values(), [NORTH])

    assert [(finding.code, finding.severity, finding.location.pointer) for finding in findings] == [
        ("UnknownCluster", "warning", "/spec/overrideRules/0/targetClusters"),
        ("RuleMatchesNoCluster", "warning", "/spec/overrideRules/1/targetClusters"),
    ]
    assert '"gone"' in findings[0].message


def test_uncertain_cluster_has_no_warning() -> None:
    rules = [
        {"targetClusters": {"clusters": ["doubtful", "gone"]}},
        {"targetClusters": {"clusterSelector": {"region": "west"}}},
        {"rollout": {"waves": [{"clusters": ["doubtful"]}]}},
    ]

    findings = check_rule_clusters(read_policies(build_policy(rules)).valid.values(), [NORTH], {"doubtful"})

    assert [(finding.code, '"gone"' in finding.message) for finding in findings] == [("UnknownCluster", True)]


def test_problems_of_waves_are_warnings_at_the_wave() -> None:
    waves = [
        {"clusters": ["gone"]},
        {"clusterSelector": {"region": "north"}},
        {"clusters": ["north-1"], "excludeClusters": ["gone"]},
    ]
    south = Cluster("south-1", {})

    findings = check_rule_clusters(
        read_policies(build_policy([{"rollout": {"waves": waves}}])).valid.values(), [NORTH, south]
    )

    start = "/spec/overrideRules/0/rollout/waves"
    assert [(finding.code, finding.severity, finding.location.pointer) for finding in findings] == [
        ("UnknownCluster", "warning", f"{start}/0"),
        ("WaveMatchesNoCluster", "warning", f"{start}/0"),
        ("UnknownCluster", "warning", f"{start}/2"),
        ("WaveMatchesNoCluster", "warning", f"{start}/2"),
    ]
    assert findings[3].message == (
        "spec.overrideRules[0].rollout.waves[2] is skipped, because it selects no cluster, or only clusters of earlier waves"
    )
    assert findings[0].location.line == 1
