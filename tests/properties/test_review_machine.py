"""Any sequence of actions of users, upstreams and daemons loses no local change, and passes settle.

A few hundred steps by default, the same every time. More than ten thousand steps, with minimized failures:

    HYPOTHESIS_PROFILE=nightly python -m pytest tests/properties/test_review_machine.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.properties.edits import EDITS
from tests.properties.review_world import TEMPLATES, WISHED, ReviewWorld
from tests.support.world import CLUSTERS, REGIONS

# an action: the name of a method of the fleet, and its arguments
Happening = tuple[Any, ...]


def happening(name: str, *choices: object) -> st.SearchStrategy[Happening]:
    """Return a strategy for one action. Choices are values, or strategies for them."""
    return st.tuples(
        st.just(name), *(choice if isinstance(choice, st.SearchStrategy) else st.just(choice) for choice in choices)
    )


CLUSTER, PACKAGE, VERSION, NUMBER = (
    st.sampled_from(CLUSTERS),
    st.sampled_from(WISHED),
    st.integers(1, 3),
    st.integers(0, 11),
)
EXTRA = st.sampled_from((
    "", "", "labels: {tier: edge}", "annotations: {note: short}", "packageContext: {data: {site: one}}",
    "pipeline: {mutators: [{image: 'set-labels:v0.2', configMap: {tier: edge}}]}", "deletionPolicy: orphan",
    "adoptionPolicy: adoptExisting", "conflictPolicy: local",
))  # fmt: skip

CONFIG = st.one_of(
    happening("request_package", CLUSTER, PACKAGE, VERSION, EXTRA),
    happening("request_package", CLUSTER, PACKAGE, VERSION, EXTRA, st.sampled_from(("requests", "moved"))),
    happening("withdraw_request", CLUSTER, PACKAGE),
    happening("region", st.sampled_from(sorted(REGIONS.values())), st.sampled_from("abc")),
    happening("select", st.sampled_from((CLUSTERS, CLUSTERS[:1], CLUSTERS[1:])), VERSION),
)
UPSTREAM = happening("release", st.sampled_from(("gateway", "metrics")), VERSION, st.integers(1, 6))
EDIT = happening("edit", st.sampled_from(("draft", "cluster")), NUMBER, st.sampled_from([*EDITS]))
WAY = st.sampled_from(("merge", "squash", "rebase", "fast-forward", "pick", "older"))
WHOLE = st.sampled_from(("merge", "squash", "rebase", "fast-forward"))
MERGE = st.one_of(
    happening("merge", NUMBER, WAY), happening("merge_and_delete", NUMBER, WHOLE),
    happening("take", NUMBER), happening("revert", CLUSTER),
)  # fmt: skip
DRAFT = st.one_of(*(happening(item, NUMBER) for item in ("delete", "rebase", "update_branch", "put_back", "force")))
VERB = st.sampled_from(("propose", "approve", "approve at once", "reject", "drop"))
COMMAND = happening("by_command", VERB, NUMBER, st.booleans())
# most actions are user actions
ACTS = st.one_of(EDIT, MERGE, EDIT, DRAFT, CONFIG, EDIT, MERGE, UPSTREAM, COMMAND)
DAY = st.lists(ACTS, min_size=1, max_size=4)
DAEMON = st.sampled_from(("first", "second"))


class ReviewMachine(RuleBasedStateMachine):
    """Each rule runs a few user actions and then a pass, which checks the invariants."""

    world: ReviewWorld
    folder: Path

    @initialize(template=st.sampled_from(TEMPLATES), published=st.booleans())
    def begins(self, template: str, published: bool) -> None:
        self.folder = Path(mkdtemp())
        self.world = ReviewWorld.new(self.folder / "world", template)
        self.world.run("first")
        for number in range(len(self.world.drafts()) if published else 0):
            self.world.merge(number, "squash")
        self.world.run("first")

    @rule(day=DAY, who=DAEMON)
    def a_day(self, day: list[Happening], who: str) -> None:
        self.world.happens(*day)
        self.world.run(who)

    @rule(day=DAY, who=DAEMON)
    def another_day(self, day: list[Happening], who: str) -> None:
        self.a_day(day, who)

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

    @rule(cluster=CLUSTER, day=DAY, who=DAEMON)
    def a_renamed_cluster_branch(self, cluster: str, day: list[Happening], who: str) -> None:
        self.world.lose_branch(cluster)
        self.a_day(day, who)
        self.world.lose_branch(cluster)
        self.world.run(who)

    @rule(day=DAY, who=DAEMON)
    def a_spoiled_config(self, day: list[Happening], who: str) -> None:
        self.world.spoil()
        self.a_day(day, who)
        self.world.mend()
        self.world.run(who)

    @rule(day=DAY, names=st.permutations(("first", "second")))
    def a_quiet_night(self, day: list[Happening], names: list[str]) -> None:
        self.world.happens(*day)
        self.world.settle(names)

    @rule(day=DAY)
    def a_twin(self, day: list[Happening]) -> None:
        self.world.happens(*day)
        self.world.compare()

    def teardown(self) -> None:
        try:
            self.world.settle()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)


PROFILES = {
    # The steps are the same every time: a test fails only after a change.
    "ci": settings(
        max_examples=4, stateful_step_count=12, derandomize=True, phases=(Phase.explicit, Phase.generate), database=None
    ),
    "nightly": settings(max_examples=200, stateful_step_count=30),
}
TestReviewMachine = ReviewMachine.TestCase
TestReviewMachine.settings = settings(
    PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "ci")], deadline=None, suppress_health_check=list(HealthCheck)
)
