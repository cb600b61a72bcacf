"""Tests of cycles of upstreams: which variants are on a cycle, which only depend on one, and the finding."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.package_variants.upstream_cycles import BranchPath, UpstreamLink, find_cycles
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.package_variants.controller_world import (
    V1,
    build_variant,
    build_variant_set,
    run_controller,
)

REASON = "UpstreamCycle"
TWIN = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: twin}
spec: {deployment: true, git: {repo: "https://git.example/fleet.git", branch: clusters/berlin}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: deeper}
spec: {git: {repo: https://git.example/fleet, branch: clusters/berlin, directory: apps}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: elsewhere}
spec: {git: {repo: https://git.example/fleet, branch: clusters/lisbon}}
"""
MAIN = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: main}
spec: {git: {repo: https://git.example/fleet, branch: main}}
"""


def build_variant_between(name: str, upstream: str, downstream: str) -> str:
    """Return a PackageVariant from an upstream to a downstream. Both are written as `repository/package`."""
    (repo, _, package), (to, _, what) = upstream.partition("/"), downstream.partition("/")
    source = f"repo: {repo}, package: {package}, revision: v1"
    return build_variant(name, source, f"repo: {to}, package: {what}")


@pytest.mark.parametrize(
    ("variants", "on_cycles"),
    [
        pytest.param({"a": "catalog/gateway berlin/x", "b": "berlin/x lisbon/y"}, "", id="a-chain"),
        pytest.param({"a": "lisbon/y berlin/x", "b": "berlin/x lisbon/y"}, "a b", id="two"),
        pytest.param(
            {"a": "catalog/gateway berlin/x", "b": "lisbon/y berlin/x", "c": "berlin/x lisbon/y"}, "b c",
            id="fed-from-outside-too",
        ),
        pytest.param({"a": "berlin/x berlin/y", "b": "berlin/y berlin/z", "c": "berlin/z berlin/x"}, "a b c", id="3"),
        pytest.param(
            {"a": "berlin/y berlin/x", "b": "berlin/x berlin/y", "c": "berlin/x lisbon/z", "d": "lisbon/z lisbon/w"},
            "a b", id="a-variant-below-a-cycle-is-not-on-it",
        ),
        pytest.param(
            {"a": "berlin/y berlin/x", "b": "berlin/x berlin/y", "c": "berlin/x lisbon/z", "d": "lisbon/z lisbon/w",
             "e": "lisbon/w lisbon/z"},
            "a b d e", id="a-path-between-two-cycles-is-not-on-them",
        ),
        pytest.param(
            {"a": "berlin/y berlin/x", "b": "berlin/x berlin/y", "c": "berlin/y berlin/z", "d": "berlin/z berlin/x"},
            "a b c d", id="two-that-share-a-variant",
        ),
        pytest.param({"a": "twin/x berlin/x"}, "a", id="itself-under-another-name"),
        pytest.param({"a": "deeper/x berlin/apps/x"}, "a", id="itself-by-another-directory"),
        pytest.param({"a": "elsewhere/x berlin/x"}, "", id="another-branch-is-another-place"),
        pytest.param({"a": "twin/y lisbon/x", "b": "lisbon/x berlin/y"}, "a b", id="two-by-another-name"),
        pytest.param({"a": "nowhere/y berlin/x", "b": "berlin/x nowhere/y"}, "", id="no-repository-is-no-place"),
        pytest.param({"a": "away/y berlin/x", "b": "berlin/x away/y"}, "a b", id="a-remote-that-cannot-be-read"),
    ],
)  # fmt: skip
def test_variants_on_a_cycle_stall(variants: dict[str, str], on_cycles: str) -> None:
    result = run_controller(
        *(build_variant_between(name, *places.split()) for name, places in variants.items()), content=TWIN
    )

    stalled = {
        stalled_variant.owner.key.name: {c.type: c.reason for c in stalled_variant.conditions}
        for stalled_variant in result.stalled
    }
    values = [name for name, reasons in stalled.items() if reasons["Stalled"] == REASON]
    assert sorted(values) == on_cycles.split()
    assert len(result.stalled) + len(result.variants) == len(variants)


def test_finding_names_all_members_in_order_at_the_upstream_line() -> None:
    result = run_controller(
        build_variant_between("b", "berlin/x", "lisbon/y"), build_variant_between("a", "lisbon/y", "berlin/x")
    )

    message = (
        "a package cannot be created from itself; change one of these upstreams:"
        " default/a creates berlin/x from lisbon/y, default/b creates lisbon/y from berlin/x"
    )
    assert [item.owner.key.name for item in result.stalled] == ["a", "b"]
    for stalled_variant in result.stalled:
        assert [(c.type, c.status, c.reason, c.message) for c in stalled_variant.conditions] == [
            ("Ready", "False", REASON, message),
            ("Stalled", "True", REASON, message),
        ]
        (finding,) = stalled_variant.findings
        assert (finding.code, finding.message) == (REASON, message)
    assert [str(item.target) for item in result.stalled] == ["berlin/x", "lisbon/y"]
    places = [(item.findings[0].location.line, item.findings[0].location.pointer) for item in result.stalled]
    assert places == [(14, "/spec/upstream"), (6, "/spec/upstream")]


def test_generated_variants_on_a_cycle_are_reported_at_their_set() -> None:
    targets = "[{repositories: [{name: berlin, packageNames: [x]}]}]"
    # A generated variant exists only while its upstream exists.
    output = build_variant_set("fan", targets, upstream="repo: main, package: gateway, revision: -1")

    result = run_controller(output, build_variant_between("back", "berlin/x", "main/gateway"), content=MAIN)

    stalled = {stalled_variant.owner.key.name: stalled_variant.findings[0] for stalled_variant in result.stalled}
    assert stalled.keys() == {"back", "fan-berlin-x"}
    assert {finding.code for finding in stalled.values()} == {REASON}
    assert stalled["fan-berlin-x"].location.object == "PackageVariantSet/default/fan"
    assert "default/fan-berlin-x creates berlin/x from main/gateway" in stalled["back"].message


def test_cycle_over_two_namespaces_is_found() -> None:
    far = textwrap.dedent("""\
        apiVersion: config.porch.kpt.dev/v1alpha1
        kind: Repository
        metadata: {name: north, namespace: far}
        spec: {deployment: true, git: {repo: https://git.example/fleet, branch: clusters/berlin}}
        ---
        apiVersion: config.porch.kpt.dev/v1alpha1
        kind: Repository
        metadata: {name: south, namespace: far}
        spec: {deployment: true, git: {repo: https://git.example/fleet, branch: clusters/lisbon}}
        ---
        """)
    back = build_variant_between("back", "south/y", "north/x").replace("name: back", "name: back\n  namespace: far")

    result = run_controller(build_variant_between("there", "berlin/x", "lisbon/y"), content=far + back)

    assert [stalled_variant.owner.key.reference for stalled_variant in result.stalled] == [
        "PackageVariant/default/there",
        "PackageVariant/far/back",
    ]


def test_long_cycle_names_its_first_members() -> None:
    size = 25
    ring = [
        build_variant_between(f"v{at:02}", f"berlin/p{at:02}", f"berlin/p{(at + 1) % size:02}") for at in range(size)
    ]

    result = run_controller(*ring)

    assert len(result.stalled) == size
    (message,) = {stalled_variant.findings[0].message for stalled_variant in result.stalled}
    assert message.count(" creates ") == 20
    assert message.endswith("default/v19 creates berlin/p20 from berlin/p19, and 5 more")


def test_variant_without_cycle_is_unchanged() -> None:
    assert [item.target.package for item in run_controller(build_variant("gw", V1)).variants] == ["gateway"]


def build_link(at: int, start: int, end: int) -> UpstreamLink:
    return UpstreamLink(
        ObjectKey("g", "PackageVariant", "default", f"v{at:03}"), build_branch_path(start), build_branch_path(end)
    )


def build_branch_path(at: int) -> BranchPath:
    return ("url", "main", f"p{at}")


GRAPHS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def find_reachable_pairs(pairs: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return all pairs of numbers where the first reachable to the second, over any number of steps."""
    result = set(pairs)
    while True:
        more = result | {(a, d) for a, b in result for c, d in result if b == c}
        if more == result:
            return result
        result = more


@given(GRAPHS, st.randoms())
def test_cycles_of_random_graphs(pairs: list[tuple[int, int]], random: object) -> None:
    links = [build_link(at, start, end) for at, (start, end) in enumerate(pairs)]
    reachable = find_reachable_pairs(pairs)
    expected = {build_link(at, s, e).key for at, (s, e) in enumerate(pairs) if s == e or (e, s) in reachable}

    cycles = list(find_cycles(links))

    assert {upstream_link.key for cycle in cycles for upstream_link in cycle} == expected
    for cycle in cycles:
        assert all(
            upstream_link.end == after.start for upstream_link, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True)
        )
        assert len({upstream_link.key for upstream_link in cycle}) == len(cycle)
        assert cycle[0].key == min(upstream_link.key for upstream_link in cycle)
    random.shuffle(links)  # type: ignore[attr-defined]
    assert list(find_cycles(links)) == cycles


def test_long_chain_and_long_cycle_are_fast() -> None:
    chain = [build_link(at, at, at + 1) for at in range(900)]
    ring = [build_link(at, at, (at + 1) % 900) for at in range(900)]

    assert list(find_cycles(chain)) == []
    assert [len(cycle) for cycle in find_cycles(ring)] == [900]
