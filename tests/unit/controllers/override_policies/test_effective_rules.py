"""Where a wave is closed a rule is applied by the text it had, and everything else as of today (design 10.23)."""

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
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    NAMESPACED_LABEL,
    POLICY,
    at,
    attached,
    codes,
    emit,
    labelled,
    override_package,
    policy,
    read,
    tree,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS
from tests.unit.controllers.override_policies.test_properties import overriders

KEY = build_override_policy_key("ClusterOverridePolicy", "", POLICY)
WAVES = {"waves": [{"clusters": ["canary"]}]}
FILES = tree({"orders.yaml": emit(attached(ORDERS))})


def rule_id(rule: str) -> RuleId:
    return RuleId(KEY, rule)


def labels(operator: str = "set", **value: str) -> dict[str, Any]:
    return {"overriders": {"labels": [{"operator": operator, "value": value}]}}


def staged(name: str = "tag", **mapping: Any) -> dict[str, Any]:
    return {"name": name, "rollout": WAVES, **mapping}


def text_of(**mapping: Any) -> str:
    return json.dumps(mapping, separators=(",", ":"))


def applied(policies: OverridePolicies, texts: RuleTexts | None = None, cluster: Cluster = HERE) -> OverriddenPackage:
    return override_package(FILES, policies, cluster, texts=texts)


def labels_of(package: OverriddenPackage) -> Any:
    assert codes(package.findings) == []
    return at(package.resources[0].document.data, "/metadata/labels")


OLD, NEW = labels(ring="old"), labels(ring="new")


@pytest.mark.parametrize(
    ("texts", "ring"),
    [
        pytest.param(None, "new", id="today"),
        pytest.param({}, "new", id="no-texts"),
        pytest.param({rule_id("tag"): text_of(**NEW)}, "new", id="todays-text"),
        pytest.param({rule_id("tag"): text_of(**OLD)}, "old", id="an-earlier-text"),
        pytest.param({rule_id("tag"): text_of()}, None, id="an-earlier-text-that-did-nothing"),
        pytest.param({rule_id("tag"): None}, None, id="not-there-yet"),
        pytest.param({rule_id("other"): None, rule_id("0"): None}, "new", id="another-rule"),
        pytest.param(
            {rule_id("tag"): text_of(targetClusters={"clusters": ["far"]}, **OLD)}, None, id="earlier-clusters"
        ),
    ],
)
def test_by_which_text_a_rule_is_applied(texts: RuleTexts | None, ring: str | None) -> None:
    package = applied(read(policy([staged(**NEW)])), texts)

    assert [step.after for step in package.resources[0].steps] == ([ring] if ring else [])
    assert [step.source_item.endswith(" (earlier text)") for step in package.resources[0].steps] == [
        ring == "old"
    ] * bool(ring)


def test_an_earlier_text_reaches_clusters_that_todays_does_not() -> None:
    policies = read(policy([staged(targetClusters={"clusters": ["far"]}, **NEW)]))

    assert labels_of(applied(policies, {rule_id("tag"): text_of(**OLD)}))["ring"] == "old"


def test_a_rule_without_a_rollout_is_always_todays() -> None:
    policies = read(policy([{"name": "tag", **NEW}]))

    assert labels_of(applied(policies, {rule_id("tag"): text_of(**OLD)}))["ring"] == "new"


def test_rules_stay_in_the_order_of_today() -> None:
    rules = [staged("a", **labels(ring="a")), {"name": "b", **labels(ring="b")}, staged("c", **labels(ring="c"))]
    policies = read(policy(rules))

    package = applied(policies, {rule_id("c"): None, rule_id("a"): text_of(**labels(ring="a0"))})

    assert [(step.source_item, step.after) for step in package.resources[0].steps] == [
        ("spec.overrideRules[0].overriders.labels[0] (earlier text)", "a0"),
        ("spec.overrideRules[1].overriders.labels[0]", "b"),
    ]
    assert package.resources[0].matched_policies[0].rule_numbers == (0, 1)


def test_each_cluster_fills_in_the_variables_of_an_earlier_text() -> None:
    texts = {rule_id("tag"): text_of(**labels(ring="${cluster.name}"))}

    assert labels_of(applied(read(policy([staged(**NEW)])), texts))["ring"] == HERE.name


@pytest.mark.parametrize(
    ("overriders", "message"),
    [
        pytest.param(
            {"labels": [{"operator": "addIfAbsent", "value": {"app": "x"}}]},
            "ClusterOverridePolicy/tuning spec.overrideRules[0].overriders.labels[0] (earlier text): ",
            id="an-overrider-that-fails",
        ),
        pytest.param(
            {"labels": [{"operator": "set", "value": {"app": "${cluster.labels.gone}"}}]},
            "ClusterOverridePolicy/tuning (earlier text): spec.overrideRules[0].overriders.labels[0]",
            id="a-variable-without-a-value",
        ),
    ],
)
def test_a_finding_about_an_earlier_text_says_so(overriders: Any, message: str) -> None:
    package = applied(read(policy([staged(**NEW)])), {rule_id("tag"): text_of(overriders=overriders)})

    assert [finding.message.startswith(message) for finding in package.findings] == [True]


def test_a_text_that_cannot_be_read_any_more_is_a_warning_and_does_nothing() -> None:
    text = '{"overriders":{"teleport":[]}}'

    package = applied(read(policy([staged(**NEW)])), {rule_id("tag"): text})

    assert [(finding.code, finding.severity) for finding in package.findings] == [("RuleTextUnreadable", "warning")]
    assert package.findings[0].message.startswith(
        "ClusterOverridePolicy/tuning: spec.overrideRules[0] has no effect here"
    )
    assert "ring" not in at(package.resources[0].document.data, "/metadata/labels")
    assert package.rule_texts == {rule_id("tag"): text}


def test_a_package_tells_the_rules_that_its_cluster_can_feel_and_their_texts() -> None:
    elsewhere = {"targetClusters": {"clusters": ["far"]}, **NEW}
    policies = read(policy([staged(**NEW), staged("new", **OLD), elsewhere]), policy([OLD], name="of-nobody"))

    package = applied(policies, {rule_id("new"): None})

    assert package.rule_texts == {rule_id("tag"): text_of(**NEW), rule_id("new"): None}
    assert digest_rule_text(text_of(**NEW)) == policies.valid[KEY].rules[0].digest


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(attached(ORDERS), id="an-overrider-fails"),
        pytest.param(labelled(attached(ORDERS), **{NAMESPACED_LABEL: "gone"}), id="another-policy-is-not-there"),
    ],
)
def test_a_package_that_fails_tells_its_rules_as_well(subject: Any) -> None:
    rule = staged(**labels("addIfAbsent", app="x"))

    package = override_package(tree({"a.yaml": emit(subject)}), read(policy([rule])), HERE)

    assert package.condition_reason.endswith("Failed")
    assert [*package.rule_texts] == [rule_id("tag")]


def test_a_package_without_policies_tells_no_rules() -> None:
    assert override_package(tree({"a.yaml": emit(ORDERS)}), read(policy([staged(**NEW)])), HERE).rule_texts == {}


OLD_TEXT, NEW_TEXT = text_of(**OLD), text_of(**NEW)
OTHER = RuleId(build_override_policy_key("ClusterOverridePolicy", "", "other"), "tag")


@pytest.mark.parametrize(
    ("had", "remaining"),
    [
        pytest.param({}, None, id="a-new-rule"),
        pytest.param({rule_id("tag"): OLD_TEXT}, OLD_TEXT, id="under-its-name"),
        pytest.param({rule_id("tag"): None}, None, id="not-there-yet-and-still-not"),
        pytest.param({rule_id("tag"): None, rule_id("1"): NEW_TEXT}, None, id="its-name-counts-first"),
        pytest.param({rule_id("1"): OLD_TEXT}, OLD_TEXT, id="it-was-given-a-name"),
        pytest.param({rule_id("0"): NEW_TEXT, rule_id("1"): OLD_TEXT}, NEW_TEXT, id="it-was-given-a-name-and-moved"),
        pytest.param({rule_id("former"): NEW_TEXT}, NEW_TEXT, id="it-was-given-another-name"),
        pytest.param({rule_id("former"): OLD_TEXT}, None, id="another-rule"),
        pytest.param({OTHER: NEW_TEXT}, None, id="another-policy"),
    ],
)
def test_which_text_a_closed_wave_keeps(had: RuleTexts, remaining: str | None) -> None:
    policies = read(policy([{"name": "first"}, staged(**NEW)]))

    assert find_retained_text(policies.valid[KEY], rule_id("tag"), had) == remaining


def test_a_rollout_that_is_added_to_a_rule_changes_nothing_anywhere() -> None:
    before = applied(read(policy([NEW])))
    policies = read(policy([staged(**NEW)]))

    after = applied(
        policies, {rule_id("tag"): find_retained_text(policies.valid[KEY], rule_id("tag"), before.rule_texts)}
    )

    assert (after.files, after.as_data()) == (before.files, before.as_data())


written = st.fixed_dictionaries({"overriders": overriders})


def outcome(package: OverriddenPackage) -> Any:
    return package.files, package.findings, package.as_data()


@settings(max_examples=60, deadline=None)
@given(written, written)
def test_no_texts_and_todays_text_are_the_same(one: Any, other: Any) -> None:
    policies = read(policy([staged(**one), other]))
    for policy_read in policies.valid.values():
        today = policy_read.rules[0].text

        packages = [applied(policies, texts) for texts in (None, {}, {rule_id("tag"): today})]

        assert outcome(packages[0]) == outcome(packages[1]) == outcome(packages[2])
        assert packages[0].rule_texts == packages[2].rule_texts


@settings(max_examples=60, deadline=None)
@given(written, written)
def test_a_rule_that_is_not_there_yet_is_as_if_it_were_not_written(one: Any, other: Any) -> None:
    policies, without = read(policy([other, staged(**one)])), read(policy([other]))
    if policies.valid:
        assert outcome(applied(policies, {rule_id("tag"): None})) == outcome(applied(without))


@settings(max_examples=60, deadline=None)
@given(written, written, written)
def test_a_rule_of_an_earlier_text_is_the_rule_that_had_it(one: Any, other: Any, earlier: Any) -> None:
    policies, before = read(policy([staged(**one), other])), read(policy([earlier, other]))
    if policies.valid and before.valid:
        text = before.valid[KEY].rules[0].text

        package, expected = applied(policies, {rule_id("tag"): text}), applied(before)

        assert package.files == expected.files
        assert codes(package.findings) == codes(expected.findings)
