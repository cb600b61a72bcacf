"""Tests of rollouts: which waves are open, computed from the branches and states of a fleet."""

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
from tests.unit.planning.builders import (
    INCOMPLETE_CONFIG,
    FakeRepository,
    build_commit_id,
    build_owner,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_variant,
    build_version,
)

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


class UnusedContents:
    """Contents that no test reads."""

    def read_function_fingerprint(self, name: str) -> str:
        return ""


def build_prepared_target(known: PackageRecord | None, published: str | None, value: Variant) -> PreparedTarget:
    place = build_target("berlin")
    packages = {"gw": known} if known else {}
    objects = FakeRepository({"b1": {"gw": published}}, dates={"b1": PUBLISHED_AT})
    ground = TargetSnapshot(
        place, build_state(packages=packages), TargetHeads(build_commit_id("b1")), objects, "drafts/{repository}"
    )  # type: ignore[arg-type]
    claims = TargetClaims((value,), frozenset({value.owner.key}), frozenset())
    render: RenderFunction = lambda variant, render_inputs: pytest.fail("nothing is rendered")  # noqa: E731
    shop = PlanningContext(ANSWERS, UnusedContents(), render, UnusedContents(), "drafts/{repository}", 0)  # type: ignore[arg-type]
    return PreparedTarget(place, claims, ground.state, ground, shop)


def build_published_record(answer: str | None, expected: str = "v2", **fields: Any) -> PackageRecord:
    """Return the record of a package with published v2 and `expected` as its last desired tree."""
    result = build_variant()
    trace = {**result.dependencies, **({f"rollout {NAMED} berlin": answer} if answer else {})}
    ours = build_version("v2")
    revisions = (PublishedRevision(1, build_commit_id("b1"), ours),)
    return build_record(
        trace=trace, desired_tree=build_tree_id(expected), published_version=ours, revisions=revisions, **fields
    )


GW = build_variant()
LISBON = replace(GW, target=replace(GW.target, repository="lisbon"))
LATER = PUBLISHED_AT + HOUR


def evaluate_gates(
    known: PackageRecord | None, published: str = "v2", now: int = LATER, value: Variant = GW
) -> RolloutGates:
    return RolloutTracker({"berlin": build_prepared_target(known, published, value)}, ANSWERS, MILE, {}).evaluate_gates(
        now
    )


def list_open_clusters(rollout_gates: RolloutGates) -> Iterable[str]:
    assert RULE
    return sorted(rollout_gates.gates[RULE].open_clusters)


def test_next_wave_waits_for_the_publication_of_the_first_wave() -> None:
    rollout_gates = evaluate_gates(build_published_record(TODAY))

    assert list_open_clusters(rollout_gates) == ["berlin", "lisbon"]
    assert (rollout_gates.next_due_seconds, rollout_gates.is_uncertain) == (None, False)


@pytest.mark.parametrize(
    ("rollout_gates", "due", "unsure"),
    [
        pytest.param(
            evaluate_gates(build_published_record(TODAY), now=PUBLISHED_AT), PUBLISHED_AT + HOUR, False, id="soaking"
        ),
        pytest.param(evaluate_gates(build_published_record(TODAY, "v3")), None, False, id="not-published"),
        pytest.param(evaluate_gates(build_published_record("sha256:before")), None, True, id="not-rendered-since"),
        pytest.param(evaluate_gates(build_published_record("closed")), None, True, id="rendered-while-it-was-closed"),
        pytest.param(
            evaluate_gates(build_published_record(TODAY, outcome={"kind": "blocked"})), None, False, id="blocked"
        ),
        pytest.param(evaluate_gates(None), None, True, id="never-made"),
        pytest.param(
            evaluate_gates(build_published_record(TODAY, owner=build_owner("other"))), None, True, id="other-owner"
        ),
        pytest.param(
            evaluate_gates(build_published_record(TODAY), value=replace(GW, dependencies={"variant": "new"})),
            None,
            True,
            id="old",
        ),
    ],
)
def test_wave_stays_closed(rollout_gates: RolloutGates, due: int | None, unsure: bool) -> None:
    assert list_open_clusters(rollout_gates) == ["berlin"]
    assert (rollout_gates.next_due_seconds, rollout_gates.is_uncertain) == (due, unsure)


def test_package_that_the_rule_does_not_change_does_not_delay_the_next_wave() -> None:
    assert list_open_clusters(evaluate_gates(build_published_record(None, "v3"))) == ["berlin", "lisbon"]


def test_package_with_failed_functions_delays_the_rules_that_it_had() -> None:
    assert RULE
    assert list_open_clusters(evaluate_gates(build_published_record(None, rule_texts={RULE: "{}"}))) == ["berlin"]


def test_local_change_after_publication_does_not_delay_the_next_wave() -> None:
    assert list_open_clusters(evaluate_gates(build_published_record(TODAY), "edited")) == ["berlin", "lisbon"]


def test_unreadable_cluster_delays_the_next_wave() -> None:
    rollout_gates = RolloutTracker({"berlin": None}, ANSWERS, MILE, {}).evaluate_gates(PUBLISHED_AT)

    assert list_open_clusters(rollout_gates) == ["berlin"]
    assert rollout_gates.is_uncertain is False


def test_closed_waves_are_applied_to_cluster_overrides() -> None:
    closed = apply_rollout_gates(MILE, evaluate_gates(build_published_record(TODAY, "v3"))).closed_clusters

    assert RULE
    assert closed == {RULE: frozenset({"lisbon"})}


def build_drafted_record(answer: str | None) -> PackageRecord:
    """Return the record of a package on Lisbon with this recorded rule text in its trace."""
    mapping = {f"rollout {NAMED} lisbon": answer} if answer else {}
    return build_record(trace={**LISBON.dependencies, **mapping}, desired_tree=build_tree_id("v2"))


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
def test_open_clusters_stay_open_while_data_is_missing(
    berlin: str | None, lisbon: str | None, expected: list[str]
) -> None:
    known = {
        "berlin": build_prepared_target(build_published_record(berlin), "v2", GW),
        "lisbon": build_prepared_target(build_drafted_record(lisbon), "v2", LISBON),
    }

    assert list_open_clusters(RolloutTracker(known, ANSWERS, MILE, {}).evaluate_gates(LATER)) == expected


@pytest.mark.parametrize(
    ("went_back", "expected"),
    [pytest.param(False, ["berlin", "lisbon"], id="a-new-version"), pytest.param(True, ["berlin"], id="a-revert")],
)
def test_open_wave_closes_only_after_a_rollback(went_back: bool, expected: list[str]) -> None:
    assert RULE
    drafted = build_published_record(TODAY, "v3")
    text = MILE.rollouts[RULE].text
    reverted = PublishedRevision(2, build_commit_id("b2"), replace(build_version("v3"), rules={RULE: text}))
    berlin = replace(drafted, revisions=(*drafted.revisions, reverted)) if went_back else drafted
    known = {
        "berlin": build_prepared_target(berlin, "v2", GW),
        "lisbon": build_prepared_target(build_drafted_record(TODAY), "v2", LISBON),
    }

    assert list_open_clusters(RolloutTracker(known, ANSWERS, MILE, {}).evaluate_gates(LATER)) == expected


def test_drafted_version_does_not_replace_the_published_rule_text() -> None:
    assert RULE
    drafted = build_published_record(TODAY, "v3")
    ours = replace(build_version("v2"), rules={RULE: MILE.rollouts[RULE].text})
    published = replace(drafted, published_version=ours, revisions=(PublishedRevision(1, build_commit_id("b1"), ours),))

    assert list_open_clusters(evaluate_gates(published)) == ["berlin", "lisbon"]


DOUBTFUL = build_published_record(TODAY, policy_usage={"OverridePolicy/shop/sizing": {"resources": {}, "rules": [0]}})
OWNER = DOUBTFUL.owner.key
NO_CLAIMS = TargetClaims((), frozenset(), frozenset())


@pytest.mark.parametrize(
    ("claims", "known", "expected"),
    [
        pytest.param(NO_CLAIMS, DOUBTFUL, ["berlin", "lisbon"], id="not-requested"),
        pytest.param(
            replace(NO_CLAIMS, completeness=INCOMPLETE_CONFIG), DOUBTFUL, ["berlin"], id="a-file-cannot-be-read"
        ),
        pytest.param(
            replace(NO_CLAIMS, stalled_packages=frozenset({"gw"})), DOUBTFUL, ["berlin"], id="stalled-package"
        ),
        pytest.param(
            replace(NO_CLAIMS, unresolved_owners=frozenset({OWNER})), DOUBTFUL, ["berlin"], id="unresolved-target"
        ),
        pytest.param(
            replace(NO_CLAIMS, similar_objects={(OWNER.namespace, OWNER.name): OWNER._replace(kind="PackageVarient")}),
            DOUBTFUL,
            ["berlin"],
            id="its-owner-may-be-misspelt",
        ),
        pytest.param(
            replace(NO_CLAIMS, completeness=INCOMPLETE_CONFIG),
            build_published_record(TODAY),
            ["berlin", "lisbon"],
            id="without-the-policy",
        ),
        pytest.param(
            replace(NO_CLAIMS, completeness=INCOMPLETE_CONFIG),
            build_record(),
            ["berlin"],
            id="found-again-with-unknown-content",
        ),
    ],
)
def test_package_with_unknown_state_keeps_the_next_wave_closed(
    claims: TargetClaims, known: PackageRecord, expected: list[str]
) -> None:
    there = replace(build_prepared_target(known, "v2", GW), claims=claims)

    rollout_gates = RolloutTracker({"berlin": there}, ANSWERS, MILE, {}).evaluate_gates(LATER)

    assert (list_open_clusters(rollout_gates), rollout_gates.is_uncertain) == (expected, False)


@pytest.mark.parametrize(
    ("ours", "due"),
    [
        # The publication has the date of its content, not the date of its draft.
        pytest.param(("b1",), LATER + 100, id="a-commit-of-ours"),
        pytest.param((), None, id="a-merge-of-people"),
    ],
)
def test_soak_time_starts_at_publication(ours: tuple[str, ...], due: int | None) -> None:
    prepared_target = build_prepared_target(build_published_record(TODAY), "v2", GW)
    objects = replace(prepared_target.snapshot.objects, ours=ours)  # type: ignore[type-var]
    there = {"berlin": replace(prepared_target, snapshot=replace(prepared_target.snapshot, objects=objects))}
    rollout_gates = RolloutTracker(there, ANSWERS, MILE, {"berlin": {"gw": PUBLISHED_AT + 100}}).evaluate_gates(LATER)

    assert rollout_gates.next_due_seconds == due
    assert list_open_clusters(rollout_gates) == (["berlin"] if due else ["berlin", "lisbon"])
