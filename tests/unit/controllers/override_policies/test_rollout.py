"""Tests of rollout gates: a wave opens when all earlier waves are published and have soaked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.controllers.clusters.selection import Cluster, ClusterSelection
from reconciler.controllers.override_policies.model import OverrideRule, Rollout
from reconciler.controllers.override_policies.rollout import (
    ProgressPending,
    ProgressPublished,
    ProgressUnknown,
    RolloutGate,
    RolloutProgress,
    RuleId,
    evaluate_gate,
    find_rollouts,
    find_wave,
    parse_rule_id,
)
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.override_policies.override_world import build_policy, read_policies

SHOP = "shop/checkout"
CLUSTERS = {
    name: Cluster(name, labels)
    for name, labels in {
        "canary": {"ring": "first"},
        "eu-1": {"ring": "early"},
        "eu-2": {"ring": "early"},
        "us-1": {},
        "vip": {"ring": "early"},
    }.items()
}
ROLLOUT = Rollout(
    (
        ClusterSelection(("canary",)),
        ClusterSelection(selector={"ring": "early"}, excluded_clusters=("vip",)),
        ClusterSelection(("us-1",)),
    ),
    "1m",
)
RULE = OverrideRule(rollout=ROLLOUT)
NOW = 1_000


@pytest.mark.parametrize(
    ("name", "labels", "wave"),
    [
        pytest.param("canary", {}, 0, id="by-name"),
        pytest.param("canary", {"ring": "early"}, 0, id="the-first-that-matches"),
        pytest.param("eu-1", {"ring": "early"}, 1, id="by-label"),
        pytest.param("vip", {"ring": "early"}, 3, id="excluded"),
        pytest.param("us-1", {}, 2, id="third"),
        pytest.param("new", {}, 3, id="a-cluster-without-a-wave-is-last"),
    ],
)
def test_wave_of_a_cluster(name: str, labels: dict[str, str], wave: int) -> None:
    assert find_wave(ROLLOUT, Cluster(name, labels)) == wave


def evaluate(
    mapping: Mapping[str, Iterable[RolloutProgress]], rule: OverrideRule = RULE, now: int = NOW
) -> RolloutGate:
    return evaluate_gate(rule, CLUSTERS, lambda name: mapping.get(name, ()), now)


def build_published(since: int, package: str = SHOP) -> list[RolloutProgress]:
    return [ProgressPublished(package, since)]


SOAKED, FRESH = build_published(NOW - 60), build_published(NOW - 59)
EARLY = {"eu-1": SOAKED, "eu-2": SOAKED}


@pytest.mark.parametrize(
    ("value", "expected", "due"),
    [
        pytest.param({"canary": [ProgressPending(SHOP)]}, ["canary"], None, id="the-first-wave-is-always-open"),
        pytest.param({"canary": [ProgressUnknown(SHOP)]}, ["canary"], None, id="not-rendered"),
        pytest.param({"canary": FRESH}, ["canary"], NOW + 1, id="soaking"),
        pytest.param({"canary": build_published(NOW + 500)}, ["canary"], NOW + 560, id="a-date-to-come"),
        pytest.param({"canary": [*FRESH, ProgressPending("a/b")]}, ["canary"], None, id="soaking-and-not-published"),
        pytest.param({"canary": SOAKED, "eu-1": [ProgressPending(SHOP)]}, ["canary", "eu-1", "eu-2"], None, id="soaked"),
        pytest.param({"eu-1": [ProgressPending(SHOP)]}, ["canary", "eu-1", "eu-2"], None, id="a-wave-without-packages-is-complete"),
        pytest.param(
            {"canary": SOAKED, "eu-1": SOAKED, "eu-2": build_published(NOW - 10)}, ["canary", "eu-1", "eu-2"], NOW + 50,
            id="the-last-one-counts",
        ),
        pytest.param(
            {"canary": SOAKED + build_published(NOW - 20, "a/b")}, ["canary"], NOW + 40, id="the-last-package-counts"
        ),
        pytest.param(
            {"canary": SOAKED, **EARLY, "us-1": [ProgressPending(SHOP)]}, ["canary", "eu-1", "eu-2", "us-1"], None,
            id="all-but-the-rest",
        ),
        pytest.param({"vip": [ProgressPending(SHOP)]}, [*CLUSTERS], None, id="no-wave-waits-for-the-last"),
        pytest.param({"canary": FRESH, **EARLY}, ["canary"], NOW + 1, id="waves-open-in-order"),
    ],
)  # fmt: skip
def test_open_clusters(value: Any, expected: list[str], due: int | None) -> None:
    rollout_gate = evaluate(value)

    assert (sorted(rollout_gate.open_clusters), rollout_gate.next_opening_seconds) == (sorted(expected), due)


def test_dates_do_not_matter_without_a_soak_time() -> None:
    rule = OverrideRule(rollout=Rollout(ROLLOUT.waves[:1]))

    rollout_gate = evaluate({"canary": build_published(NOW + 500)}, rule)

    assert (rollout_gate.open_clusters, rollout_gate.next_opening_seconds, rollout_gate.wait_reasons) == (
        frozenset(CLUSTERS),
        None,
        {},
    )


def test_clusters_outside_the_current_targets_count() -> None:
    rule = OverrideRule(ClusterSelection(("us-1",)), rollout=ROLLOUT)

    assert evaluate({"canary": [ProgressPending(SHOP)]}, rule).open_clusters == {"canary"}


def test_waves_without_clusters_are_skipped() -> None:
    rule = OverrideRule(
        rollout=Rollout((ClusterSelection(("gone",)), ClusterSelection(("canary",)), ClusterSelection(("gone",))))
    )

    rollout_gate = evaluate({"canary": [ProgressPending(SHOP)]}, rule)

    assert rollout_gate.open_clusters == {"canary"}
    assert [*rollout_gate.wait_reasons] == [3]


def test_gate_without_clusters_is_empty() -> None:
    assert evaluate_gate(RULE, {}, lambda _: (), NOW) == RolloutGate(frozenset())


def test_closed_wave_states_its_reasons() -> None:
    rollout_gate = evaluate({"canary": [ProgressUnknown("b"), ProgressPending("a"), ProgressPublished("c", NOW)]})

    assert rollout_gate.wait_reasons == {
        1: 'waits for cluster "canary": a is not published with the current version of the rule; cluster "canary": b is not published with the current version of the rule',
        2: "waits for wave 1 to open",
        3: "waits for wave 1 to open",
    }


@pytest.mark.parametrize(
    ("value", "undecided"),
    [
        pytest.param({"canary": [ProgressUnknown(SHOP)]}, {"eu-1", "eu-2", "us-1", "vip"}, id="not-rendered"),
        pytest.param(
            {"canary": [ProgressUnknown(SHOP), *SOAKED]}, {"eu-1", "eu-2", "us-1", "vip"}, id="others-are-published"
        ),
        pytest.param({"canary": [ProgressPending("a/b")]}, {"eu-1", "eu-2", "us-1", "vip"}, id="another-is-behind"),
        pytest.param(
            {"canary": [ProgressUnknown(SHOP), ProgressPending("a/b", has_retreated=True)]},
            set(),
            id="another-went-back",
        ),
        pytest.param({"canary": FRESH}, {"eu-1", "eu-2", "us-1", "vip"}, id="soaking"),
        pytest.param(
            {"canary": SOAKED, "eu-1": [ProgressUnknown()]}, {"us-1", "vip"}, id="of-the-waves-that-are-closed"
        ),
    ],
)
def test_undecided_clusters(value: Any, undecided: set[str]) -> None:
    assert evaluate(value).undecided_clusters == undecided


def test_soaking_wave_states_its_end() -> None:
    rollout_gate = evaluate({"canary": SOAKED, "eu-1": build_published(NOW - 10), "eu-2": SOAKED})

    assert rollout_gate.wait_reasons[2] == (
        'waits until 1970-01-01T00:17:30Z, because the soak time is 1m: cluster "eu-1" has shop/checkout with the current version of the rule since 1970-01-01T00:16:30Z'
    )


@pytest.mark.parametrize(
    ("count", "end"), [(5, "p4 is not published with the current version of the rule"), (6, "; and 1 more")]
)
def test_reason_names_at_most_five_packages(count: int, end: str) -> None:
    why = evaluate({"canary": [ProgressPending(f"p{number}") for number in reversed(range(count))]}).wait_reasons[1]

    assert why.count('cluster "canary": p') == 5
    assert why.endswith(end)


# The name of a policy can be a name that Kubernetes refuses.
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@settings(deadline=None)
@given(
    st.sampled_from(["OverridePolicy", "ClusterOverridePolicy"]),
    names | st.just(""),
    names,
    st.sampled_from(["0", "a-b"]),
)
def test_rule_id_is_one_word_and_parsed_as_the_same_id(kind: str, namespace: str, name: str, rule: str) -> None:
    rule_id = RuleId(ObjectKey(KUBEADMIRAL_GROUP, kind, namespace, name), rule)

    assert str(rule_id).split() == [str(rule_id)]
    assert parse_rule_id(str(rule_id)) == rule_id


@pytest.mark.parametrize(
    "text",
    ["", "#a", "OverridePolicy/shop/one", "OverridePolicy/shop/one#", "OverridePolicy/one#a", "Policy/a/b#c",
     "OverridePolicy/a/b/c#d", "OverridePolicy/a/#d"],
)  # fmt: skip
def test_invalid_rule_id_is_refused(text: str) -> None:
    assert parse_rule_id(text) is None


@pytest.mark.parametrize("name", ["%FF", "\ud800"])
def test_rule_id_with_a_surrogate_is_parsed(name: str) -> None:
    rule_id = parse_rule_id(f"OverridePolicy/a/{name}#d")

    assert rule_id is not None
    assert rule_id.policy.name in ("\ufffd", "?")


def test_rules_with_a_rollout_are_found() -> None:
    waves = {"rollout": {"waves": [{"clusters": ["canary"]}]}}
    named, plain = {"name": "fresh", **waves}, {"name": "plain"}
    policies = read_policies(
        build_policy([plain, waves, named], name="b"),
        build_policy([waves], name="a"),
        build_policy([{"x": 1}], name="c"),
    )

    result = find_rollouts(policies)

    start = "ClusterOverridePolicy/_cluster"
    assert [str(rule_id) for rule_id in result] == [f"{start}/a#0", f"{start}/b#1", f"{start}/b#fresh"]
    assert [override_rule.name for override_rule in result.values()] == ["", "", "fresh"]


progresses = st.one_of(
    st.builds(ProgressUnknown, st.just("a/b")),
    st.builds(ProgressPending, st.just("a/c")),
    st.builds(ProgressPublished, st.sampled_from(["a/d", "a/e"]), st.integers(0, 40)),
)
published = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(st.builds(ProgressPublished, st.just("a/d"), st.integers(0, 40)), max_size=2),
    min_size=3,
)
fleets = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(progresses, max_size=2), max_size=8)
rollouts = st.builds(
    Rollout,
    st.lists(
        st.builds(ClusterSelection, st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3).map(tuple)),
        max_size=4,
    ).map(tuple),
    st.sampled_from(["", "5s", "30s"]),
)
moments = st.integers(0, 80)
Fleet = dict[str, list[RolloutProgress]]


def evaluate_fleet(rollout: Rollout, mapping: Fleet, now: int) -> RolloutGate:
    return evaluate_gate(
        OverrideRule(rollout=rollout), {name: Cluster(name) for name in mapping}, mapping.__getitem__, now
    )


@settings(deadline=None)
@given(rollouts, fleets, moments)
def test_open_clusters_are_the_first_waves(rollout: Rollout, fleet: Fleet, now: int) -> None:
    rollout_gate = evaluate_fleet(rollout, fleet, now)

    waves = {name: find_wave(rollout, Cluster(name)) for name in fleet}
    closed = {waves[name] for name in fleet if name not in rollout_gate.open_clusters}
    assert {*rollout_gate.wait_reasons} == closed
    assert all(waves[name] < min(closed, default=99) for name in rollout_gate.open_clusters)
    assert not fleet or rollout_gate.open_clusters


@settings(deadline=None)
@given(rollouts, fleets, moments, st.data())
def test_more_progress_never_closes_a_wave(rollout: Rollout, fleet: Fleet, now: int, data: st.DataObject) -> None:
    later = {
        name: [item if isinstance(item, ProgressPublished) else data.draw(progresses) for item in some]
        for name, some in fleet.items()
    }

    assert (
        evaluate_fleet(rollout, fleet, now).open_clusters
        <= evaluate_fleet(rollout, later, data.draw(st.integers(now, 100))).open_clusters
    )


@settings(deadline=None)
@given(rollouts, fleets | published, moments)
def test_next_opening_is_exact_to_the_second(rollout: Rollout, fleet: Fleet, now: int) -> None:
    rollout_gate = evaluate_fleet(rollout, fleet, now)

    if rollout_gate.next_opening_seconds is None:
        assert evaluate_fleet(rollout, fleet, now + 10_000) == rollout_gate
    else:
        assert now < rollout_gate.next_opening_seconds
        assert evaluate_fleet(rollout, fleet, rollout_gate.next_opening_seconds - 1) == rollout_gate
        assert (
            evaluate_fleet(rollout, fleet, rollout_gate.next_opening_seconds).open_clusters > rollout_gate.open_clusters
        )


@settings(deadline=None)
@given(rollouts, fleets, moments)
def test_progress_is_requested_at_most_once_per_cluster(rollout: Rollout, fleet: Fleet, now: int) -> None:
    values: list[str] = []

    def progress(name: str) -> list[RolloutProgress]:
        values.append(name)
        return fleet[name]

    rollout_gate = evaluate_gate(OverrideRule(rollout=rollout), {name: Cluster(name) for name in fleet}, progress, now)

    assert len(values) == len({*values})
    last = {
        name
        for name in fleet
        if find_wave(rollout, Cluster(name)) == max(find_wave(rollout, Cluster(n)) for n in fleet)
    }
    assert {*values} == (rollout_gate.open_clusters if rollout_gate.wait_reasons else {*fleet} - last)


@settings(deadline=None)
@given(rollouts, fleets, moments)
def test_order_of_clusters_does_not_matter(rollout: Rollout, fleet: Fleet, now: int) -> None:
    backwards = {name: some[::-1] for name, some in reversed(fleet.items())}

    assert evaluate_fleet(rollout, backwards, now).open_clusters == evaluate_fleet(rollout, fleet, now).open_clusters
