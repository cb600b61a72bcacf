"""Tests of the reports about Kafka templates in drafts, with real Git: pod restarts, and reports in status files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.output.review.formats import format_draft_text
from reconciler.output.review.open_drafts import build_draft_entry
from reconciler.output.review.pull_request import build_pull_request_text
from tests.support.git_repositories import git
from tests.support.policies import PLACED_ON, publish
from tests.support.world import STATE, World, repository

POOL = "KafkaNodePool shop/brokers"
RESTARTS = f"templates: {POOL}: pods restart: pod changed (affects Pod)"
CALM = f"templates: {POOL}: pods do not restart: podSet changed (affects StrimziPodSet)"
POD, SET = {"priorityClassName": "high"}, {"metadata": {"labels": {"a": "b"}}}


def format_resource(kind: str, name: str, spec: Mapping[str, object], **labels: str) -> str:
    metadata = {"name": name, "namespace": "shop", "labels": labels, "annotations": {PLACED_ON: "berlin"}}
    return (
        f"apiVersion: kafka.strimzi.io/v1\nkind: {kind}\nmetadata: {json.dumps(metadata)}\nspec: {json.dumps(spec)}\n"
    )


def write_kafka(world: World, **template: object) -> None:
    """Write a Kafka with a template to the config."""
    world.write({"kafka.yaml": format_resource("Kafka", "orders", {"kafka": {"template": template}})})


def build_world(folder: Path, **settings: object) -> World:
    """Return a world with a published Kafka and pool."""
    world = World.create(folder, **settings)
    spec = {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}}
    labels = {"strimzi.io/cluster": "orders"}
    world.write(
        {"berlin.yaml": repository("berlin"), "pool.yaml": format_resource("KafkaNodePool", "brokers", spec, **labels)}
    )
    write_kafka(world, pod=POD)
    world.sync()
    publish(world, "berlin")
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return build_world(tmp_path)


def show_draft(world: World) -> list[str]:
    """Return the lines that `show` prints about the only draft, without its diffs."""
    (details,) = world.list_open_drafts(whole=True)
    return [line.strip() for line in format_draft_text(build_draft_entry(details), 0).splitlines()]


def test_show_pull_request_and_commit_report_pod_restarts(world: World) -> None:
    write_kafka(world, pod={"priorityClassName": "low"})
    world.sync()
    (details,) = world.list_open_drafts(whole=True)
    (part,) = [
        section
        for section in build_pull_request_text(details, (), lambda _repo, _commit: "").sections
        if "###" in section
    ]

    assert RESTARTS in show_draft(world)
    assert part.splitlines()[2] == f"- `{RESTARTS}`"
    assert RESTARTS.removeprefix("templates: ") in git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")


def test_an_extended_draft_reports_its_effects_on_the_published_resources(world: World) -> None:
    write_kafka(world, pod={"priorityClassName": "low"})
    world.sync()
    world.edit("drafts/berlin", "resources/shop/kafkanodepool-brokers.yaml", '"replicas": 3', '"replicas": 5')
    write_kafka(world, pod={"priorityClassName": "low"}, podSet=SET)
    world.sync()

    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin").strip() == "3"
    assert f"templates: {POOL}: pods restart: podSet, pod changed (affects StrimziPodSet, Pod)" in show_draft(world)


def test_a_change_without_pod_restart_reports_that(world: World) -> None:
    write_kafka(world, pod=POD, podSet=SET)
    world.sync()

    assert CALM in show_draft(world)


def test_a_change_of_an_unpublished_pool_reports_no_restart(world: World) -> None:
    world.write({"pool.yaml": None})
    write_kafka(world, pod=POD)
    world.sync()
    publish(world, "berlin")
    text = format_resource(
        "KafkaNodePool", "late", {"replicas": 1, "roles": ["broker", "controller"]}, **{"strimzi.io/cluster": "orders"}
    )
    world.write({"late.yaml": text})
    world.sync()
    write_kafka(world, pod={"priorityClassName": "low"})
    world.sync()

    assert [line for line in show_draft(world) if line.startswith("templates:")] == []


def test_equal_content_has_an_equal_status_file_with_any_history(tmp_path: Path) -> None:
    result, other = build_world(tmp_path / "one"), build_world(tmp_path / "other")
    write_kafka(result, pod={"priorityClassName": "low"})
    result.sync()
    for world in (result, other):
        write_kafka(world, pod=POD, podSet=SET)
        world.sync()

    file = ".reconciler/resources/shop.yaml"
    assert result.text("drafts/berlin", file) == other.text("drafts/berlin", file)


def test_with_lost_state_a_published_report_causes_no_draft(tmp_path: Path) -> None:
    world = build_world(tmp_path, rules={"template_mode": "report"})
    write_kafka(world, pod={"priorityClassName": "low"})
    world.sync()
    publish(world, "berlin")
    (template,) = world.package_status("clusters/berlin", "resources/shop")["templates"]
    git(world.fleet, "update-ref", "-d", f"{STATE}berlin")
    pass_result = world.sync()

    assert template["template"] == {"pod": {"priorityClassName": "low"}}
    assert pass_result.changed_branches == set()
