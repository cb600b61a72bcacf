"""Guards: while a policy places something, too much at once does not go without a word."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.results import DeletionGuard, PackageTarget
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.placement.placement_world import (
    CLUSTER_POLICY_LABEL,
    Branches,
    by_policy,
    cluster,
    cluster_policy,
    config_map,
    finding,
    one_file,
    policy,
    room,
    told,
)

TEN = [f"edge-{number}" for number in range(10)]
WIDE = {f"{name}.yaml": cluster(name, f"{{at: {name}}}") for name in TEN}
OWNER = ObjectKey("reconciler.dev", "Placement", "", "ferry")
EVERYWHERE = Branches.of(room({"a.yaml": config_map(clusters="'*'")}, fleet=WIDE))


def chosen(count: int, *, ack: str = "") -> str:
    names = ", ".join(f"{{cluster: {name}}}" for name in TEN[:count])
    return policy(f"{{placement: [{names}]}}" if count else "{clusterSelector: {at: moon}}", ack=ack)


def hash_of(names: list[str], package: str = "resources/ferry") -> str:
    return compute_deletion_hash((name, package) for name in names)


def places(names: list[str]) -> frozenset[PackageTarget]:
    return frozenset(PackageTarget("acme", name, "resources/ferry") for name in names)


@pytest.mark.parametrize(
    ("spec", "released", "is_held"),
    [
        pytest.param(chosen(10), [], False, id="nothing-goes"),
        pytest.param(chosen(7), TEN[7:], False, id="thirty-percent-go"),
        pytest.param(chosen(6), [], True, id="more-are-held"),
        pytest.param(chosen(0), [], True, id="all-are-held"),
        pytest.param(chosen(0, ack=hash_of(TEN)), TEN, False, id="until-the-policy-says-so"),
        pytest.param(chosen(6, ack=hash_of(TEN)), [], True, id="of-exactly-these"),
        pytest.param(chosen(6, ack=f"0123456789abcdef, {hash_of(TEN[6:])}"), TEN[6:], False, id="one-hash-of-several"),
    ],
)
def test_a_policy_guards(spec: str, released: list[str], is_held: bool) -> None:
    result = room(one_file(config_map(labels=by_policy()), spec), EVERYWHERE, WIDE)

    guard = result.guards[OWNER]
    assert guard.targets == places(released)
    assert bool(guard.reason) == is_held
    assert ("DeletionHeld" in told(result)) == is_held
    assert result.statuses[0].conditions[0].reason == ("DeletionHeld" if is_held else "Placed")


def test_what_is_held_says_how_to_confirm_it() -> None:
    result = room(one_file(config_map(labels=by_policy()), chosen(6)), EVERYWHERE, WIDE)

    actual_finding = finding(result, "DeletionHeld")
    assert (str(actual_finding.location).split()[0], actual_finding.severity) == ("app.yaml:9", "error")
    assert actual_finding.message == (
        "4 of 10 packages would be deleted (edge-6/resources/ferry, edge-7/resources/ferry, edge-8/resources/ferry,"
        " edge-9/resources/ferry); to confirm, annotate PropagationPolicy/ferry/edge with"
        f' reconciler.dev/ack-deletions: "{hash_of(TEN[6:])}"'
    )


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([config_map(clusters="edge-1")], id="a-placement-by-annotation"),
        pytest.param([config_map()], id="a-resource-without-any-marks"),
        pytest.param([chosen(0)], id="the-last-resource-is-gone"),
        pytest.param([config_map("b", "other", labels=by_policy()), chosen(0)], id="a-policy-of-others"),
    ],
)
def test_there_is_no_guard(texts: list[str]) -> None:
    result = room(one_file(*texts), EVERYWHERE, WIDE)

    assert OWNER not in result.guards
    assert "DeletionHeld" not in told(result)


@pytest.mark.parametrize(
    ("count", "held", "why"),
    [
        pytest.param(9, {}, False, id="one-of-ten"),
        pytest.param(9, {"edge-9": 1}, True, id="that-was-the-only-one"),
        pytest.param(8, {"edge-9": 5}, True, id="two-of-five"),
        pytest.param(9, {"edge-1": 1}, False, id="what-is-wanted-again-does-not-count"),
    ],
)
def test_what_was_held_is_counted_as_it_was(count: int, held: Mapping[str, int], why: bool) -> None:
    units = {(cluster, "resources/ferry"): existing for cluster, existing in held.items()}

    result = room(one_file(config_map(labels=by_policy()), chosen(count)), EVERYWHERE, WIDE, {OWNER: units})

    assert bool(result.guards[OWNER].reason) == why


def test_one_policy_of_two_namespaces_is_confirmed_for_both() -> None:
    label = {CLUSTER_POLICY_LABEL: "edge"}
    texts = [config_map(labels=label), config_map("b", "other", labels=label)]
    branches = Branches.of(room(one_file(*texts, cluster_policy()), fleet=WIDE))
    hashes = [hash_of(TEN, f"resources/{name}") for name in ("ferry", "other")]

    for ack, count in (("", 2), (hashes[0], 1), (", ".join(hashes), 0)):
        result = room(one_file(*texts, cluster_policy("{clusterSelector: {at: moon}}", ack=ack)), branches, WIDE)
        assert told(result).count("DeletionHeld") == count


def test_a_guard_releases_nothing_that_it_was_not_asked_about() -> None:
    result = room(one_file(config_map(labels=by_policy()), chosen(1)), Branches(), WIDE)

    assert result.guards[OWNER] == DeletionGuard()
