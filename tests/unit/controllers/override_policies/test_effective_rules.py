"""Tests of effective rules: a cluster in a closed wave keeps the earlier text of the rule, all other rules use the
current text.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.effective_rules import RuleTexts, find_retained_text
from reconciler.controllers.override_policies.model import digest_rule_text
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from reconciler.controllers.override_policies.read_policies import OverridePolicies, build_override_policy_key
from reconciler.controllers.override_policies.rollout import RuleId
from tests.support.examples import examples
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    NAMESPACED_LABEL,
    POLICY,
    add_labels,
    attach_policy,
    build_policy,
    build_tree,
    emit,
    get_at_pointer,
    list_codes,
    override_package,
    read_policies,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS
from tests.unit.controllers.override_policies.test_properties import overriders

KEY = build_override_policy_key("ClusterOverridePolicy", "", POLICY)
WAVES = {"waves": [{"clusters": ["canary"]}]}
FILES = build_tree({"orders.yaml": emit(attach_policy(ORDERS))})


def build_rule_id(rule: str) -> RuleId:
    return RuleId(KEY, rule)


def build_label_rule(operator: str = "set", **value: str) -> dict[str, Any]:
    return {"overriders": {"labels": [{"operator": operator, "value": value}]}}


def build_rollout_rule(name: str = "tag", **mapping: Any) -> dict[str, Any]:
    return {"name": name, "rollout": WAVES, **mapping}


def format_rule_text(**mapping: Any) -> str:
    return json.dumps(mapping, separators=(",", ":"))


def apply_policies(
    policies: OverridePolicies, texts: RuleTexts | None = None, cluster: Cluster = HERE
) -> OverriddenPackage:
    return override_package(FILES, policies, cluster, texts=texts)


def read_labels(package: OverriddenPackage) -> Any:
    assert list_codes(package.findings) == []
    return get_at_pointer(package.resources[0].document.data, "/metadata/labels")


OLD, NEW = build_label_rule(ring="old"), build_label_rule(ring="new")


@pytest.mark.parametrize(
    ("texts", "ring"),
    [
        pytest.param(None, "new", id="today"),
        pytest.param({}, "new", id="no-texts"),
        pytest.param({build_rule_id("tag"): format_rule_text(**NEW)}, "new", id="todays-text"),
        pytest.param({build_rule_id("tag"): format_rule_text(**OLD)}, "old", id="an-earlier-text"),
        pytest.param({build_rule_id("tag"): format_rule_text()}, None, id="an-earlier-text-without-effect"),
        pytest.param({build_rule_id("tag"): None}, None, id="not-there-yet"),
        pytest.param({build_rule_id("other"): None, build_rule_id("0"): None}, "new", id="another-rule"),
        pytest.param(
            {build_rule_id("tag"): format_rule_text(targetClusters={"clusters": ["far"]}, **OLD)},
            None,
            id="earlier-clusters",
        ),
    ],
)
def test_rule_is_applied_with_its_recorded_text(texts: RuleTexts | None, ring: str | None) -> None:
    package = apply_policies(read_policies(build_policy([build_rollout_rule(**NEW)])), texts)

    assert [step.after for step in package.resources[0].steps] == ([ring] if ring else [])
    assert [step.source_item.endswith(" (earlier text)") for step in package.resources[0].steps] == [
        ring == "old"
    ] * bool(ring)


def test_earlier_text_applies_to_clusters_that_the_current_text_does_not_select() -> None:
    policies = read_policies(build_policy([build_rollout_rule(targetClusters={"clusters": ["far"]}, **NEW)]))

    assert read_labels(apply_policies(policies, {build_rule_id("tag"): format_rule_text(**OLD)}))["ring"] == "old"


def test_rule_without_rollout_uses_the_current_text() -> None:
    policies = read_policies(build_policy([{"name": "tag", **NEW}]))

    assert read_labels(apply_policies(policies, {build_rule_id("tag"): format_rule_text(**OLD)}))["ring"] == "new"


def test_rules_are_applied_in_the_current_order() -> None:
    rules = [
        build_rollout_rule("a", **build_label_rule(ring="a")),
        {"name": "b", **build_label_rule(ring="b")},
        build_rollout_rule("c", **build_label_rule(ring="c")),
    ]
    policies = read_policies(build_policy(rules))

    package = apply_policies(
        policies, {build_rule_id("c"): None, build_rule_id("a"): format_rule_text(**build_label_rule(ring="a0"))}
    )

    assert [(step.source_item, step.after) for step in package.resources[0].steps] == [
        ("spec.overrideRules[0].overriders.labels[0] (earlier text)", "a0"),
        ("spec.overrideRules[1].overriders.labels[0]", "b"),
    ]
    assert package.resources[0].matched_policies[0].rule_numbers == (0, 1)


def test_variables_of_an_earlier_text_are_replaced_per_cluster() -> None:
    texts = {build_rule_id("tag"): format_rule_text(**build_label_rule(ring="${cluster.name}"))}

    assert (
        read_labels(apply_policies(read_policies(build_policy([build_rollout_rule(**NEW)])), texts))["ring"]
        == HERE.name
    )


@pytest.mark.parametrize(
    ("overriders", "message"),
    [
        pytest.param(
            {"labels": [{"operator": "addIfAbsent", "value": {"app": "x"}}]},
            "ClusterOverridePolicy/tuning spec.overrideRules[0].overriders.labels[0] (earlier version of the rule): ",
            id="an-overrider-that-fails",
        ),
        pytest.param(
            {"labels": [{"operator": "set", "value": {"app": "${cluster.labels.gone}"}}]},
            "ClusterOverridePolicy/tuning (earlier version of the rule): spec.overrideRules[0].overriders.labels[0]",
            id="a-variable-without-a-value",
        ),
    ],
)
def test_finding_about_an_earlier_text_names_it(overriders: Any, message: str) -> None:
    package = apply_policies(
        read_policies(build_policy([build_rollout_rule(**NEW)])),
        {build_rule_id("tag"): format_rule_text(overriders=overriders)},
    )

    assert [finding.message.startswith(message) for finding in package.findings] == [True]


def test_unreadable_recorded_text_is_a_warning_without_effect() -> None:
    text = '{"overriders":{"teleport":[]}}'

    package = apply_policies(read_policies(build_policy([build_rollout_rule(**NEW)])), {build_rule_id("tag"): text})

    assert [(finding.code, finding.severity) for finding in package.findings] == [("RuleTextUnreadable", "warning")]
    assert package.findings[0].message.startswith("ClusterOverridePolicy/tuning spec.overrideRules[0] has no effect")
    assert "ring" not in get_at_pointer(package.resources[0].document.data, "/metadata/labels")
    assert package.rule_texts == {build_rule_id("tag"): text}


def test_package_lists_the_rules_of_its_cluster_with_their_texts() -> None:
    elsewhere = {"targetClusters": {"clusters": ["far"]}, **NEW}
    policies = read_policies(
        build_policy([build_rollout_rule(**NEW), build_rollout_rule("new", **OLD), elsewhere]),
        build_policy([OLD], name="of-nobody"),
    )

    package = apply_policies(policies, {build_rule_id("new"): None})

    assert package.rule_texts == {build_rule_id("tag"): format_rule_text(**NEW), build_rule_id("new"): None}
    assert digest_rule_text(format_rule_text(**NEW)) == policies.valid[KEY].rules[0].digest


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(attach_policy(ORDERS), id="an-overrider-fails"),
        pytest.param(add_labels(attach_policy(ORDERS), **{NAMESPACED_LABEL: "gone"}), id="another-policy-is-not-there"),
    ],
)
def test_failed_package_lists_its_rules(subject: Any) -> None:
    rule = build_rollout_rule(**build_label_rule("addIfAbsent", app="x"))

    package = override_package(build_tree({"a.yaml": emit(subject)}), read_policies(build_policy([rule])), HERE)

    assert package.condition_reason.endswith("Failed")
    assert [*package.rule_texts] == [build_rule_id("tag")]


def test_package_without_policies_lists_no_rules() -> None:
    assert (
        override_package(
            build_tree({"a.yaml": emit(ORDERS)}), read_policies(build_policy([build_rollout_rule(**NEW)])), HERE
        ).rule_texts
        == {}
    )


OLD_TEXT, NEW_TEXT = format_rule_text(**OLD), format_rule_text(**NEW)
OTHER = RuleId(build_override_policy_key("ClusterOverridePolicy", "", "other"), "tag")


@pytest.mark.parametrize(
    ("had", "remaining"),
    [
        pytest.param({}, None, id="a-new-rule"),
        pytest.param({build_rule_id("tag"): OLD_TEXT}, OLD_TEXT, id="under-its-name"),
        pytest.param({build_rule_id("tag"): None}, None, id="not-there-yet-and-still-not"),
        pytest.param({build_rule_id("tag"): None, build_rule_id("1"): NEW_TEXT}, None, id="its-name-counts-first"),
        pytest.param({build_rule_id("1"): OLD_TEXT}, OLD_TEXT, id="it-was-given-a-name"),
        pytest.param(
            {build_rule_id("0"): NEW_TEXT, build_rule_id("1"): OLD_TEXT}, NEW_TEXT, id="it-was-given-a-name-and-moved"
        ),
        pytest.param({build_rule_id("former"): NEW_TEXT}, NEW_TEXT, id="it-was-given-another-name"),
        pytest.param({build_rule_id("former"): OLD_TEXT}, None, id="another-rule"),
        pytest.param({OTHER: NEW_TEXT}, None, id="another-policy"),
    ],
)
def test_retained_text_of_a_closed_wave(had: RuleTexts, remaining: str | None) -> None:
    policies = read_policies(build_policy([{"name": "first"}, build_rollout_rule(**NEW)]))

    assert find_retained_text(policies.valid[KEY], build_rule_id("tag"), had) == remaining


def test_added_rollout_changes_no_package() -> None:
    before = apply_policies(read_policies(build_policy([NEW])))
    policies = read_policies(build_policy([build_rollout_rule(**NEW)]))

    after = apply_policies(
        policies,
        {build_rule_id("tag"): find_retained_text(policies.valid[KEY], build_rule_id("tag"), before.rule_texts)},
    )

    assert (after.files, after.as_data()) == (before.files, before.as_data())


written = st.fixed_dictionaries({"overriders": overriders})


def summarize_package(package: OverriddenPackage) -> Any:
    return package.files, package.findings, package.as_data()


@settings(max_examples=examples(60), deadline=None)
@given(written, written)
def test_no_texts_and_current_texts_give_the_same_result(one: Any, other: Any) -> None:
    policies = read_policies(build_policy([build_rollout_rule(**one), other]))
    for policy_read in policies.valid.values():
        today = policy_read.rules[0].text

        packages = [apply_policies(policies, texts) for texts in (None, {}, {build_rule_id("tag"): today})]

        assert summarize_package(packages[0]) == summarize_package(packages[1]) == summarize_package(packages[2])
        assert packages[0].rule_texts == packages[2].rule_texts


@settings(max_examples=examples(60), deadline=None)
@given(written, written)
def test_rule_with_a_recorded_absence_has_no_effect(one: Any, other: Any) -> None:
    policies, without = (
        read_policies(build_policy([other, build_rollout_rule(**one)])),
        read_policies(build_policy([other])),
    )
    if policies.valid:
        assert summarize_package(apply_policies(policies, {build_rule_id("tag"): None})) == summarize_package(
            apply_policies(without)
        )


@settings(max_examples=examples(60), deadline=None)
@given(written, written, written)
def test_rule_with_an_earlier_text_has_the_effect_of_the_earlier_rule(one: Any, other: Any, earlier: Any) -> None:
    policies, before = (
        read_policies(build_policy([build_rollout_rule(**one), other])),
        read_policies(build_policy([earlier, other])),
    )
    if policies.valid and before.valid:
        text = before.valid[KEY].rules[0].text

        package, expected = apply_policies(policies, {build_rule_id("tag"): text}), apply_policies(before)

        assert package.files == expected.files
        assert list_codes(package.findings) == list_codes(expected.findings)
