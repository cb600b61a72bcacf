"""Tests of the reader for names and rollouts of rules, and of the text form of a rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.clusters.selection import ClusterSelection
from reconciler.controllers.override_policies.model import OverrideRule
from reconciler.controllers.override_policies.read_rules import read_rule_text
from tests.support.examples import examples
from tests.unit.controllers.override_policies.override_world import build_policy, list_codes, read_policies
from tests.unit.controllers.override_policies.test_properties import overriders

WAVES = [{"clusters": ["canary"]}, {"clusterSelector": {"ring": "early"}, "excludeClusters": ["vip"]}]
LABELS = {"labels": [{"operator": "set", "value": {"b": "1", "a": "2"}}]}


def read_rule(written: dict[str, Any]) -> OverrideRule:
    policies = read_policies(build_policy([written]))
    assert policies.findings == ()
    (override_policy,) = policies.valid.values()
    return override_policy.rules[0]


def test_rule_with_name_and_rollout() -> None:
    rule = read_rule({"name": "new-registry", "rollout": {"waves": WAVES, "soak": "1h30m"}, "overriders": LABELS})

    assert rule.rollout is not None
    assert (rule.name, rule.rollout.soak, rule.rollout.soak_seconds) == ("new-registry", "1h30m", 5400)
    assert rule.rollout.waves == (
        ClusterSelection(("canary",)),
        ClusterSelection(excluded_clusters=("vip",), selector={"ring": "early"}),
    )


@pytest.mark.parametrize(
    ("rollout", "seconds"),
    [
        pytest.param({"waves": WAVES}, 0, id="absent"),
        pytest.param({"waves": WAVES, "soak": None}, 0, id="null"),
        pytest.param({"waves": WAVES, "soak": ""}, 0, id="empty"),
        pytest.param({"waves": [{}], "soak": "0"}, 0, id="none"),
        pytest.param({"waves": WAVES, "soak": "1.2s"}, 2, id="rounded-up"),
    ],
)
def test_soak_time_is_parsed(rollout: dict[str, Any], seconds: int) -> None:
    rule = read_rule({"rollout": rollout})

    assert rule.rollout is not None
    assert rule.rollout.soak_seconds == seconds


def test_rule_without_rollout_has_none() -> None:
    assert [read_rule(item).rollout for item in ({}, {"rollout": None, "name": None})] == [None, None]


@pytest.mark.parametrize(
    ("rules", "field", "text"),
    [
        pytest.param([{"name": 5}], "[0].name", "must be a string, but is 5; put the value in quotes", id="number"),
        pytest.param([{"name": ""}], "[0].name", "must be a string that is not empty", id="empty"),
        pytest.param([{"name": "New"}], "[0].name", 'must be a DNS label: "New" must contain only', id="upper-case"),
        pytest.param([{"name": "a.b"}], "[0].name", 'must be a DNS label: "a.b" must contain only', id="dot"),
        pytest.param([{"name": "a#b"}], "[0].name", 'must be a DNS label: "a#b" must contain only', id="sign"),
        pytest.param([{"name": "a" * 64}], "[0].name", "must be a DNS label", id="long"),
        pytest.param([{"name": "0"}], "[0].name", 'must not be the number "0"', id="digits"),
        pytest.param(
            [{"name": "a"}, {}, {"name": "a"}],
            "[2].name",
            'must be unique, but spec.overrideRules[0] also has the name "a"',
            id="twice",
        ),
        pytest.param([{"rollout": "yes"}], "[0].rollout", 'must be a mapping, but is "yes"', id="no-mapping"),
        pytest.param([{"rollout": {}}], "[0].rollout.waves", "must be a list of at least one wave", id="no-waves"),
        pytest.param(
            [{"rollout": {"waves": []}}], "[0].rollout.waves", "must be a list of at least one wave", id="empty-waves"
        ),
        pytest.param(
            [{"rollout": {"waves": {"clusters": []}}}],
            "[0].rollout.waves",
            "must be a list, but is a map",
            id="one-wave",
        ),
        pytest.param(
            [{"rollout": {"waves": ["canary"]}}],
            "[0].rollout.waves[0]",
            'must be a mapping, but is "canary"',
            id="name",
        ),
        pytest.param([{"rollout": {"waves": [None]}}], "[0].rollout.waves[0]", "must be a mapping", id="null-wave"),
        pytest.param(
            [{"rollout": {"waves": [{}, {"cluster": "a"}]}}],
            "[0].rollout.waves[1].cluster",
            "is an unknown field; allowed fields: clusters, excludeClusters, clusterSelector, clusterAffinity",
            id="unknown-in-a-wave",
        ),
        pytest.param(
            [{"rollout": {"waves": WAVES, "pause": "1h"}}],
            "[0].rollout.pause",
            "is an unknown field; allowed fields: waves, soak",
            id="unknown",
        ),
        pytest.param(
            [{"rollout": {"waves": WAVES, "soak": "1 hour"}}],
            "[0].rollout.soak",
            'must be a duration such as "10m" or "1h30m", but is "1 hour"',
            id="soak",
        ),
        pytest.param(
            [{"rollout": {"waves": WAVES, "soak": "-5m"}}], "[0].rollout.soak", "must be a duration", id="negative"
        ),
        pytest.param(
            [{"rollout": {"waves": WAVES, "soak": 30}}],
            "[0].rollout.soak",
            "must be a string, but is 30; put the value in quotes",
            id="soak-as-number",
        ),
    ],
)
def test_error_is_reported_with_its_field(rules: Any, field: str, text: str) -> None:
    policies = read_policies(build_policy(rules))

    assert (policies.valid, {*list_codes(policies.findings)}) == ({}, {"PolicyInvalid"})
    assert any(finding.message.startswith(f"spec.overrideRules{field} {text}") for finding in policies.findings)
    assert all(finding.location.line for finding in policies.findings)


def test_selector_of_a_wave_is_checked_like_the_selector_of_a_rule() -> None:
    wave = {"clusterAffinity": [{"matchExpressions": [{"key": "ram", "operator": "Gt", "values": ["much"]}]}]}

    (finding,) = read_policies(build_policy([{"rollout": {"waves": [wave]}}])).findings

    assert finding.code == "SelectorInvalid"
    assert finding.message.startswith(
        "spec.overrideRules[0].rollout.waves[0].clusterAffinity[0].matchExpressions[0].values must"
    )


def test_rule_text_contains_targets_and_overriders() -> None:
    targets = {"clusters": ["canary"]}
    rule = read_rule({"name": "a", "overriders": LABELS, "rollout": {"waves": WAVES}, "targetClusters": targets})

    assert rule.text == (
        '{"targetClusters":{"clusters":["canary"]},"overriders":'
        '{"labels":[{"operator":"set","value":{"b":"1","a":"2"}}]}}'
    )
    assert rule.digest == read_rule({"targetClusters": targets, "overriders": LABELS}).digest


@pytest.mark.parametrize(
    ("mapping", "other", "equal"),
    [
        pytest.param({}, {"overriders": None, "targetClusters": None}, True, id="null-is-absent"),
        pytest.param({"overriders": LABELS}, {"overriders": LABELS, "name": "a"}, True, id="name"),
        pytest.param({"overriders": LABELS}, {"overriders": LABELS, "rollout": {"waves": WAVES}}, True, id="rollout"),
        pytest.param({"overriders": LABELS}, {"overriders": LABELS, "targetClusters": {}}, False, id="targets"),
        pytest.param(
            {"overriders": LABELS},
            {"overriders": {"labels": [{"operator": "set", "value": {"a": "2", "b": "1"}}]}},
            False,
            id="the-order-in-which-keys-are-added",
        ),
        pytest.param(
            {"overriders": {"jsonpatch": [{"path": "/a", "value": 1}]}},
            {"overriders": {"jsonpatch": [{"path": "/a", "value": 1.0}]}},
            False,
            id="1-is-not-1.0",
        ),
    ],
)
def test_equal_rules_have_equal_texts(mapping: dict[str, Any], other: dict[str, Any], equal: bool) -> None:
    first, second = read_rule(mapping), read_rule(other)

    assert (first.digest == second.digest) is equal
    assert (first.text == second.text) is equal


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="no-JSON"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="list"),
        pytest.param('{"overriders":{"teleport":[]}}', id="an-overrider-that-was"),
        pytest.param('{"overriders":{"labels":[{"operator":"upsert","value":{}}]}}', id="an-operator-that-was"),
        pytest.param('{"overriders":{"labels":[{"value":{"a":"${cluster.colour}"}}]}}', id="a-variable-that-was"),
        pytest.param('{"targetClusters":{"planet":"mars"}}', id="a-target-that-was"),
        pytest.param('{"name":"a"}', id="more-than-a-text-has"),
        pytest.param('{"a":' + "9" * 5000 + "}", id="a-number-without-end"),
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_invalid_rule_text_is_refused(text: str) -> None:
    assert read_rule_text(text) is None


clusters = st.lists(st.sampled_from(["north", "south"]), max_size=2)
targets = st.fixed_dictionaries(
    {}, optional={"clusters": clusters, "excludeClusters": clusters, "clusterSelector": st.just({"ring": "é"[:0]})}
)
patches = st.lists(
    st.fixed_dictionaries(
        {
            "path": st.just("/spec/x"),
            "value": st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["é", "☃\n"]),
                lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["b", "a", "é"]), inner),
                max_leaves=5,
            ),
        }
    ),
    min_size=1,
)
patching = patches.map(lambda some: {"jsonpatch": some})
varying = st.just({"labels": [{"value": {"at": "${cluster.name}"}}]})


@settings(max_examples=examples(100), deadline=None)
@given(st.fixed_dictionaries({}, optional={"targetClusters": targets, "overriders": overriders | patching | varying}))
def test_rule_text_is_read_as_the_same_rule(written: dict[str, Any]) -> None:
    policies = read_policies(build_policy([{**written, "name": "a", "rollout": {"waves": [{}]}}]))
    for override_policy in policies.valid.values():
        rule = override_policy.rules[0]

        override_rule = read_rule_text(rule.text)

        assert override_rule == replace(rule, name="", rollout=None)
        assert repr(override_rule) == repr(replace(rule, name="", rollout=None))
