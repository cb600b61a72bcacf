"""Templates as reviewers read them, with real Git: what a draft does to pods, and what an old report comes to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.output.review.open_drafts import format_draft_text
from reconciler.output.review.pull_request import build_pull_request_text
from tests.support.git_repositories import git
from tests.support.policies import PLACED_ON, publish
from tests.support.world import STATE, World, repository

POOL = "KafkaNodePool shop/brokers"
RESTARTS = f"templates: {POOL}: pods restart: pod changed (affects Pod)"
CALM = f"templates: {POOL}: pods do not restart: podSet changed (affects StrimziPodSet)"
POD, SET = {"priorityClassName": "high"}, {"metadata": {"labels": {"a": "b"}}}


def written(kind: str, name: str, spec: Mapping[str, object], **labels: str) -> str:
    metadata = {"name": name, "namespace": "shop", "labels": labels, "annotations": {PLACED_ON: "berlin"}}
    return (
        f"apiVersion: kafka.strimzi.io/v1\nkind: {kind}\nmetadata: {json.dumps(metadata)}\nspec: {json.dumps(spec)}\n"
    )


def want(world: World, **template: object) -> None:
    """Have a Kafka with a template."""
    world.write({"kafka.yaml": written("Kafka", "orders", {"kafka": {"template": template}})})


def begin(folder: Path, **settings: object) -> World:
    """Return a world where a Kafka with a pool is published."""
    world = World.create(folder, **settings)
    spec = {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}}
    labels = {"strimzi.io/cluster": "orders"}
    world.write({"berlin.yaml": repository("berlin"), "pool.yaml": written("KafkaNodePool", "brokers", spec, **labels)})
    want(world, pod=POD)
    world.sync()
    publish(world, "berlin")
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path)


def shown(world: World) -> list[str]:
    """Return what `show` says of the one draft, without its diffs."""
    (sheet,) = world.list_open_drafts(whole=True)
    return [line.strip() for line in format_draft_text(sheet, 0, 0).splitlines()]


def test_a_draft_says_that_pods_restart_to_everybody_who_reads_it(world: World) -> None:
    want(world, pod={"priorityClassName": "low"})
    world.sync()
    (sheet,) = world.list_open_drafts(whole=True)
    (part,) = [
        section
        for section in build_pull_request_text(sheet, (), lambda _repo, _commit: "").sections
        if "###" in section
    ]

    assert RESTARTS in shown(world)
    assert part.splitlines()[2] == f"- `{RESTARTS}`"
    assert RESTARTS.removeprefix("templates: ") in git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")


def test_a_draft_that_grows_goes_on_saying_what_it_does_to_what_is_published(world: World) -> None:
    want(world, pod={"priorityClassName": "low"})
    world.sync()
    world.edit("drafts/berlin", "resources/shop/kafkanodepool-brokers.yaml", '"replicas": 3', '"replicas": 5')
    want(world, pod={"priorityClassName": "low"}, podSet=SET)
    world.sync()

    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin").strip() == "3"
    assert f"templates: {POOL}: pods restart: podSet, pod changed (affects StrimziPodSet, Pod)" in shown(world)


def test_what_restarts_nothing_says_so(world: World) -> None:
    want(world, pod=POD, podSet=SET)
    world.sync()

    assert CALM in shown(world)


def test_what_nobody_has_published_yet_restarts_nothing(world: World) -> None:
    world.write({"pool.yaml": None})
    want(world, pod=POD)
    world.sync()
    publish(world, "berlin")
    text = written(
        "KafkaNodePool", "late", {"replicas": 1, "roles": ["broker", "controller"]}, **{"strimzi.io/cluster": "orders"}
    )
    world.write({"late.yaml": text})
    world.sync()
    want(world, pod={"priorityClassName": "low"})
    world.sync()

    assert [line for line in shown(world) if line.startswith("templates:")] == []


def test_equal_content_has_an_equal_status_file_whatever_came_before(tmp_path: Path) -> None:
    result, other = begin(tmp_path / "one"), begin(tmp_path / "other")
    want(result, pod={"priorityClassName": "low"})
    result.sync()
    for world in (result, other):
        want(world, pod=POD, podSet=SET)
        world.sync()

    file = ".reconciler/resources/shop.yaml"
    assert result.text("drafts/berlin", file) == other.text("drafts/berlin", file)


def test_a_report_follows_its_kafka_and_a_lost_state_is_no_news(tmp_path: Path) -> None:
    world = begin(tmp_path, rules={"template_mode": "report"})
    want(world, pod={"priorityClassName": "low"})
    world.sync()
    publish(world, "berlin")
    (template,) = world.package_status("clusters/berlin", "resources/shop")["templates"]
    git(world.fleet, "update-ref", "-d", f"{STATE}berlin")
    pass_result = world.sync()

    assert template["template"] == {"pod": {"priorityClassName": "low"}}
    assert pass_result.changed_branches == set()
