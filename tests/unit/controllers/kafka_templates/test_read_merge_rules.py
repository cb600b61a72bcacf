"""Tests of TemplateMergeRule objects: validation, several rules together, and a rule for kinds other than Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.controllers.kafka_templates.effective_templates import find_template_changes
from reconciler.controllers.kafka_templates.model import TemplateMergeRule
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.controllers.kafka_templates.read_merge_rules import (
    TemplateMergeRules,
    load_built_in_rule,
    read_merge_rules,
)
from reconciler.krm.yaml import emit
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_builders import (
    PACKAGE,
    SHARED,
    data_of,
    format_codes,
    kafka,
    merge,
    pool,
    template_of,
    tree,
)

BARNS: dict[str, Any] = {
    "parent": {"apiGroup": "farm.example.org", "kind": "Farm", "path": "spec.yard.defaults"},
    "child": {
        "apiGroup": "",
        "kind": "Barn",
        "path": "spec.build",
        "parentLabel": "farm.example.org/of",
        "called": "shed",
    },
    "properties": ["roof", "walls"],
    "parentOnly": ["fence"],
    "nullMeans": "inherit",
    "emptyMeans": "reset",
}


def rule(name: str = "barns", spec: Any = BARNS, **changed: Any) -> str:
    whole = {"apiVersion": "reconciler.dev/v1alpha1", "kind": "TemplateMergeRule", "metadata": {"name": name}}
    return emit({**whole, "spec": {**spec, **changed}})


def read(*texts: str) -> TemplateMergeRules:
    return read_merge_rules(read_catalog(tree({f"{number}.yaml": text for number, text in enumerate(texts)})))


def side(name: str, **changed: Any) -> dict[str, Any]:
    return {name: {**BARNS[name], **changed}}


def test_built_in_rule() -> None:
    template_merge_rule = load_built_in_rule()

    assert template_merge_rule.properties == SHARED
    assert len(template_merge_rule.parent_only) == 10
    assert (template_merge_rule.parent.path, template_merge_rule.child.path) == (
        ("spec", "kafka", "template"),
        ("spec", "template"),
    )
    assert read().rules == (template_merge_rule,)


@pytest.mark.parametrize(
    ("changed", "pointer", "message"),
    [
        pytest.param(
            {"properties": []},
            "/spec/properties",
            "must contain the properties that exist both in the parent kind and in the child kind",
            id="none",
        ),
        pytest.param({"properties": ["a", "a"]}, "/spec/properties", 'must not contain "a" twice', id="twice"),
        pytest.param({"properties": [7]}, "/spec/properties/0", "must be a string, but is 7", id="no-name"),
        pytest.param({"parentOnly": ["roof"]}, "/spec/parentOnly", 'must not contain "roof"', id="both"),
        pytest.param({"nullMeans": "reset"}, "/spec/nullMeans", 'must be "inherit', id="null"),
        pytest.param({"emptyMeans": "inherit"}, "/spec/emptyMeans", 'must be "reset', id="empty"),
        pytest.param(
            side("child", parentLabel=""), "/spec/child/parentLabel", "must be a string that is not", id="label"
        ),
        pytest.param(side("child", path="spec..x"), "/spec/child/path", "must be the path of the template", id="path"),
        pytest.param(side("parent", path="metadata.x"), "/spec/parent/path", "must be the path", id="path-of-identity"),
        pytest.param(side("parent", kind=None), "/spec/parent/kind", "must be set", id="kind"),
        pytest.param(side("parent", parentLabel="x"), "/spec/parent/parentLabel", "an unknown", id="a-childs-field"),
        pytest.param({"more": 1}, "/spec/more", "is an unknown field; allowed fields: parent, child", id="unknown"),
        pytest.param(
            side("child", apiGroup="farm.example.org", kind="Farm"),
            "/spec/child/kind",
            "must differ",
            id="one-kind",
        ),
        pytest.param(
            {"parent": {"kind": "Secret", "path": "stringData"}},
            "/spec/parent/kind",
            "must not be Secret, because values of Secrets must not be shown",
            id="secret-as-parent",
        ),
        pytest.param(
            {"child": {"kind": "Secret", "path": "stringData", "parentLabel": "x"}},
            "/spec/child/kind",
            "must not be Secret, because values of Secrets must not be shown",
            id="secret-as-child",
        ),
    ],
)
def test_invalid_spec_is_reported(changed: Any, pointer: str, message: str) -> None:
    template_merge_rules = read(rule(**changed))

    assert format_codes(template_merge_rules.findings)[0] == "E TemplateRuleInvalid"
    assert template_merge_rules.findings[0].location.pointer == pointer
    assert message in template_merge_rules.findings[0].message
    assert template_merge_rules.rules == (load_built_in_rule(),)


@pytest.mark.parametrize(
    "text",
    [
        rule().replace("v1alpha1", "v1"),
        rule().replace("name: barns", "name: barns\n  namespace: x"),
    ],
    ids=["version", "namespace"],
)
def test_invalid_version_or_namespace_is_reported(text: str) -> None:
    template_merge_rules = read(text)

    assert format_codes(template_merge_rules.findings) == ["E TemplateRuleInvalid"]
    assert template_merge_rules.rules == (load_built_in_rule(),)


KAFKA_POOLS = {"apiGroup": "kafka.strimzi.io", "kind": "KafkaNodePool", "path": "spec.template", "parentLabel": "x"}


@pytest.mark.parametrize(
    ("texts", "names", "pointers"),
    [
        pytest.param([rule("b"), rule("a")], ["a", "kafka-node-pool"], ["/spec/child/kind"], id="one-child-two-rules"),
        pytest.param([rule(child=KAFKA_POOLS)], ["kafka-node-pool"], ["/spec/child/kind"], id="the-built-in-child"),
        pytest.param(
            [rule(child={**KAFKA_POOLS, "kind": "Kafka"})],
            ["kafka-node-pool"],
            ["/spec/child/kind"],
            id="a-parent-as-child",
        ),
        pytest.param(
            [rule(parent={**BARNS["parent"], "apiGroup": "kafka.strimzi.io", "kind": "KafkaNodePool"})],
            ["kafka-node-pool"],
            ["/spec/parent/kind"],
            id="a-child-as-parent",
        ),
        pytest.param(
            [rule(parent={**BARNS["parent"], "apiGroup": "kafka.strimzi.io", "kind": "Kafka"})],
            ["barns", "kafka-node-pool"],
            [],
            id="a-parent-of-two-rules",
        ),
        pytest.param(
            [rule("kafka-node-pool", child=KAFKA_POOLS)], ["kafka-node-pool"], [], id="replaces-the-built-in-rule"
        ),
    ],
)
def test_several_rules(texts: list[str], names: list[str], pointers: list[str]) -> None:
    template_merge_rules = read(*texts)

    assert [template_merge_rule.name for template_merge_rule in template_merge_rules.rules] == names
    assert [finding.location.pointer for finding in template_merge_rules.findings] == pointers


FARM = """\
apiVersion: farm.example.org/v3
kind: Farm
metadata: {name: hill}
spec: {yard: {defaults: {roof: {tiles: [{name: red}]}, walls: {stone: 0}, fence: {}}}}
"""
BARN = """\
apiVersion: v1
kind: Barn
metadata: {name: north, labels: {farm.example.org/of: hill}}
spec:
  cows: 7 # at most
  build: {walls: {}}
"""


def farm_rules() -> tuple[TemplateMergeRule, ...]:
    return read(rule()).rules


def test_rule_for_other_kinds() -> None:
    package = merge({"farm.yaml": FARM, "barn.yaml": BARN}, rules=farm_rules())

    assert package.findings == ()
    assert package.files["farm.yaml"].data.decode() == FARM
    assert is_equal_data(
        data_of(package, "barn.yaml")["spec"], {"cows": 7, "build": {"roof": {"tiles": [{"name": "red"}]}, "walls": {}}}
    )
    assert "  cows: 7 # at most\n" in package.files["barn.yaml"].data.decode()
    (effect,) = package.effects
    assert effect.as_data() == {
        "file": "barn.yaml",
        "resource": "Barn/_cluster/north",
        "parent": "Farm/_cluster/hill",
        "mode": "materialise",
        "properties": [
            {"name": "roof", "source": "farm", "field": "spec.yard.defaults.roof"},
            {"name": "walls", "source": "shed-reset", "field": "spec.build.walls", "shadowed": ["stone"]},
        ],
    }


def test_findings_name_the_kinds_of_the_rule() -> None:
    barn = BARN.replace("{walls: {}}", "{fence: {}, gate: {}, roof: null}")

    package = merge(
        {"farm.yaml": FARM, "barn.yaml": barn, "stray.yaml": BARN.replace("hill", "dale").replace("north", "x")},
        rules=farm_rules(),
    )

    assert [finding.message for finding in package.findings] == [
        "spec.build.fence is ignored, because fence can only be set in the Farm object",
        "spec.build.gate is ignored, because it is an unknown property; allowed properties: roof, walls",
        "spec.build.roof is null and is treated as absent; use {} to reset an inherited value",
        "the label farm.example.org/of refers to Farm dale, which does not exist on this cluster",
    ]


def test_one_kafka_is_the_parent_in_two_rules() -> None:
    users = rule(
        "users",
        parent={**BARNS["parent"], "apiGroup": "kafka.strimzi.io", "kind": "Kafka", "path": "spec.kafka.people"},
    )
    files = {
        "k.yaml": kafka({"pod": {}}, people={"roof": {}}),
        "p.yaml": pool(),
        "b.yaml": BARN.replace("hill", "orders").replace("name: north", "name: north, namespace: shop"),
    }

    package = merge(files, rules=read(users).rules)

    assert package.findings == ()
    assert template_of(package, "p.yaml") == {"pod": {}}
    assert is_equal_data(data_of(package, "b.yaml")["spec"]["build"], {"roof": {}, "walls": {}})


def test_restart_effect_is_unknown_for_other_kinds() -> None:
    before = find_pairs({PACKAGE: tree({"farm.yaml": FARM, "barn.yaml": BARN})}, farm_rules())
    now = find_pairs({PACKAGE: tree({"farm.yaml": FARM.replace("red", "blue"), "barn.yaml": BARN})}, farm_rules())

    (template_change,) = find_template_changes(before, now)

    assert (template_change.properties, template_change.affected_kinds, template_change.restarts_pods) == (
        ("roof",),
        (),
        None,
    )
