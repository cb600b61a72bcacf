"""Tests of a rollout over several passes: with any sequence of edits and publications, no cluster is ahead of its
wave.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.effective_rules import RuleTexts, find_retained_text
from reconciler.controllers.override_policies.model import OverrideRule
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from reconciler.controllers.override_policies.read_policies import OverridePolicies, build_override_policy_key
from reconciler.controllers.override_policies.rollout import (
    ProgressPending,
    ProgressPublished,
    ProgressUnknown,
    RolloutGate,
    RolloutProgress,
    RuleId,
    evaluate_gate,
    find_wave,
)
from tests.support.examples import examples
from tests.unit.controllers.override_policies.override_world import (
    attach_policy,
    build_policy,
    build_tree,
    emit,
    override_package,
    read_policies,
)

KEY = build_override_policy_key("ClusterOverridePolicy", "", "tuning")
RULE = RuleId(KEY, "ring")
SUBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
FILES = build_tree({"a.yaml": emit(attach_policy(SUBJECT))})
CLUSTERS = {name: Cluster(name) for name in ("canary", "east", "north", "west")}
ROLLOUT = {"waves": [{"clusters": ["canary"]}, {"clusters": ["east", "west"]}], "soak": "10s"}
SOAK = 10


def build_ring_rule(value: str) -> dict[str, Any]:
    return {"overriders": {"labels": [{"operator": "set", "value": {"ring": value}}]}}


def format_rule_text(value: str) -> str:
    return json.dumps(build_ring_rule(value), separators=(",", ":"))


@dataclass
class RolloutFleet:
    """Recorded texts, drafts and published texts of one package on all clusters, with methods for edits and
    publications.
    """

    policies: OverridePolicies
    now: int = 100
    had: dict[str, RuleTexts] = field(default_factory=dict)
    drafted: dict[str, OverriddenPackage] = field(default_factory=dict)
    published: dict[str, tuple[str | None, int]] = field(default_factory=dict)

    def edit(self, *rules: dict[str, Any]) -> None:
        self.policies = read_policies(build_policy([*rules]))

    @property
    def rule(self) -> OverrideRule:
        return next(override_rule for override_rule in self.policies.valid[KEY].rules if override_rule.rollout)

    def progress(self, name: str) -> list[RolloutProgress]:
        if name not in self.had:
            return [ProgressUnknown("shop/a")]
        text, since = self.published.get(name, (None, 0))
        return [ProgressPublished("shop/a", since) if text == self.rule.text else ProgressPending("shop/a")]

    def gate(self) -> RolloutGate:
        return evaluate_gate(self.rule, CLUSTERS, self.progress, self.now)

    def sync(self) -> None:
        """Render the package for each cluster, with the current text only in open waves."""
        opened = self.gate().open_clusters
        for name, cluster in CLUSTERS.items():
            retained_text = find_retained_text(self.policies.valid[KEY], RULE, self.had.get(name, {}))
            texts = {} if name in opened else {RULE: retained_text}
            self.drafted[name] = override_package(FILES, self.policies, cluster, texts=texts)
            self.had[name] = self.drafted[name].rule_texts

    def publish(self, name: str) -> None:
        text = self.had[name][RULE]
        if self.published.get(name, ("", 0))[0] != text:
            self.published[name] = (text, self.now)

    def ring(self, name: str) -> Any:
        (resource,) = self.drafted[name].resources
        return resource.document.data["metadata"].get("labels", {}).get("ring")

    @property
    def rings(self) -> list[Any]:
        return [self.ring(name) for name in CLUSTERS]


def build_fleet(value: str = "0") -> RolloutFleet:
    """Return a fleet that published the rule everywhere before the rule had a rollout or a name."""
    start = RolloutFleet(read_policies(build_policy([build_ring_rule(value)])))
    for name, cluster in CLUSTERS.items():
        start.had[name] = override_package(FILES, start.policies, cluster).rule_texts
        start.published[name] = (format_rule_text(value), start.now)
    return start


def test_rule_moves_from_wave_to_wave() -> None:
    fleet = build_fleet()
    fleet.edit({"name": "ring", "rollout": ROLLOUT, **build_ring_rule("1")})
    fleet.sync()
    assert fleet.rings == ["1", "0", "0", "0"]

    fleet.publish("canary")
    fleet.sync()
    assert fleet.rings == ["1", "0", "0", "0"]
    assert fleet.gate().next_opening_seconds == fleet.now + SOAK

    fleet.now += SOAK
    fleet.sync()
    assert fleet.rings == ["1", "1", "0", "1"]

    fleet.publish("east")
    fleet.now += SOAK
    fleet.sync()
    assert fleet.rings == ["1", "1", "0", "1"]

    fleet.publish("west")
    fleet.now += SOAK
    fleet.sync()
    assert fleet.rings == ["1", "1", "1", "1"]


def test_reverted_change_is_reverted_only_on_open_clusters() -> None:
    fleet = build_fleet()
    for value in ("1", "0"):
        fleet.edit({"name": "ring", "rollout": ROLLOUT, **build_ring_rule(value)})
        fleet.sync()

    assert fleet.rings == ["0", "0", "0", "0"]


def test_new_rule_starts_in_the_first_wave() -> None:
    fleet = RolloutFleet(read_policies(build_policy([{"name": "ring", "rollout": ROLLOUT, **build_ring_rule("1")}])))
    fleet.sync()

    assert fleet.rings == ["1", None, None, None]


def test_empty_rule_is_rolled_out_in_waves() -> None:
    fleet = build_fleet()
    fleet.edit({"name": "ring", "rollout": ROLLOUT})
    fleet.sync()

    assert fleet.rings == [None, "0", "0", "0"]


def test_other_rule_is_applied_everywhere() -> None:
    fleet = build_fleet()
    more = {"overriders": {"annotations": [{"operator": "set", "value": {"a": "b"}}]}}
    fleet.edit(more, {"name": "ring", "rollout": ROLLOUT, **build_ring_rule("1")})
    fleet.sync()

    drafted = [package.resources[0].document.data["metadata"]["annotations"] for package in fleet.drafted.values()]
    assert drafted == [{"a": "b"}] * 4


acts = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.sampled_from("012")),
        st.tuples(st.just("publish"), st.sampled_from(sorted(CLUSTERS))),
        st.tuples(st.just("tick"), st.sampled_from([1, 9, 10])),
        st.tuples(st.just("sync"), st.none()),
    ),
    max_size=25,
)


def perform(fleet: RolloutFleet, what: str, value: Any) -> None:
    match what:
        case "edit":
            fleet.edit({"name": "ring", "rollout": ROLLOUT, **build_ring_rule(value)})
        case "publish":
            fleet.publish(value)
        case "tick":
            fleet.now += value
        case "sync":
            fleet.sync()


def is_soaked(fleet: RolloutFleet, name: str) -> bool:
    text, since = fleet.published.get(name, (None, 0))
    return text == fleet.rule.text and since + SOAK <= fleet.now


@settings(max_examples=examples(100), deadline=None)
@given(acts)
def test_no_cluster_has_a_text_before_its_wave(some: list[tuple[str, Any]]) -> None:
    fleet = build_fleet()
    perform(fleet, "edit", "0")
    fleet.sync()
    for what, value in some:
        before = {name: texts[RULE] for name, texts in fleet.had.items()}
        perform(fleet, what, value)
        rollout = fleet.rule.rollout
        assert rollout is not None
        for name in CLUSTERS if what == "sync" else ():
            if before[name] != fleet.had[name][RULE]:
                earlier = [n for n in CLUSTERS if find_wave(rollout, CLUSTERS[n]) < find_wave(rollout, CLUSTERS[name])]
                assert all(is_soaked(fleet, item) for item in earlier)


@settings(max_examples=examples(50), deadline=None)
@given(acts)
def test_published_text_reaches_all_clusters(some: list[tuple[str, Any]]) -> None:
    fleet = build_fleet()
    for what, value in [("edit", "0"), ("sync", None), *some, ("edit", "2"), ("sync", None)]:
        perform(fleet, what, value)
    for _ in range(len(ROLLOUT["waves"]) + 1):
        for name in CLUSTERS:
            fleet.publish(name)
        fleet.now += SOAK
        fleet.sync()

    assert fleet.rings == ["2", "2", "2", "2"]
    assert fleet.gate() == RolloutGate(frozenset(CLUSTERS))
