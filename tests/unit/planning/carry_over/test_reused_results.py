"""Tests of the rule that reuses the result of a target for another config commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import DependencyReader
from reconciler.controllers.results import Variant
from reconciler.planning.carry_over.checkpoint import has_same_result
from reconciler.planning.decide.target_inputs import PlanningContext, TargetClaims
from reconciler.planning.decide.target_plan import DecidedTarget
from reconciler.planning.model.outcomes import Blocked, Unchanged
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from tests.unit.planning.builders import (
    FakeRepository,
    build_owner,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_variant,
)

ASKED = "object v1 ConfigMap default site"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\ndata: {a: TEXT}\n"


def build_catalog(text: str = "x") -> Catalog:
    return read_catalog(FileTree({"a.yaml": File(MAP.replace("TEXT", text).encode())}))


def build_decided_target(*outcomes: Any, claims: TargetClaims | None = None, **more: Any) -> DecidedTarget:
    packages = more.pop("packages", {"gw": build_record()})
    where = build_target()
    ground = TargetSnapshot(
        where, build_state(packages=packages), TargetHeads(), FakeRepository({}), "drafts/{repository}"
    )
    shop = PlanningContext(DependencyReader(build_catalog()), None, None, None, "", 0)  # type: ignore[arg-type]
    return DecidedTarget(where, claims or build_claims(), ground.state, ground, shop, outcomes, more.pop("losers", ()))


def build_claims(*variants: Variant, **more: Any) -> TargetClaims:
    return TargetClaims(variants or (build_variant(),), frozenset(), frozenset(), **more)


def build_unchanged(text: str = "x", **more: str) -> Unchanged:
    answer = DependencyReader(build_catalog(text)).read_fingerprint(ASKED)
    return Unchanged(
        build_variant(),
        build_record(trace={ASKED: answer, "variant": "gw", **more}, desired_tree=build_tree_id("t")),
        "published",
    )


BLOCKED = Blocked(build_variant(), None, (), (), None, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "claims", "expected"),
    [
        pytest.param(lambda: build_decided_target(build_unchanged()), build_claims(), True, id="nothing-moved"),
        pytest.param(lambda: build_decided_target(build_unchanged("y")), build_claims(), False, id="an-answer-is-another"),
        pytest.param(lambda: build_decided_target(build_unchanged()), build_claims(build_variant("else")), False, id="another-owner"),
        pytest.param(
            lambda: build_decided_target(build_unchanged()), build_claims(replace(build_variant(), dependencies={"variant": "other"})), False, id="another-fact"
        ),
        pytest.param(
            lambda: build_decided_target(build_unchanged()), build_claims(replace(build_variant(), mutation=repr)), True, id="what-facts-stand-for"
        ),
        pytest.param(lambda: build_decided_target(build_unchanged()), build_claims(build_variant(), build_variant("b", "b")), False, id="one-more"),
        pytest.param(lambda: build_decided_target(build_unchanged()), build_claims(build_variant(), build_variant("b")), False, id="two-owners-request-one-package"),
        pytest.param(lambda: build_decided_target(build_unchanged(), losers=(BLOCKED,)), build_claims(), False, id="definition-conflict-lost"),
        pytest.param(
            lambda: build_decided_target(build_unchanged(), packages={"gw": build_record(), "old": build_record(owner=build_owner("old"))}), build_claims(), False,
            id="unrequested-package",
        ),
        pytest.param(
            lambda: build_decided_target(build_unchanged(), packages={"gw": build_record(owner=build_owner("old"))}), build_claims(), False, id="it-is-anothers"
        ),
        pytest.param(lambda: build_decided_target(build_unchanged(), packages={}), build_claims(), True, id="one-that-is-new-by-both"),
        pytest.param(lambda: build_decided_target(build_unchanged(**{"template *": "x"})), build_claims(), False, id="templates"),
        pytest.param(lambda: build_decided_target(replace(BLOCKED, should_retry=True)), build_claims(), False, id="interrupted"),
        pytest.param(lambda: build_decided_target(BLOCKED), build_claims(), True, id="refused-alike"),
        pytest.param(lambda: build_decided_target(build_unchanged()), build_claims(stalled_packages=frozenset({"b"})), False, id="another-is-stalled"),
    ],
)  # fmt: skip
def test_result_is_reused_only_if_inputs_are_equal(
    known: Callable[[], DecidedTarget], claims: TargetClaims, expected: bool
) -> None:
    assert has_same_result(known(), claims, DependencyReader(build_catalog())) is expected
