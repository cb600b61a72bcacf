"""Any sequence of changes to a Kafka and its pools: every pass has the result of a full pass.

A few dozen steps by default, the same every time. Thousands of steps, with minimized failures:

    HYPOTHESIS_PROFILE=nightly python -m pytest tests/properties/test_template_machine.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.properties.review_world import TEMPLATES as BRANCHES
from tests.properties.template_world import MORE, POOLS, TEMPLATE_EDITS, TEMPLATES, TemplateWorld
from tests.properties.test_policy_machine import PLACE, POLICY
from tests.properties.test_review_machine import (
    COMMAND,
    DAEMON,
    DRAFT,
    MERGE,
    NUMBER,
    PROFILES,
    VERSION,
    Happening,
    happening,
)
from tests.support.world import CLUSTERS

PACKAGE = st.sampled_from((POOLS, MORE))
KAFKA = happening("kafka", st.sampled_from([*TEMPLATES]), st.sampled_from(("*", "*", "berlin", "lisbon", "")))
POOL = st.one_of(
    happening("release", PACKAGE, VERSION, st.integers(0, 24)),
    happening("request_package", st.sampled_from(CLUSTERS), PACKAGE, VERSION),
    happening("withdraw_request", st.sampled_from(CLUSTERS), PACKAGE),
)
URGE = happening("urge", st.sampled_from(("", *CLUSTERS)))
EDIT = happening("edit", st.sampled_from(("draft", "cluster")), NUMBER, st.sampled_from([*TEMPLATE_EDITS]))
ACTS = st.one_of(KAFKA, POOL, MERGE, EDIT, KAFKA, POOL, MERGE, URGE, DRAFT, COMMAND, POLICY, PLACE)
DAY = st.lists(ACTS, min_size=1, max_size=4)


class TemplateMachine(RuleBasedStateMachine):
    """Each rule runs a few user actions and then a pass, which checks the invariants."""

    world: TemplateWorld
    folder: Path

    @initialize(template=st.sampled_from(BRANCHES), published=st.booleans())
    def begins(self, template: str, published: bool) -> None:
        self.folder = Path(mkdtemp())
        self.world = TemplateWorld.new(self.folder / "world", template)
        self.world.run("first")
        for number in range(len(self.world.drafts()) if published else 0):
            self.world.merge(number, "squash")
        self.world.run("first")

    @rule(day=DAY, who=DAEMON)
    def a_day(self, day: list[Happening], who: str) -> None:
        self.world.happens(*day)
        self.world.run(who)

    @rule(day=DAY, who=DAEMON, meanwhile=DAY)
    def a_lost_race(self, day: list[Happening], who: str, meanwhile: list[Happening]) -> None:
        self.world.happens(*day)
        self.world.run(who, lambda: self.world.happens(*meanwhile))

    @rule(day=DAY)
    def two_passes_at_once(self, day: list[Happening]) -> None:
        self.world.happens(*day)
        self.world.run("first", lambda: self.world.run("second"))

    @rule(cluster=st.sampled_from(TemplateWorld.clusters), day=DAY, who=DAEMON, forgets=st.booleans())
    def a_lost_state(self, cluster: str, day: list[Happening], who: str, forgets: bool) -> None:
        self.world.lose_state(cluster)
        self.world.daemon(who).restart(forgets=forgets)
        self.a_day(day, who)

    @rule(day=DAY, names=st.permutations(("first", "second")))
    def a_quiet_night(self, day: list[Happening], names: list[str]) -> None:
        self.world.happens(*day)
        self.world.settle(names)

    @rule(day=DAY)
    def a_twin(self, day: list[Happening]) -> None:
        self.world.happens(*day)
        self.world.compare()

    @rule(day=DAY)
    def a_full_pass(self, day: list[Happening]) -> None:
        self.world.happens(*day)
        self.world.compare_with_full()

    def teardown(self) -> None:
        try:
            self.world.settle()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)


TestTemplateMachine = pytest.mark.slow(TemplateMachine.TestCase)
TestTemplateMachine.settings = settings(
    # a step takes as long as one of the policy machine
    settings(PROFILES["ci"], max_examples=2, stateful_step_count=6)
    if (profile := os.environ.get("HYPOTHESIS_PROFILE", "ci")) == "ci"
    else PROFILES[profile],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
