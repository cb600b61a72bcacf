"""Tests of reverts: drafts with the content before an approval, for all packages that the approval has published."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, find_value, open_console, sign_in, strip_tags
from tests.support.git_repositories import git, read_refs
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import CLUSTERS, World, config_map, injected_set, package, variant

SOUTH = LabelSelector((("region", "south"),))
GATEWAY = "update gateway v1 → v2"


def draft_updates(folder: Path) -> World:
    """Return a fleet with drafts that update the gateway from 2 to 3 replicas, and the metrics on berlin too."""
    world = published(folder)
    endpoints = config_map("endpoints", "required", api="none")
    world.release("gateway", "v2", package("gateway", replicas=3, endpoints=endpoints))
    world.release("metrics", "v2", package("metrics", 3, "1.1"))
    world.write({
        "gateway.yaml": injected_set("gateway", CLUSTERS, "v2"),
        "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2"),
    })  # fmt: skip
    world.sync_until_unchanged()
    return world


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, draft_updates))
    client.update()
    return client


def press_approve(console: ConsoleClient, *titles: str) -> str:
    """Approve the changes with these titles, and return the path of the job."""
    keys = [console.find_change(title).key for title in titles]
    page = console.confirm({"verb": "approve", "change": keys}, reason="tested")
    (path,) = re.findall(r'action="(/jobs/[^/]+)/revert"', page.text)
    return str(path)


def approve(console: ConsoleClient, *titles: str) -> str:
    """Approve the changes with these titles, run a pass, and return the path of the job."""
    path = press_approve(console, *titles)
    console.update()
    return path


def confirm(console: ConsoleClient, job: str) -> tuple[str, str]:
    """Press the button of a job, and return the path and the text of the confirmation."""
    response = console.post(f"{job}/revert", {})
    path = response.headers["location"]
    return path, strip_tags(console.get(path).text)


def submit(console: ConsoleClient, path: str, **fields: str) -> str:
    """Confirm the revert, apply it, and return the text of the page of its job."""
    key = find_value(console.get(path).text, "key")
    response = console.post(f"{path}/submit", {"key": key, **fields})
    console.context.jobs.apply_waiting()
    return strip_tags(console.get(response.headers["location"]).text)


@pytest.mark.slow
def test_a_revert_drafts_the_earlier_content_of_each_package(console: ConsoleClient) -> None:
    world = console.world
    job = approve(console, GATEWAY, "update metrics v1 → v2")
    path, confirmation = confirm(console, job)
    heads = [world.head(f"clusters/{cluster}") for cluster in CLUSTERS]
    page = submit(console, path, reason="too  many\nreplicas")
    drafts = git(world.fleet, "log", "-2", "--format=%an <%ae> %s", "drafts/berlin").splitlines()
    console.update()

    assert "Revert 3 packages on 2 targets?" in confirmation
    assert "Create 3 drafts" in confirmation
    assert "3 done · 0 skipped · 0 failed" in page
    assert sorted(drafts) == [
        "Ada Example <ada@example.com> gateway: revert to v1", "Ada Example <ada@example.com> metrics: revert to v1",
    ]  # fmt: skip
    assert "Reason: too many replicas" in git(world.fleet, "log", "-1", "--format=%B", "drafts/lisbon")
    assert [world.head(f"clusters/{cluster}") for cluster in CLUSTERS] == heads
    for cluster in CLUSTERS:
        assert "replicas: 2" in world.text(f"drafts/{cluster}", "gateway/deployment.yaml")
    events = console.get("/api/v1/activity?action=draft-created&actor=Ada").json()["items"]
    assert {(event["target"], event["package"], event["subject"], event["reason"]) for event in events} == {
        (target, name, "revert to v1", "too many\nreplicas")
        for target, name in (("berlin", "gateway"), ("berlin", "metrics"), ("lisbon", "gateway"))
    }


@pytest.mark.slow
def test_an_approved_revert_stays_published(console: ConsoleClient) -> None:
    world = console.world
    job = approve(console, GATEWAY)
    submit(console, confirm(console, job)[0])
    console.update()
    _, while_open = confirm(console, job)
    for change in console.context.index.changes if console.context.index else ():
        if "gateway" in change.title:
            console.confirm({"verb": "approve", "change": change.key}, reason="too many replicas")
    console.update()
    refs = read_refs(world.fleet)
    console.update()
    _, afterwards = confirm(console, job)

    assert "DraftOpen" in while_open
    assert [world.text(f"clusters/{name}", "gateway/deployment.yaml").count("replicas: 2") for name in CLUSTERS] == [
        1,
        1,
    ]
    assert read_refs(world.fleet) == refs
    assert "PublishedAgain another revision is published now berlin/gateway, lisbon/gateway" in afterwards


@pytest.mark.slow
def test_a_package_that_changed_after_the_confirmation_is_skipped(console: ConsoleClient) -> None:
    world = console.world
    path, _ = confirm(console, approve(console, GATEWAY))
    before = world.head("drafts/berlin")
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 3", "replicas: 4")
    page = submit(console, path)

    assert "1 done · 1 skipped" in page
    assert "berlin gateway skipped (PublishedAgain) the published content has changed since the approval" in page
    assert world.head("drafts/berlin") == before


@pytest.mark.slow
def test_a_repeated_revert_creates_no_second_draft(console: ConsoleClient) -> None:
    job = approve(console, GATEWAY)
    first, second = confirm(console, job)[0], confirm(console, job)[0]
    fields = {"key": find_value(console.get(first).text, "key")}
    locations = {console.post(f"{first}/submit", fields).headers["location"] for _ in range(2)}
    console.context.jobs.apply_waiting()
    refs = read_refs(console.world.fleet)
    page = submit(console, second)

    assert len(locations) == 1
    assert "0 done · 2 skipped" in page
    assert "DraftOpen" in page
    assert read_refs(console.world.fleet) == refs


@pytest.mark.slow
def test_a_reviewer_reverts_the_approval_of_another_person_on_permitted_targets(console: ConsoleClient) -> None:
    job = approve(console, GATEWAY)
    sign_in(console, Session(ADA, Permissions((RoleRule("reviewer", targets=SOUTH),))))
    activity = console.get("/activity?action=approved").text
    _, text = confirm(console, job)

    assert f'action="{job}/revert"' in activity
    assert "Revert 1 package on 1 target?" in text
    assert "berlin" not in text


@pytest.mark.slow
def test_a_viewer_reverts_nothing(console: ConsoleClient) -> None:
    job = approve(console, GATEWAY)
    before = read_refs(console.world.fleet)
    sign_in(console, Session(ADA, Permissions((RoleRule("viewer"),))))
    path, text = confirm(console, job)
    refused = console.post(f"{path}/submit", {"key": "k1"})

    assert "/revert" not in console.get("/activity").text + console.get(job).text
    assert "you need the role reviewer for gateway on this target" in text
    assert refused.status_code == 422
    assert read_refs(console.world.fleet) == before


@pytest.mark.slow
def test_a_first_installation_is_not_reverted(tmp_path: Path) -> None:
    console = open_console(begin(tmp_path, drafted))
    console.update()
    job = press_approve(console, "install metrics v1")
    _, before_pass = confirm(console, job)
    console.update()
    path, text = confirm(console, job)

    assert "NotRecorded no pass has recorded the publication yet" in before_pass
    assert "FirstInstallation no earlier content exists" in text
    assert "/submit" not in console.get(path).text


def test_an_unknown_job_is_not_reverted(published_fleet: ConsoleClient) -> None:
    response = published_fleet.post("/jobs/unknown/revert", {})

    assert response.status_code == 410
    assert "No publication with this ID is stored any more" in response.text
