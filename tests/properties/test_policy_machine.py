"""Any sequence of changes to policies and placements loses no local change, and deletes nothing in case of doubt.

About a hundred steps by default, the same every time. Thousands of steps, with minimized failures:

    HYPOTHESIS_PROFILE=nightly python -m pytest tests/properties/test_policy_machine.py
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

from tests.properties.edits import POLICY_EDITS
from tests.properties.policy_world import LODGER, MARKS, RESOURCES, SOAK, WAVES, Edge, PolicyWorld
from tests.properties.review_world import TEMPLATES
from tests.properties.test_review_machine import (
    COMMAND,
    DAEMON,
    DRAFT,
    EXTRA,
    MERGE,
    NUMBER,
    PROFILES,
    VERSION,
    Happening,
    happening,
)
from tests.support.world import CLUSTERS

CLUSTER = st.sampled_from(PolicyWorld.clusters)
NAME = st.sampled_from(RESOURCES)
FLAVOUR = st.integers(1, 3)
EDGE = st.builds(
    Edge, st.integers(1, 4), st.sampled_from([*WAVES]), st.sampled_from((0, SOAK)),
    st.sampled_from(((), (), ("lisbon",), ("berlin",))),
)  # fmt: skip
SPREAD = st.sampled_from((("berlin",), ("berlin", LODGER), PolicyWorld.clusters, (LODGER,), None))
POLICY = st.one_of(
    happening("override", EDGE), happening("override", EDGE), happening("override", st.sampled_from((None, Edge(1)))),
    happening("empty"), happening("tint", st.sampled_from(("", "none", "red", "blue"))),
    happening("label", CLUSTER, st.sampled_from(("early", "late"))),
)  # fmt: skip
PLACE = st.one_of(
    *(
        st.builds(
            lambda name, how, flavour, attached, folder: ("place", name, how, flavour, attached, folder),
            NAME, st.sampled_from([*MARKS]), FLAVOUR, st.booleans(), st.sampled_from(("placed", "moved")),
        )
        for _ in range(2)
    ),
    happening("spread", SPREAD, st.booleans()),
    happening("unplace", NAME), happening("repeat", NAME), happening("single"),
)  # fmt: skip
REQUEST = st.one_of(
    happening("request_package", st.sampled_from(CLUSTERS), st.just("metrics"), VERSION, EXTRA),
    happening("withdraw_request", st.sampled_from(CLUSTERS), st.just("metrics")),
    happening("release", st.just("metrics"), VERSION, st.integers(1, 6)),
)
EDIT = happening("edit", st.sampled_from(("draft", "cluster")), NUMBER, st.sampled_from([*POLICY_EDITS]))
TIME = happening("wait", st.sampled_from((60, SOAK, 2 * SOAK)))
DOUBT = st.one_of(happening("blur", NUMBER), happening("clear"))
ACTS = st.one_of(EDIT, MERGE, POLICY, PLACE, EDIT, MERGE, POLICY, PLACE, DRAFT, REQUEST, COMMAND, TIME, DOUBT)
DAY = st.lists(ACTS, min_size=1, max_size=4)


class PolicyMachine(RuleBasedStateMachine):
    """Each rule runs a few user actions and then a pass, which checks the invariants."""

    world: PolicyWorld
    folder: Path

    @initialize(template=st.sampled_from(TEMPLATES), published=st.booleans())
    def begins(self, template: str, published: bool) -> None:
        self.folder = Path(mkdtemp())
        self.world = PolicyWorld.new(self.folder / "world", template)
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

    @rule(day=DAY, who=DAEMON, where=st.sampled_from(("publish", "tag", "finish")))
    def a_killed_daemon(self, day: list[Happening], who: str, where: str) -> None:
        self.world.happens(*day)
        self.world.run(who, dies=where)

    @rule(cluster=CLUSTER, day=DAY, who=DAEMON, forgets=st.booleans())
    def a_lost_state(self, cluster: str, day: list[Happening], who: str, forgets: bool) -> None:
        self.world.lose_state(cluster)
        self.world.daemon(who).restart(forgets=forgets)
        self.a_day(day, who)

    @rule(day=DAY, later=DAY, who=DAEMON)
    def a_wave(self, day: list[Happening], later: list[Happening], who: str) -> None:
        self.world.happens(*day)
        self.world.run(who)
        for number in range(3):
            self.world.merge(number, "squash")
        self.world.run(who)
        self.world.happens(("wait", SOAK), *later)
        self.world.run(who)

    @rule(day=DAY, number=NUMBER, later=DAY, who=DAEMON)
    def a_doubtful_day(self, day: list[Happening], number: int, later: list[Happening], who: str) -> None:
        self.world.happens(("blur", number), *day)
        self.world.run(who)
        self.world.happens(("clear",), *later)
        self.world.run(who)

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

    @rule()
    def a_policy_that_is_taken_back(self) -> None:
        self.world.roll_back()

    def teardown(self) -> None:
        try:
            self.world.settle()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)


TestPolicyMachine = pytest.mark.slow(PolicyMachine.TestCase)
TestPolicyMachine.settings = settings(
    # a step of this fleet takes longer: it has more packages, and is compared with other fleets
    settings(PROFILES["ci"], max_examples=2, stateful_step_count=6)
    if (profile := os.environ.get("HYPOTHESIS_PROFILE", "ci")) == "ci"
    else PROFILES[profile],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
