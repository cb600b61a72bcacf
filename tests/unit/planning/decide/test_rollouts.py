"""Rollouts: how far rules have come, as the branches and states of a fleet tell."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import DependencyReader
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.read_policies import read_override_policies
from reconciler.controllers.override_policies.rollout import parse_rule_id
from reconciler.controllers.results import Variant
from reconciler.planning.decide.package_decision import RenderFunction
from reconciler.planning.decide.rollouts import RolloutGates, RolloutTracker, apply_rollout_gates
from reconciler.planning.decide.target_inputs import PlanningContext, PreparedTarget, TargetClaims
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.state import PackageRecord, PublishedRevision
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from tests.unit.planning.values import Tables, commit, destination, offer, owner, record, state, tree, variant

POLICY = """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: OverridePolicy
metadata: {name: sizing, namespace: shop}
spec:
  overrideRules:
  - name: replicas
    rollout:
      waves: [{clusters: [berlin]}]
      soak: 1h
    overriders:
      jsonpatch: [{path: /spec/replicas, value: 5}]
"""
CATALOG = read_catalog(FileTree({"p.yaml": File(POLICY.encode())}))
NAMED = "OverridePolicy/shop/sizing#replicas"
RULE = parse_rule_id(NAMED)
MILE = ClusterOverrides(read_override_policies(CATALOG), {name: Cluster(name) for name in ("berlin", "lisbon")})
ANSWERS = DependencyReader(CATALOG, MILE.build_dependency_functions())
TODAY = MILE.rollouts[RULE].digest if RULE else ""
PUBLISHED_AT = 1_000_000
HOUR = 3600


class Nothing:
    """Contents that nobody needs here."""

    def read_function_fingerprint(self, name: str) -> str:
        return ""


def surveyed(known: PackageRecord | None, published: str | None, value: Variant) -> PreparedTarget:
    place = destination("berlin")
    packages = {"gw": known} if known else {}
    objects = Tables({"b1": {"gw": published}}, dates={"b1": PUBLISHED_AT})
    ground = TargetSnapshot(place, state(packages=packages), TargetHeads(commit("b1")), objects, "drafts/{repository}")  # type: ignore[arg-type]
    claims = TargetClaims((value,), frozenset({value.owner.key}), frozenset(), is_complete=True)
    render: RenderFunction = lambda variant, render_inputs: pytest.fail("nothing is rendered")  # noqa: E731
    shop = PlanningContext(ANSWERS, Nothing(), render, Nothing(), "drafts/{repository}", 0)  # type: ignore[arg-type]
    return PreparedTarget(place, claims, ground.state, ground, shop)


def made_with(answer: str | None, expected: str = "v2", **fields: Any) -> PackageRecord:
    """Return the record of a package whose v2 is published, and of which `wanted` was made last."""
    result = variant()
    trace = {**result.dependencies, **({f"rollout {NAMED} berlin": answer} if answer else {})}
    ours = offer("v2")
    revisions = (PublishedRevision(1, commit("b1"), ours),)
    return record(trace=trace, desired_tree=tree(expected), published_version=ours, revisions=revisions, **fields)


GW = variant()
LISBON = replace(GW, target=replace(GW.target, repository="lisbon"))
LATER = PUBLISHED_AT + HOUR


def rollouts(known: PackageRecord | None, published: str = "v2", now: int = LATER, value: Variant = GW) -> RolloutGates:
    return RolloutTracker({"berlin": surveyed(known, published, value)}, ANSWERS, MILE, {}).evaluate_gates(now)


def opened(rollout_gates: RolloutGates) -> Iterable[str]:
    assert RULE
    return sorted(rollout_gates.gates[RULE].open_clusters)


def test_the_first_wave_is_open_and_the_next_waits_for_what_it_publishes() -> None:
    rollout_gates = rollouts(made_with(TODAY))

    assert opened(rollout_gates) == ["berlin", "lisbon"]
    assert (rollout_gates.next_due_seconds, rollout_gates.is_uncertain) == (None, False)


@pytest.mark.parametrize(
    ("rollout_gates", "due", "unsure"),
    [
        pytest.param(rollouts(made_with(TODAY), now=PUBLISHED_AT), PUBLISHED_AT + HOUR, False, id="soaking"),
        pytest.param(rollouts(made_with(TODAY, "v3")), None, False, id="not-published"),
        pytest.param(rollouts(made_with("sha256:before")), None, True, id="not-rendered-since"),
        pytest.param(rollouts(made_with("closed")), None, True, id="rendered-while-it-was-closed"),
        pytest.param(rollouts(made_with(TODAY, outcome={"kind": "blocked"})), None, False, id="blocked"),
        pytest.param(rollouts(None), None, True, id="never-made"),
        pytest.param(rollouts(made_with(TODAY, owner=owner("other"))), None, True, id="somebody-elses"),
        pytest.param(
            rollouts(made_with(TODAY), value=replace(GW, dependencies={"variant": "new"})), None, True, id="old"
        ),
    ],
)
def test_a_wave_stays_closed(rollout_gates: RolloutGates, due: int | None, unsure: bool) -> None:
    assert opened(rollout_gates) == ["berlin"]
    assert (rollout_gates.next_due_seconds, rollout_gates.is_uncertain) == (due, unsure)


def test_a_package_that_the_rule_does_not_concern_holds_nobody_up() -> None:
    assert opened(rollouts(made_with(None, "v3"))) == ["berlin", "lisbon"]


def test_a_package_whose_functions_fail_holds_up_the_rules_that_it_had() -> None:
    assert RULE
    assert opened(rollouts(made_with(None, rule_texts={RULE: "{}"}))) == ["berlin"]


def test_what_people_changed_after_publishing_is_still_published() -> None:
    assert opened(rollouts(made_with(TODAY), "edited")) == ["berlin", "lisbon"]


def test_a_cluster_that_cannot_be_read_holds_up_the_next_wave() -> None:
    rollout_gates = RolloutTracker({"berlin": None}, ANSWERS, MILE, {}).evaluate_gates(PUBLISHED_AT)

    assert opened(rollout_gates) == ["berlin"]
    assert rollout_gates.is_uncertain is False


def test_closed_waves_are_those_that_are_not_open() -> None:
    closed = apply_rollout_gates(MILE, rollouts(made_with(TODAY, "v3"))).closed_clusters

    assert RULE
    assert closed == {RULE: frozenset({"lisbon"})}


def arrived(answer: str | None) -> PackageRecord:
    """Return the record of a package on Lisbon, by what it was answered when it was made last."""
    mapping = {f"rollout {NAMED} lisbon": answer} if answer else {}
    return record(trace={**LISBON.dependencies, **mapping}, desired_tree=tree("v2"))


@pytest.mark.parametrize(
    ("berlin", "lisbon", "expected"),
    [
        pytest.param("closed", TODAY, ["berlin", "lisbon"], id="it-has-come-there"),
        pytest.param("closed", "closed", ["berlin"], id="it-has-not-come-there"),
        pytest.param("closed", "sha256:before", ["berlin"], id="an-earlier-text-has"),
        pytest.param("closed", None, ["berlin"], id="the-rule-is-for-nothing-there"),
        pytest.param(None, TODAY, ["berlin", "lisbon"], id="nothing-holds-it-up"),
    ],
)
def test_what_has_come_to_a_cluster_stays_while_not_all_is_known(
    berlin: str | None, lisbon: str | None, expected: list[str]
) -> None:
    known = {"berlin": surveyed(made_with(berlin), "v2", GW), "lisbon": surveyed(arrived(lisbon), "v2", LISBON)}

    assert opened(RolloutTracker(known, ANSWERS, MILE, {}).evaluate_gates(LATER)) == expected


@pytest.mark.parametrize(
    ("went_back", "expected"),
    [pytest.param(False, ["berlin", "lisbon"], id="a-new-version"), pytest.param(True, ["berlin"], id="a-revert")],
)
def test_an_open_wave_closes_only_where_a_package_went_back(went_back: bool, expected: list[str]) -> None:
    assert RULE
    drafted = made_with(TODAY, "v3")
    text = MILE.rollouts[RULE].text
    reverted = PublishedRevision(2, commit("b2"), replace(offer("v3"), rules={RULE: text}))
    berlin = replace(drafted, revisions=(*drafted.revisions, reverted)) if went_back else drafted
    known = {"berlin": surveyed(berlin, "v2", GW), "lisbon": surveyed(arrived(TODAY), "v2", LISBON)}

    assert opened(RolloutTracker(known, ANSWERS, MILE, {}).evaluate_gates(LATER)) == expected


def test_a_drafted_version_does_not_take_back_the_text_that_is_published() -> None:
    assert RULE
    drafted = made_with(TODAY, "v3")
    ours = replace(offer("v2"), rules={RULE: MILE.rollouts[RULE].text})
    published = replace(drafted, published_version=ours, revisions=(PublishedRevision(1, commit("b1"), ours),))

    assert opened(rollouts(published)) == ["berlin", "lisbon"]


DOUBTFUL = made_with(TODAY, policy_usage={"OverridePolicy/shop/sizing": {"resources": {}, "rules": [0]}})
OWNER = DOUBTFUL.owner.key
NOBODY = TargetClaims((), frozenset(), frozenset(), is_complete=True)


@pytest.mark.parametrize(
    ("claims", "known", "expected"),
    [
        pytest.param(NOBODY, DOUBTFUL, ["berlin", "lisbon"], id="nobody-wants-it"),
        pytest.param(replace(NOBODY, is_complete=False), DOUBTFUL, ["berlin"], id="a-file-cannot-be-read"),
        pytest.param(
            replace(NOBODY, stalled_packages=frozenset({"gw"})), DOUBTFUL, ["berlin"], id="it-cannot-be-worked-out"
        ),
        pytest.param(
            replace(NOBODY, unresolved_owners=frozenset({OWNER})), DOUBTFUL, ["berlin"], id="nor-where-it-goes"
        ),
        pytest.param(
            replace(NOBODY, similar_objects={(OWNER.namespace, OWNER.name): OWNER._replace(kind="PackageVarient")}),
            DOUBTFUL,
            ["berlin"],
            id="its-owner-may-be-misspelt",
        ),
        pytest.param(
            replace(NOBODY, is_complete=False), made_with(TODAY), ["berlin", "lisbon"], id="without-the-policy"
        ),
        pytest.param(replace(NOBODY, is_complete=False), record(), ["berlin"], id="found-again-with-nobody-knows-what"),
    ],
)
def test_a_package_in_doubt_keeps_the_next_wave_closed(
    claims: TargetClaims, known: PackageRecord, expected: list[str]
) -> None:
    there = replace(surveyed(known, "v2", GW), claims=claims)

    rollout_gates = RolloutTracker({"berlin": there}, ANSWERS, MILE, {}).evaluate_gates(LATER)

    assert (opened(rollout_gates), rollout_gates.is_uncertain) == (expected, False)


@pytest.mark.parametrize(
    ("ours", "due"),
    [
        # it has the date of its content, however long it lay on a draft
        pytest.param(("b1",), LATER + 100, id="a-commit-of-ours"),
        pytest.param((), None, id="a-merge-of-people"),
    ],
)
def test_a_soak_begins_when_it_is_published(ours: tuple[str, ...], due: int | None) -> None:
    prepared_target = surveyed(made_with(TODAY), "v2", GW)
    objects = replace(prepared_target.snapshot.objects, ours=ours)  # type: ignore[type-var]
    there = {"berlin": replace(prepared_target, snapshot=replace(prepared_target.snapshot, objects=objects))}
    rollout_gates = RolloutTracker(there, ANSWERS, MILE, {"berlin": {"gw": PUBLISHED_AT + 100}}).evaluate_gates(LATER)

    assert rollout_gates.next_due_seconds == due
    assert opened(rollout_gates) == (["berlin"] if due else ["berlin", "lisbon"])
