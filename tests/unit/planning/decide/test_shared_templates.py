"""Tests of decisions about packages with shared templates, and of packages without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import FileTree
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide.package_decision import DecisionInput, decide_package
from reconciler.planning.decide.target_inputs import PlanningContext, TargetClaims
from reconciler.planning.decide.template_packages import PackageDecisions, decide_packages
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.model.state import ObservedPackage, PackageRecord
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from reconciler.planning.render.renderer import PackageRenderer, RenderEngine
from reconciler.planning.render.templates import ALL_TEMPLATES_DEPENDENCY
from tests.support.decided_fleet import InMemoryTrees
from tests.support.templates import kafka, pool
from tests.support.world import config_map
from tests.unit.controllers.kafka_templates.template_builders import tree
from tests.unit.planning.builders import (
    FakeRepository,
    build_commit_id,
    build_owner,
    build_record,
    build_state,
    build_target,
    build_variant,
)

Packages = Mapping[str, Mapping[str, str]]
POD = {"pod": {"priorityClassName": "high"}}
KAFKA, POOL = {"kafka.yaml": kafka(POD)}, {"pool.yaml": pool("brokers")}
EXTRA = {"extra.yaml": pool("extra")}
FAULTY = {"faulty.yaml": pool("faulty", {"pod": []})}
OTHER = {"settings.yaml": config_map("settings", a="b")}
TWICE, TYPE = "DuplicateObject", "InvalidTemplateType"


@dataclass
class TemplateWorld:
    """A target without published packages, and generated packages with these files."""

    packages: Packages
    is_cluster: bool = True
    records: Mapping[str, PackageRecord] = field(default_factory=dict)
    broken: str = ""
    rendered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.trees = InMemoryTrees()
        self.renderer = PackageRenderer(read_catalog(FileTree(), {}), ClusterOverrides(), RenderEngine("safe"))

    def build_inputs(self) -> list[DecisionInput]:
        return [
            DecisionInput(package, self.records.get(package.target.package), ObservedPackage())
            for package in map(self._variant, self.packages)
        ]

    def _variant(self, name: str) -> Variant:
        source = GeneratedSource(tree(self.packages[name]))
        facts = {"variant": name, "upstream": source.fingerprint}
        return replace(build_variant(name, name, deployment=self.is_cluster), source=source, dependencies=facts)

    def render(self, value: Variant, render_inputs: RenderInputs) -> PackageRender:
        self.rendered[value.target.package] += 1
        if value.target.package == self.broken:
            raise InterruptedFunctionError("the program was stopped")
        return self.renderer(value, render_inputs)

    def decide_together(self) -> PackageDecisions:
        heads = TargetHeads(build_commit_id("b0"), is_absent=True)
        ground = TargetSnapshot(
            build_target(), build_state(packages=self.records), heads, FakeRepository({}), "drafts/{repository}"
        )
        shop = PlanningContext(
            self.renderer.dependency_reader, self.trees, self.render, None, "drafts/{repository}", 0,  # type: ignore[arg-type]
        )  # fmt: skip
        claims = TargetClaims((), frozenset(), frozenset())
        return decide_packages(self.build_inputs(), claims, ground, shop, {})

    def decide_separately(self) -> dict[str, PackageOutcome]:
        answers = self.renderer.dependency_reader
        mapping = {decision_input.variant.target.package: decision_input for decision_input in self.build_inputs()}
        return {
            name: decide_package(decision_input, answers, self.trees, self.renderer)
            for name, decision_input in mapping.items()
        }


def describe_outcome(outcome: PackageOutcome) -> str:
    """Return whether a draft contains inherited settings, or the errors that block the package."""
    if isinstance(outcome, Draft):
        merged = any(b"materialised-template" in file.data for file in outcome.rendered.files.values())
        return "merged" if merged else "as it is"
    assert isinstance(outcome, Blocked)
    return " ".join(sorted({finding.code for finding in outcome.findings if finding.severity.value == "error"}))


@pytest.mark.parametrize(
    ("packages", "is_cluster"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"a": OTHER, "b": {}, "c": {"pool.yaml": "kind: ["}}, True, id="nothing-with-templates"),
        pytest.param({"a": KAFKA, "b": POOL}, False, id="no-cluster"),
    ],
)
def test_packages_without_templates_are_decided_independently(packages: Packages, is_cluster: bool) -> None:
    world = TemplateWorld(packages, is_cluster)

    assert world.decide_together().outcomes == world.decide_separately()


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
def test_blocked_package_does_not_affect_the_others(packages: Packages, expected: list[str]) -> None:
    world = TemplateWorld(packages)

    package_decisions = world.decide_together()

    assert [describe_outcome(outcome) for outcome in package_decisions.outcomes.values()] == expected
    assert world.rendered == dict.fromkeys(packages, 1)


def test_blocked_package_is_decided_again_when_the_others_change() -> None:
    a = TemplateWorld({"a": {**KAFKA, **FAULTY}, "b": POOL}).decide_together().outcomes["a"]

    assert isinstance(a, Blocked)
    assert ALL_TEMPLATES_DEPENDENCY in a.trace
    assert not any(name.startswith("template kafka") for name in a.trace)


@pytest.mark.parametrize(
    "known",
    [{}, {"b": build_record(owner=build_owner("b"), trace={ALL_TEMPLATES_DEPENDENCY: "before"})}],
    ids=["new", "known"],
)
def test_interrupted_render_is_not_repeated_in_the_same_pass(known: Mapping[str, PackageRecord]) -> None:
    world = TemplateWorld({"a": KAFKA, "b": POOL}, records=known, broken="b")

    b = world.decide_together().outcomes["b"]

    assert isinstance(b, Blocked)
    assert (world.rendered["b"], b.should_retry) == (1, True)
