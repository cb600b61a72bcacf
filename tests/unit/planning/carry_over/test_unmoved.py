"""When a destination need not be decided a second time, for another config."""

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
from tests.unit.planning.values import Tables, destination, owner, record, state, tree, variant

ASKED = "object v1 ConfigMap default site"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\ndata: {a: TEXT}\n"


def catalog(text: str = "x") -> Catalog:
    return read_catalog(FileTree({"a.yaml": File(MAP.replace("TEXT", text).encode())}))


def decided(*outcomes: Any, claims: TargetClaims | None = None, **more: Any) -> DecidedTarget:
    packages = more.pop("packages", {"gw": record()})
    where = destination()
    ground = TargetSnapshot(where, state(packages=packages), TargetHeads(), Tables({}), "drafts/{repository}")
    shop = PlanningContext(DependencyReader(catalog()), None, None, None, "", 0)  # type: ignore[arg-type]
    return DecidedTarget(where, claims or wanted(), ground.state, ground, shop, outcomes, more.pop("losers", ()))


def wanted(*variants: Variant, **more: Any) -> TargetClaims:
    return TargetClaims(variants or (variant(),), frozenset(), frozenset(), is_complete=True, **more)


def asked(text: str = "x", **more: str) -> Unchanged:
    answer = DependencyReader(catalog(text)).read_fingerprint(ASKED)
    return Unchanged(
        variant(), record(trace={ASKED: answer, "variant": "gw", **more}, desired_tree=tree("t")), "published"
    )


BLOCKED = Blocked(variant(), None, (), (), None, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "claims", "expected"),
    [
        pytest.param(lambda: decided(asked()), wanted(), True, id="nothing-moved"),
        pytest.param(lambda: decided(asked("y")), wanted(), False, id="an-answer-is-another"),
        pytest.param(lambda: decided(asked()), wanted(variant("else")), False, id="another-owner"),
        pytest.param(
            lambda: decided(asked()), wanted(replace(variant(), dependencies={"variant": "other"})), False, id="another-fact"
        ),
        pytest.param(
            lambda: decided(asked()), wanted(replace(variant(), mutation=repr)), True, id="what-facts-stand-for"
        ),
        pytest.param(lambda: decided(asked()), wanted(variant(), variant("b", "b")), False, id="one-more"),
        pytest.param(lambda: decided(asked()), wanted(variant(), variant("b")), False, id="two-want-one"),
        pytest.param(lambda: decided(asked(), losers=(BLOCKED,)), wanted(), False, id="somebody-lost"),
        pytest.param(
            lambda: decided(asked(), packages={"gw": record(), "old": record(owner=owner("old"))}), wanted(), False,
            id="one-that-nobody-wants",
        ),
        pytest.param(
            lambda: decided(asked(), packages={"gw": record(owner=owner("old"))}), wanted(), False, id="it-is-anothers"
        ),
        pytest.param(lambda: decided(asked(), packages={}), wanted(), True, id="one-that-is-new-by-both"),
        pytest.param(lambda: decided(asked(**{"template *": "x"})), wanted(), False, id="templates"),
        pytest.param(lambda: decided(replace(BLOCKED, should_retry=True)), wanted(), False, id="interrupted"),
        pytest.param(lambda: decided(BLOCKED), wanted(), True, id="refused-alike"),
        pytest.param(lambda: decided(asked()), wanted(stalled_packages=frozenset({"b"})), False, id="another-is-stalled"),
    ],
)  # fmt: skip
def test_it_is_only_where_that_is_plain(
    known: Callable[[], DecidedTarget], claims: TargetClaims, expected: bool
) -> None:
    assert has_same_result(known(), claims, DependencyReader(catalog())) is expected
