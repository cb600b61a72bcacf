"""The events and numbers of passes over real repositories: results, states of packages, and quiet second passes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.planning.decide import fleet_plan
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.service.pass_reporter import PassReporter
from reconciler.telemetry import metrics
from tests.support.git_repositories import delete_ref
from tests.support.metric_samples import read_metric
from tests.support.world import World, small_world, variant

SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: broken
spec:
  upstream: {repo: catalog, package: gateway, revision: v1}
  targets: []
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return small_world(tmp_path)


class Service:
    """The passes of one daemon, and the events of each pass above the level debug."""

    def __init__(self, world: World) -> None:
        self.passes: PassRunner = world.service()
        self.reporter = PassReporter()

    def run(self) -> list[dict[str, Any]]:
        with capture_logs() as events:
            self.reporter.run(self.passes, ["timer"])
        return [dict(event) for event in events if event["log_level"] != "debug"]


def run_once(world: World) -> dict[str, Any]:
    """Return the event `pass_completed` of a first pass."""
    return Service(world).run()[-1]


@pytest.mark.slow
def test_findings_in_the_config_do_not_change_the_result(world: World) -> None:
    world.write({"broken.yaml": SET})
    completed = run_once(world)

    assert (completed["result"], completed["findings"]["error"] > 0) == ("success", True)


def test_a_package_that_two_objects_request_is_one_blocked_package(world: World) -> None:
    # The second variant requests the package of the first one.
    world.write({"second.yaml": variant("metrics-second", "berlin", "metrics")})

    assert run_once(world)["packages"]["blocked"] == 1


@pytest.mark.emits("status_push_failed")
def test_an_unreachable_target_makes_the_result_partial(world: World) -> None:
    service = Service(world)
    service.run()
    shutil.rmtree(world.fleet)
    first, second = service.run(), service.run()

    completed = [event for event in first if event["event"] == "pass_completed"]
    assert [(event["result"], event["remotes_unavailable"]) for event in completed] == [("partial", 1)]
    assert completed[0]["targets"] > 0
    assert "finding_reported" in {event["event"] for event in first}
    assert "finding_reported" not in {event["event"] for event in second}


@pytest.mark.emits("pass_completed", "pass_started", "pass_skipped", "draft_pushed")
def test_a_second_pass_logs_nothing(world: World) -> None:
    service = Service(world)
    first = service.run()
    second, third = service.run(), service.run()

    assert "draft_pushed" in {event["event"] for event in first}
    assert (second, third) == ([], [])


@pytest.mark.emits("draft_withdrawn", "target_branch_created")
def test_the_events_of_drafts_name_their_packages(world: World) -> None:
    service = Service(world)
    events = service.run()
    first = {event["event"]: event for event in events if event.get("target") == "berlin"}
    world.write({"metrics.yaml": None})
    second = {event["event"]: event for event in service.run() if event.get("target") == "berlin"}

    pushed = first["draft_pushed"]
    (created,) = (event for event in events if event["event"] == "target_branch_created")
    assert (pushed["packages"], pushed["tasks"], pushed["conflicts"]) == (["gateway", "metrics"], ["clone"], 0)
    assert (created["log_level"], created["targets"], created["count"]) == ("warning", ["berlin", "lisbon"], 2)
    assert second["draft_withdrawn"]["package"] == "metrics"


@pytest.mark.emits("package_published", "revision_tagged", "review_action")
def test_the_events_of_publications_name_the_person_and_the_way(tmp_path: Path) -> None:
    world = small_world(tmp_path, git={"revision_tags": "all"})
    service = Service(world)
    with metrics.REGISTRY.export():
        service.run()
        world.run_review_action("propose", "berlin/gateway")
        world.run_review_action("approve", "berlin/gateway")
        by_command = service.run()
        head = world.merge("lisbon")
        by_merge = service.run()
        counts = read_metric("reconciler_publications_total")
    published = [event for event in (*by_command, *by_merge) if event["event"] == "package_published"]
    tagged = [event for event in (*by_command, *by_merge) if event["event"] == "revision_tagged"]

    assert [(event["target"], event["packages"], event["revisions"], event["source"]) for event in published] == [
        ("berlin", ["gateway"], [1], "command"), ("lisbon", ["gateway"], [1], "git")
    ]  # fmt: skip
    assert published[1]["commit"] == head
    assert counts == {'{source="command"}': 1, '{source="git"}': 1}
    assert [event["author"] for event in published] == ["Grace <grace@example.com>", "Ada <ada@example.com>"]
    assert [(event["package"], event["revision"], event["tag"]) for event in tagged] == [
        ("gateway", 1, "berlin/gateway/v1"), ("gateway", 1, "lisbon/gateway/v1")
    ]  # fmt: skip
    assert [(event["commit"], event["author"], event["source"]) for event in tagged] == [
        (event["commit"], event["author"], event["source"]) for event in published
    ]


def test_lost_states_are_not_publications(world: World) -> None:
    service = Service(world)
    service.run()
    world.merge("berlin")
    service.run()
    delete_ref(world.fleet, "refs/reconciler/state/berlin")

    assert "package_published" not in {event["event"] for event in Service(world).run()}


def test_the_states_of_packages_follow_a_review(world: World) -> None:
    service = Service(world)
    created = service.run()[-1]
    world.run_review_action("propose")
    service.run()
    proposed = service.passes.summary.numbers
    world.run_review_action("approve")
    service.run()
    published = service.passes.summary.numbers

    count = created["packages"]["draft"]
    assert count > 0
    assert created["drafts"] == {"created": count, "updated": 0, "withdrawn": 0, "unchanged": 0}
    assert (proposed.packages["draft"], proposed.packages["proposed"]) == (0, count)
    assert (published.packages["proposed"], published.packages["published"]) == (0, count)
    assert (proposed.oldest_drafts["proposed"], published.oldest_drafts) == (world.now, {"draft": 0, "proposed": 0})


def test_the_age_of_a_draft_survives_a_restart(world: World) -> None:
    Service(world).run()
    start = world.now
    world.now += 500
    world.write({"metrics.yaml": variant("metrics-other", "berlin", "other")})
    restarted = Service(world)
    restarted.run()

    assert restarted.passes.summary.numbers.oldest_drafts == {"draft": start, "proposed": 0}


def test_metrics_and_plans_have_the_same_states() -> None:
    assert metrics.PACKAGE_STATES == fleet_plan.PACKAGE_STATES
