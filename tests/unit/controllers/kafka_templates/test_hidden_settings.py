"""Tests of hidden settings: which inherited settings a property hides, and the template that keeps all of them."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.kafka_templates.merge import find_hidden_settings
from reconciler.krm.yaml import parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_builders import pair, template_of

ENV = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


@pytest.mark.parametrize(
    ("inherited", "own", "shadowed", "overridden"),
    [
        pytest.param({}, {"a": 1}, [], [], id="nothing-inherited"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [], [], id="repeated"),
        pytest.param({"a": 1}, {}, ["a"], [], id="missing"),
        pytest.param({"a": 1}, {"a": 2}, [], ["a"], id="another"),
        pytest.param({"a": 1}, {"a": 1.0}, [], ["a"], id="a-float-is-another"),
        pytest.param({"a": False}, {}, ["a"], [], id="falsy-values-are-settings"),
        pytest.param({"a": None}, {"a": 1}, [], ["a"], id="null-is-there"),
        pytest.param({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"d": 2}}}, ["a.b.c"], [], id="deep"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": "x"}, ["a.b", "a.c"], [], id="text-replaces-mapping"),
        pytest.param({"a": {"x.y/z": 1}}, {"a": {}}, ['a["x.y/z"]'], [], id="dots-are-quoted"),
        pytest.param({"x.y": {"b": 1}}, {}, ['["x.y"].b'], [], id="dots-first"),
        pytest.param({"a": {'"': 1}}, {}, ['a["\\""]'], [], id="quotes-are-escaped"),
        pytest.param({"a": {}, "b": {"c": {}}}, {}, [], [], id="empty-mappings-set-nothing"),
        pytest.param({"imagePullSecrets": []}, {}, ["imagePullSecrets"], [], id="empty-lists-set-something"),
        pytest.param({"l": [1, 2]}, {"l": [2, 1]}, [], ["l"], id="a-list-is-one"),
        pytest.param({"l": [1]}, {}, ["l"], [], id="a-list-is-gone"),
        pytest.param({"env": ENV}, {"env": ENV[:1]}, ["env[B]"], [], id="named-entries"),
        pytest.param({"env": ENV}, {"env": ENV[::-1]}, [], [], id="their-order-does-not-matter"),
        pytest.param({"env": ENV}, {"env": [{"name": "A", "value": "3"}]}, ["env[B]"], ["env[A]"], id="another-entry"),
        pytest.param({"env": ENV}, {"env": "x"}, ["env[A]", "env[B]"], [], id="entries-of-no-list"),
        pytest.param(
            {"tolerations": [{"key": "k"}, {"operator": "Exists"}]},
            {},
            ["tolerations[k]", "tolerations[]"],
            [],
            id="keys",
        ),
        pytest.param({"hostAliases": [{"ip": "::1"}]}, {}, ["hostAliases[::1]"], [], id="addresses"),
        pytest.param({"volumeMounts": [{"mountPath": "/mnt/a"}]}, {}, ["volumeMounts[/mnt/a]"], [], id="paths"),
        pytest.param({"volumes": ["x"]}, {}, ["volumes[]"], [], id="entries-without-a-name"),
    ],
)
def test_hidden_settings_are_found_by_path(
    inherited: Any, own: Any, shadowed: list[str], overridden: list[str]
) -> None:
    hidden_settings = find_hidden_settings(inherited, own)

    assert [*hidden_settings.shadowed] == shadowed
    assert [*hidden_settings.overridden] == overridden


def test_hidden_settings_are_reported_once_per_property() -> None:
    parent = {
        "pod": {"priorityClassName": "a", "tolerations": [{"key": "k"}]},
        "podSet": {"metadata": {"labels": {"a": "b"}}},
    }

    package = pair(parent, {"pod": {"priorityClassName": "b"}, "podSet": {}})

    (finding,) = package.findings
    assert finding.message == (
        "spec.template.pod completely replaces the value inherited from Kafka shop/orders, so that these inherited settings have no effect: tolerations[k]"
    )
    assert (finding.location.file, finding.location.pointer, finding.severity) == (
        "pool.yaml",
        "/spec/template/pod",
        "warning",
    )
    properties = {item["name"]: item for item in package.effects[0].as_data()["properties"]}
    assert properties["pod"]["overridden"] == ["priorityClassName"]
    assert properties["podSet"]["shadowed"] == ["metadata.labels.a"]


@pytest.mark.parametrize(
    ("parent", "child", "expected"),
    [
        pytest.param(
            {"kafkaContainer": {"env": ENV, "securityContext": {"runAsUser": 1}}},
            {"kafkaContainer": {"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}},
            {
                "kafkaContainer": {
                    "env": [ENV[0], {"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
                    "securityContext": {"runAsUser": 1},
                }
            },
            id="named-entries-are-united",
        ),
        pytest.param(
            {"pod": {"metadata": {"labels": {"a": "1", "b": "1"}}, "topologySpreadConstraints": [{"maxSkew": 1}]}},
            {"pod": {"metadata": {"labels": {"b": "2"}}, "topologySpreadConstraints": []}},
            {"pod": {"metadata": {"labels": {"a": "1", "b": "2"}}, "topologySpreadConstraints": []}},
            id="lists-without-names-are-the-pools",
        ),
        pytest.param(
            {"pod": {"tolerations": [{"operator": "Exists"}, {"key": "k"}]}},
            {"pod": {"tolerations": [{"operator": "Exists"}]}},
            {"pod": {"tolerations": [{"key": "k"}, {"operator": "Exists"}]}},
            id="equal-entries-without-a-name",
        ),
        pytest.param(
            {"pod": {"priorityClassName": "a"}, "podSet": {"metadata": {}}},
            {"pod": {"hostUsers": False}, "podSet": {}, "kafkaContainer": {"env": []}},
            {"pod": {"priorityClassName": "a", "hostUsers": False}, "podSet": {}, "kafkaContainer": {"env": []}},
            id="reset-is-kept",
        ),
    ],
)
def test_full_template_repeats_the_inherited_settings(parent: Any, child: Any, expected: Any) -> None:
    (effect,) = pair(parent, child).effects
    data = parse_yaml(effect.full_template_yaml).documents[0].data

    assert is_equal_data(data, {"spec": {"template": expected}})
    package = pair(parent, data["spec"]["template"])
    assert [finding for finding in package.findings if finding.code == "ShadowedTemplateFields"] == []
    assert is_equal_data(
        template_of(package)["pod" if "pod" in expected else "kafkaContainer"], next(iter(expected.values()))
    )


@pytest.mark.parametrize("child", [None, {}, {"pod": None}, {"kafkaContainer": {"env": []}}])
def test_full_template_is_empty_when_nothing_is_hidden(child: Any) -> None:
    (effect,) = pair({"pod": {"hostUsers": False}}, child).effects

    assert effect.full_template_yaml == ""
