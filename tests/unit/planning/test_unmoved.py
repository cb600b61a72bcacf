"""When a destination need not be decided a second time, for another config."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reconciler.planning.claims import Claims
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Blocked, Unchanged
from reconciler.planning.plan import Decided
from reconciler.planning.standing import Heads
from reconciler.planning.survey import Workshop
from reconciler.planning.unmoved import comes_to_the_same
from reconciler.rules.variant import Variant
from reconciler.snapshot.catalog import Catalog, read_catalog
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.trace import Answers
from tests.unit.planning.values import Tables, destination, owner, record, state, tree, variant

ASKED = "object v1 ConfigMap default site"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\ndata: {a: TEXT}\n"


def catalog(text: str = "x") -> Catalog:
    return read_catalog(FileTree({"a.yaml": File(MAP.replace("TEXT", text).encode())}))


def decided(*outcomes: Any, claims: Claims | None = None, **more: Any) -> Decided:
    packages = more.pop("packages", {"gw": record()})
    where = destination()
    ground = Ground(where, state(packages=packages), Heads(), Tables({}), "drafts/{repository}")
    shop = Workshop(Answers(catalog()), None, None, None, "", 0)  # type: ignore[arg-type]
    return Decided(where, claims or wanted(), ground.state, ground, shop, outcomes, more.pop("losers", ()))


def wanted(*variants: Variant, **more: Any) -> Claims:
    return Claims(variants or (variant(),), frozenset(), frozenset(), complete=True, **more)


def asked(text: str = "x", **more: str) -> Unchanged:
    answer = Answers(catalog(text)).to(ASKED)
    return Unchanged(variant(), record(trace={ASKED: answer, "variant": "gw", **more}, wanted=tree("t")), "published")


BLOCKED = Blocked(variant(), None, (), (), None, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "claims", "expected"),
    [
        pytest.param(lambda: decided(asked()), wanted(), True, id="nothing-moved"),
        pytest.param(lambda: decided(asked("y")), wanted(), False, id="an-answer-is-another"),
        pytest.param(lambda: decided(asked()), wanted(variant("else")), False, id="another-owner"),
        pytest.param(
            lambda: decided(asked()), wanted(replace(variant(), facts={"variant": "other"})), False, id="another-fact"
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
        pytest.param(lambda: decided(replace(BLOCKED, retry=True)), wanted(), False, id="interrupted"),
        pytest.param(lambda: decided(BLOCKED), wanted(), True, id="refused-alike"),
        pytest.param(lambda: decided(asked()), wanted(stalled=frozenset({"b"})), False, id="another-is-stalled"),
    ],
)  # fmt: skip
def test_it_is_only_where_that_is_plain(known: Callable[[], Decided], claims: Claims, expected: bool) -> None:
    assert comes_to_the_same(known(), claims, Answers(catalog())) is expected
