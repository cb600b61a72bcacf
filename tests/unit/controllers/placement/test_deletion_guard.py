"""Tests of the deletion guard of placements: a policy limits how many packages one pass deletes without
confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.results import DeletionGuard, PackageTarget
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.placement.controller_world import (
    CLUSTER_POLICY_LABEL,
    FakeBranches,
    build_cluster,
    build_cluster_policy,
    build_config_map,
    build_policy,
    build_policy_label,
    build_single_file,
    find_finding,
    list_codes,
    run_controller,
)

TEN = [f"edge-{number}" for number in range(10)]
WIDE = {f"{name}.yaml": build_cluster(name, f"{{at: {name}}}") for name in TEN}
OWNER = ObjectKey("reconciler.dev", "Placement", "", "ferry")
EVERYWHERE = FakeBranches.of(run_controller({"a.yaml": build_config_map(clusters="'*'")}, fleet=WIDE))


def build_policy_for_clusters(count: int, *, ack: str = "") -> str:
    names = ", ".join(f"{{cluster: {name}}}" for name in TEN[:count])
    return build_policy(f"{{placement: [{names}]}}" if count else "{clusterSelector: {at: moon}}", ack=ack)


def compute_hash(names: list[str], package: str = "resources/ferry") -> str:
    return compute_deletion_hash((name, package) for name in names)


def build_targets(names: list[str]) -> frozenset[PackageTarget]:
    return frozenset(PackageTarget("acme", name, "resources/ferry") for name in names)


@pytest.mark.parametrize(
    ("spec", "released", "is_held"),
    [
        pytest.param(build_policy_for_clusters(10), [], False, id="no-deletions"),
        pytest.param(build_policy_for_clusters(7), TEN[7:], False, id="thirty-percent-are-deleted"),
        pytest.param(build_policy_for_clusters(6), [], True, id="more-are-held"),
        pytest.param(build_policy_for_clusters(0), [], True, id="all-are-held"),
        pytest.param(
            build_policy_for_clusters(0, ack=compute_hash(TEN)), TEN, False, id="until-the-policy-acknowledges-it"
        ),
        pytest.param(build_policy_for_clusters(6, ack=compute_hash(TEN)), [], True, id="of-exactly-these"),
        pytest.param(
            build_policy_for_clusters(6, ack=f"0123456789abcdef, {compute_hash(TEN[6:])}"),
            TEN[6:],
            False,
            id="one-hash-of-several",
        ),
    ],
)
def test_policy_guards_its_deletions(spec: str, released: list[str], is_held: bool) -> None:
    result = run_controller(build_single_file(build_config_map(labels=build_policy_label()), spec), EVERYWHERE, WIDE)

    guard = result.guards[OWNER]
    assert guard.targets == build_targets(released)
    assert bool(guard.reason) == is_held
    assert ("DeletionHeld" in list_codes(result)) == is_held
    assert result.statuses[0].conditions[0].reason == ("DeletionHeld" if is_held else "Placed")


def test_finding_contains_the_confirmation() -> None:
    result = run_controller(
        build_single_file(build_config_map(labels=build_policy_label()), build_policy_for_clusters(6)), EVERYWHERE, WIDE
    )

    actual_finding = find_finding(result, "DeletionHeld")
    assert (str(actual_finding.location).split()[0], actual_finding.severity) == ("app.yaml:9", "error")
    assert actual_finding.message == (
        "4 of 10 packages would be deleted (edge-6/resources/ferry, edge-7/resources/ferry, edge-8/resources/ferry,"
        " edge-9/resources/ferry). A person must confirm this deletion. Next step: annotate PropagationPolicy ferry/edge with"
        f' reconciler.dev/ack-deletions: "{compute_hash(TEN[6:])}"'
    )


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([build_config_map(clusters="edge-1")], id="a-placement-by-annotation"),
        pytest.param([build_config_map()], id="a-resource-without-any-marks"),
        pytest.param([build_policy_for_clusters(0)], id="the-last-resource-is-gone"),
        pytest.param(
            [build_config_map("b", "other", labels=build_policy_label()), build_policy_for_clusters(0)],
            id="a-policy-of-others",
        ),
    ],
)
def test_placement_without_policy_has_no_guard(texts: list[str]) -> None:
    result = run_controller(build_single_file(*texts), EVERYWHERE, WIDE)

    assert OWNER not in result.guards
    assert "DeletionHeld" not in list_codes(result)


@pytest.mark.parametrize(
    ("count", "held", "is_blocked"),
    [
        pytest.param(9, {}, False, id="one-of-ten"),
        pytest.param(9, {"edge-9": 1}, True, id="that-was-the-only-one"),
        pytest.param(8, {"edge-9": 5}, True, id="two-of-five"),
        pytest.param(9, {"edge-1": 1}, False, id="a-package-that-is-requested-again-does-not-count"),
    ],
)
def test_held_deletion_keeps_its_original_package_count(count: int, held: Mapping[str, int], is_blocked: bool) -> None:
    units = {(cluster, "resources/ferry"): existing for cluster, existing in held.items()}

    result = run_controller(
        build_single_file(build_config_map(labels=build_policy_label()), build_policy_for_clusters(count)),
        EVERYWHERE,
        WIDE,
        {OWNER: units},
    )

    assert bool(result.guards[OWNER].reason) == is_blocked


def test_cluster_policy_is_confirmed_for_each_namespace() -> None:
    label = {CLUSTER_POLICY_LABEL: "edge"}
    texts = [build_config_map(labels=label), build_config_map("b", "other", labels=label)]
    branches = FakeBranches.of(run_controller(build_single_file(*texts, build_cluster_policy()), fleet=WIDE))
    hashes = [compute_hash(TEN, f"resources/{name}") for name in ("ferry", "other")]

    for ack, count in (("", 2), (hashes[0], 1), (", ".join(hashes), 0)):
        result = run_controller(
            build_single_file(*texts, build_cluster_policy("{clusterSelector: {at: moon}}", ack=ack)), branches, WIDE
        )
        assert list_codes(result).count("DeletionHeld") == count


def test_guard_allows_no_deletion_of_unpublished_packages() -> None:
    result = run_controller(
        build_single_file(build_config_map(labels=build_policy_label()), build_policy_for_clusters(1)),
        FakeBranches(),
        WIDE,
    )

    assert result.guards[OWNER] == DeletionGuard()
