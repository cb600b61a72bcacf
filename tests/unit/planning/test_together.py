"""Deciding together: what packages are to each other that share templates, and what they are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.claims import Claims
from reconciler.planning.decide import Question, decide
from reconciler.planning.ground import Ground
from reconciler.planning.last_mile import LastMile
from reconciler.planning.outcome import Blocked, Draft, Outcome, Rendered
from reconciler.planning.render import Engine, Renderer
from reconciler.planning.source import Ingredients
from reconciler.planning.standing import Heads
from reconciler.planning.state import PackageRecord, Seen
from reconciler.planning.survey import Workshop
from reconciler.planning.templates import WORLD
from reconciler.planning.together import Together, decide_together
from reconciler.rules.variant import Generated, Variant
from reconciler.snapshot.catalog import read_catalog
from reconciler.snapshot.files import FileTree
from tests.support.decided_fleet import Trees
from tests.support.templates import kafka, pool
from tests.support.world import config_map
from tests.unit.planning.values import Tables, commit, destination, owner, record, state, variant
from tests.unit.rules.templates.template_world import tree

Packages = Mapping[str, Mapping[str, str]]
POD = {"pod": {"priorityClassName": "high"}}
KAFKA, POOL = {"kafka.yaml": kafka(POD)}, {"pool.yaml": pool("brokers")}
EXTRA = {"extra.yaml": pool("extra")}
FAULTY = {"faulty.yaml": pool("faulty", {"pod": []})}
OTHER = {"settings.yaml": config_map("settings", a="b")}
TWICE, TYPE = "DuplicateObject", "InvalidTemplateType"


@dataclass
class World:
    """A destination where nothing is published, and what is wanted there: packages that rooms make of these files."""

    packages: Packages
    is_cluster: bool = True
    records: Mapping[str, PackageRecord] = field(default_factory=dict)
    broken: str = ""
    rendered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.trees = Trees()
        self.renderer = Renderer(read_catalog(FileTree(), {}), LastMile(), Engine("safe"))

    def questions(self) -> list[Question]:
        return [Question(one, self.records.get(one.place.package), Seen()) for one in map(self._variant, self.packages)]

    def _variant(self, name: str) -> Variant:
        source = Generated(tree(self.packages[name]))
        facts = {"variant": name, "upstream": source.fact}
        return replace(variant(name, name, deployment=self.is_cluster), source=source, facts=facts)

    def render(self, one: Variant, made: Ingredients) -> Rendered:
        self.rendered[one.place.package] += 1
        if one.place.package == self.broken:
            raise InterruptedFunctionError("the program was stopped")
        return self.renderer(one, made)

    def together(self) -> Together:
        heads = Heads(commit("b0"), absent=True)
        ground = Ground(destination(), state(packages=self.records), heads, Tables({}), "drafts/{repository}")
        shop = Workshop(
            self.renderer.answers, self.trees, self.render, None, "drafts/{repository}", 0,  # type: ignore[arg-type]
        )  # fmt: skip
        claims = Claims((), frozenset(), frozenset(), complete=True)
        return decide_together(self.questions(), claims, ground, shop, {})

    def alone(self) -> dict[str, Outcome]:
        answers = self.renderer.answers
        asked = {one.variant.place.package: one for one in self.questions()}
        return {name: decide(one, answers, self.trees, self.renderer) for name, one in asked.items()}


def told(outcome: Outcome) -> str:
    """Return whether a draft has anything inherited in it, or the errors that withhold a package."""
    if isinstance(outcome, Draft):
        merged = any(b"materialised-template" in one.data for one in outcome.rendered.files.values())
        return "merged" if merged else "as it is"
    assert isinstance(outcome, Blocked)
    return " ".join(sorted({one.code for one in outcome.findings if one.severity.value == "error"}))


@pytest.mark.parametrize(
    ("packages", "is_cluster"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"a": OTHER, "b": {}, "c": {"pool.yaml": "kind: ["}}, True, id="nothing-with-templates"),
        pytest.param({"a": KAFKA, "b": POOL}, False, id="no-cluster"),
    ],
)
def test_what_has_no_templates_is_decided_as_if_alone(packages: Packages, is_cluster: bool) -> None:
    world = World(packages, is_cluster)

    assert world.together().outcomes == world.alone()


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        pytest.param({"a": KAFKA, "b": POOL, "c": OTHER}, ["as it is", "merged", "as it is"], id="apart"),
        pytest.param({"a": {**KAFKA, **POOL}}, ["merged"], id="together"),
        pytest.param({"a": POOL}, ["as it is"], id="without-kafka"),
        pytest.param({"a": {**KAFKA, **FAULTY}, "b": POOL}, [TYPE, "as it is"], id="a-kafka-that-is-withheld"),
        pytest.param({"a": KAFKA, "b": KAFKA, "c": POOL}, [TWICE] * 3, id="two-kafkas"),
        pytest.param(
            {"a": {**KAFKA, **EXTRA}, "b": {**POOL, **EXTRA}}, [TWICE] * 2, id="two-that-exclude-each-other"
        ),
    ],
)  # fmt: skip
def test_what_is_withheld_counts_for_nobody(packages: Packages, expected: list[str]) -> None:
    world = World(packages)

    found = world.together()

    assert [told(one) for one in found.outcomes.values()] == expected
    assert world.rendered == dict.fromkeys(packages, 1)


def test_what_is_withheld_is_asked_again_when_the_others_move() -> None:
    found = World({"a": {**KAFKA, **FAULTY}, "b": POOL}).together().outcomes["a"]

    assert isinstance(found, Blocked)
    assert WORLD in found.trace
    assert not any(name.startswith("template kafka") for name in found.trace)


@pytest.mark.parametrize("known", [{}, {"b": record(owner=owner("b"), trace={WORLD: "before"})}], ids=["new", "known"])
def test_a_render_that_was_interrupted_is_not_begun_twice(known: Mapping[str, PackageRecord]) -> None:
    world = World({"a": KAFKA, "b": POOL}, records=known, broken="b")

    found = world.together().outcomes["b"]

    assert isinstance(found, Blocked)
    assert (world.rendered["b"], found.retry) == (1, True)
