"""Tests of serialized conflicts in the state and in status files."""

from dataclasses import replace

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.planning.model.sources import (
    deduplicate_conflicts,
    has_conflict_outcome,
    parse_conflict,
    serialize_conflict,
)

REPLICAS = Conflict("field", "/spec/replicas", 2, 5, 3, "upstream", "D2", "web.yaml", "Deployment/default/web")


@pytest.mark.parametrize(
    ("conflict", "expected"),
    [
        pytest.param(REPLICAS, {"base": 2, "local": 5, "upstream": 3}, id="three-values"),
        pytest.param(replace(REPLICAS, base=ABSENT), {"local": 5, "upstream": 3}, id="added-on-both-sides"),
        pytest.param(replace(REPLICAS, local=None), {"base": 2, "local": None, "upstream": 3}, id="an-explicit-null"),
        pytest.param(replace(REPLICAS, local=""), {"base": 2, "local": "", "upstream": 3}, id="an-empty-text"),
        pytest.param(
            replace(REPLICAS, kind="resource", upstream=ABSENT, base={"a": 1}, local={"a": 2}),
            {"base": True, "local": True},
            id="whole-resources-are-not-listed",
        ),
        pytest.param(
            replace(REPLICAS, resource="Secret/default/login"),
            {"base": "*****", "local": "*****", "upstream": "*****"},
            id="secrets-are-masked",
        ),
        pytest.param(
            replace(
                REPLICAS, resource="List/default/all", base=[], local=[{"kind": "Secret", "data": {"key": "eA=="}}]
            ),
            {"base": "*****", "local": "*****", "upstream": "*****"},
            id="secrets-in-lists-are-masked",
        ),
        pytest.param(
            replace(REPLICAS, base=ABSENT, local="kind: Secret\ndata: {key: eA==}", upstream=""),
            {"local": "*****", "upstream": "*****"},
            id="manifests-of-secrets-are-masked",
        ),
    ],
)
def test_sides_of_a_conflict(conflict: Conflict, expected: dict[str, object]) -> None:
    data = serialize_conflict(conflict)

    assert {side: data[side] for side in ("base", "local", "upstream") if side in data} == expected


def test_conflict_is_restored_from_state() -> None:
    assert parse_conflict(serialize_conflict(REPLICAS)) == REPLICAS


def test_absent_sides_are_omitted() -> None:
    whole = Conflict("file", "", b"x", ABSENT, b"y", "local", "D16", "logo.png")

    assert serialize_conflict(whole) == {
        "kind": "file", "file": "logo.png", "base": True, "upstream": True, "chosen": "local", "rule": "D16",
    }  # fmt: skip


ENV = replace(REPLICAS, pointer="/spec/env", base=[], local=[{"name": "A"}], upstream=[{"name": "B"}])


@pytest.mark.parametrize(
    ("first", "second", "number"),
    [
        pytest.param(REPLICAS, REPLICAS, 1, id="the-same"),
        pytest.param(ENV, replace(ENV, local=[{"name": "A"}]), 1, id="the-same-lists"),
        pytest.param(ENV, parse_conflict(serialize_conflict(ENV)), 1, id="one-from-state"),
        pytest.param(REPLICAS, replace(REPLICAS, upstream=4), 2, id="another-value"),
        pytest.param(REPLICAS, replace(REPLICAS, pointer="/spec/paused"), 2, id="another-field"),
        pytest.param(replace(REPLICAS, base=1), replace(REPLICAS, base=True), 2, id="another-type"),
    ],
)
def test_equal_conflicts_are_listed_once(first: Conflict, second: Conflict, number: int) -> None:
    assert len(deduplicate_conflicts([first, second])) == number


WEB = "kind: Deployment\nmetadata: {name: web, namespace: default}\nspec:\n  replicas: 3\n  paused: 1\n"
KEPT = replace(REPLICAS, kind="resource", pointer="", upstream=ABSENT, chosen="local")
GONE = replace(KEPT, local=ABSENT, upstream=True)


@pytest.mark.parametrize(
    ("conflict", "there", "empty"),
    [
        pytest.param(REPLICAS, True, False, id="upstreams-value"),
        pytest.param(replace(REPLICAS, chosen="local"), False, False, id="people-changed-it-since"),
        pytest.param(replace(REPLICAS, pointer="/spec/paused", upstream=True), False, False, id="one-is-not-true"),
        pytest.param(replace(REPLICAS, upstream="*****"), True, True, id="masked-value"),
        pytest.param(KEPT, True, False, id="a-resource-that-was-kept"),
        pytest.param(GONE, False, True, id="a-resource-that-stayed-away"),
        pytest.param(replace(KEPT, kind="file", resource=""), True, False, id="a-file-that-was-kept"),
        pytest.param(replace(GONE, kind="file", resource=""), False, True, id="a-file-that-stayed-away"),
        pytest.param(replace(KEPT, kind="package", resource="", file="sub"), True, False, id="a-package-that-was-kept"),
        pytest.param(replace(GONE, kind="package", resource="", file="sub"), False, True, id="a-package-that-is-gone"),
        pytest.param(replace(KEPT, kind="element", pointer="/spec/x/0"), True, True, id="elements-are-not-looked-at"),
    ],
)
def test_conflict_stays_until_people_change_its_outcome(conflict: Conflict, there: bool, empty: bool) -> None:
    package = FileTree({"web.yaml": File(WEB.encode()), "sub/Kptfile": File(b"")})

    assert (has_conflict_outcome(conflict, package), has_conflict_outcome(conflict, FileTree())) == (there, empty)
