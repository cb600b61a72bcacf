"""Upstreams that lead in a circle: who is on one, who only hangs below it, and what is told."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.package_variants.upstream_cycles import BranchPath, UpstreamLink, find_cycles
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.package_variants.room_world import V1, room, variant, variant_set

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


def made(name: str, upstream: str, downstream: str) -> str:
    """Return a PackageVariant between two places that are written as `repository/package`."""
    (repo, _, package), (to, _, what) = upstream.partition("/"), downstream.partition("/")
    source = f"repo: {repo}, package: {package}, revision: v1"
    return variant(name, source, f"repo: {to}, package: {what}")


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
            "a b", id="what-hangs-below-is-not-on-it",
        ),
        pytest.param(
            {"a": "berlin/y berlin/x", "b": "berlin/x berlin/y", "c": "berlin/x lisbon/z", "d": "lisbon/z lisbon/w",
             "e": "lisbon/w lisbon/z"},
            "a b d e", id="what-leads-from-one-to-another-is-not-on-them",
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
def test_who_is_on_a_cycle(variants: dict[str, str], on_cycles: str) -> None:
    result = room(*(made(name, *places.split()) for name, places in variants.items()), content=TWIN)

    stalled = {
        stalled_variant.owner.key.name: {c.type: c.reason for c in stalled_variant.conditions}
        for stalled_variant in result.stalled
    }
    values = [name for name, reasons in stalled.items() if reasons["Stalled"] == REASON]
    assert sorted(values) == on_cycles.split()
    assert len(result.stalled) + len(result.variants) == len(variants)


def test_a_member_is_told_all_of_them_in_order_and_where_it_says_so() -> None:
    result = room(made("b", "berlin/x", "lisbon/y"), made("a", "lisbon/y", "berlin/x"))

    message = (
        "a package cannot be made from itself:"
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


def test_variants_of_sets_are_on_cycles_too_and_the_set_says_where() -> None:
    targets = "[{repositories: [{name: berlin, packageNames: [x]}]}]"
    # what a set creates is known only while its upstream is there
    output = variant_set("fan", targets, upstream="repo: main, package: gateway, revision: -1")

    result = room(output, made("back", "berlin/x", "main/gateway"), content=MAIN)

    stalled = {stalled_variant.owner.key.name: stalled_variant.findings[0] for stalled_variant in result.stalled}
    assert stalled.keys() == {"back", "fan-berlin-x"}
    assert {finding.code for finding in stalled.values()} == {REASON}
    assert stalled["fan-berlin-x"].location.object == "PackageVariantSet/default/fan"
    assert "default/fan-berlin-x creates berlin/x from main/gateway" in stalled["back"].message


def test_a_cycle_over_two_namespaces() -> None:
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
    back = made("back", "south/y", "north/x").replace("name: back", "name: back\n  namespace: far")

    result = room(made("there", "berlin/x", "lisbon/y"), content=far + back)

    assert [str(stalled_variant.owner.key) for stalled_variant in result.stalled] == [
        "PackageVariant/default/there",
        "PackageVariant/far/back",
    ]


def test_a_long_cycle_names_the_first_of_its_members() -> None:
    size = 25
    ring = [made(f"v{at:02}", f"berlin/p{at:02}", f"berlin/p{(at + 1) % size:02}") for at in range(size)]

    result = room(*ring)

    assert len(result.stalled) == size
    (message,) = {stalled_variant.findings[0].message for stalled_variant in result.stalled}
    assert message.count(" creates ") == 20
    assert message.endswith("default/v19 creates berlin/p20 from berlin/p19, and 5 more")


def test_what_is_sound_is_left_as_it_is() -> None:
    assert [item.target.package for item in room(variant("gw", V1)).variants] == ["gateway"]


# graphs


def link(at: int, start: int, end: int) -> UpstreamLink:
    return UpstreamLink(ObjectKey("g", "PackageVariant", "default", f"v{at:03}"), spot(start), spot(end))


def spot(at: int) -> BranchPath:
    return ("url", "main", f"p{at}")


GRAPHS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def reachable(pairs: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return which spot leads to which, by adding steps until nothing is new."""
    result = set(pairs)
    while True:
        more = result | {(a, d) for a, b in result for c, d in result if b == c}
        if more == result:
            return result
        result = more


@given(GRAPHS, st.randoms())
def test_the_cycles_of_any_graph(pairs: list[tuple[int, int]], random: object) -> None:
    links = [link(at, start, end) for at, (start, end) in enumerate(pairs)]
    leads = reachable(pairs)
    expected = {link(at, s, e).key for at, (s, e) in enumerate(pairs) if s == e or (e, s) in leads}

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


def test_a_long_chain_and_a_long_ring_are_quick() -> None:
    chain = [link(at, at, at + 1) for at in range(900)]
    ring = [link(at, at, (at + 1) % 900) for at in range(900)]

    assert list(find_cycles(chain)) == []
    assert [len(cycle) for cycle in find_cycles(ring)] == [900]
