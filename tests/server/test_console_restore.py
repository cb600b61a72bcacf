"""Tests of restored revisions: a draft with the earlier content, which a person must approve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console
from tests.support.git_repositories import git, read_refs
from tests.support.prepared_worlds import begin, published
from tests.support.world import CLUSTERS, World, config_map, injected_set, package

PAGE = "/targets/berlin/packages/gateway?view=history"
FORM = {"target": "berlin", "package": "gateway", "revision": "1"}


def publish_twice(folder: Path) -> World:
    """Return a fleet with two published revisions of the gateway: 2 replicas, then 3."""
    world = published(folder)
    endpoints = config_map("endpoints", "required", api="none")
    world.release("gateway", "v2", package("gateway", replicas=3, endpoints=endpoints))
    world.write({"gateway.yaml": injected_set("gateway", CLUSTERS, "v2")})
    world.sync()
    for cluster in CLUSTERS:
        world.merge(cluster)
    world.sync_until_unchanged()
    return world


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, publish_twice))
    client.update()
    return client


@pytest.mark.slow
def test_a_restored_revision_is_a_draft_of_the_person(console: ConsoleClient) -> None:
    world = console.world
    page = console.get(PAGE).text
    response = console.post("/restore", FORM)
    console.update()

    assert "Restore v1" in page
    assert "Restore v2" not in page
    assert response.status_code == 303
    assert "A draft with the content of v1" in console.get(response.headers["location"]).text
    assert console.requested_passes == 1
    assert git(world.fleet, "log", "-1", "--format=%an <%ae> %s", "drafts/berlin") == (
        "Ada Example <ada@example.com> gateway: restore v1"
    )
    (event,) = console.get("/api/v1/activity?action=draft-created").json()["items"]
    assert (event["by"], event["subject"], event["commit"]) == (
        "Ada Example", "restore v1", world.head("drafts/berlin"),
    )  # fmt: skip
    assert "replicas: 2" in world.text("drafts/berlin", "gateway/deployment.yaml")
    assert "replicas: 3" in world.text("clusters/berlin", "gateway/deployment.yaml")
    assert "edit gateway" in console.get("/changes").text
    assert "Restore v1" not in console.get(PAGE).text


@pytest.mark.slow
def test_an_approved_revision_stays_published(console: ConsoleClient) -> None:
    console.post("/restore", FORM)
    console.update()
    index = console.context.index
    assert index is not None
    page = console.confirm({"verb": "approve", "change": index.changes[0].key}, reason="v2 has an error")
    console.update()
    refs = read_refs(console.world.fleet)
    console.update()

    assert "1 done" in page.text
    assert "replicas: 2" in console.world.text("clusters/berlin", "gateway/deployment.yaml")
    assert "declined" in console.get("/targets/berlin/packages/gateway").text
    assert read_refs(console.world.fleet) == refs


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        pytest.param({"revision": "2"}, 409, "revision 2 is the published content", id="published-revision"),
        pytest.param({"revision": "7"}, 409, "records no revision 7", id="unknown-revision"),
        pytest.param({"revision": "1; rm"}, 409, "records no revision 0", id="no-number"),
        pytest.param({"package": "nothing"}, 404, "There is no package berlin/nothing", id="unknown-package"),
        pytest.param({"target": "nowhere"}, 404, "There is no package nowhere/gateway", id="unknown-target"),
    ],
)
def test_what_cannot_be_restored_has_a_reason(
    changes: dict[str, str], status: int, message: str, console: ConsoleClient
) -> None:
    before = read_refs(console.world.fleet)
    response = console.post("/restore", {**FORM, **changes})

    assert response.status_code == status
    assert message in response.text
    assert read_refs(console.world.fleet) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "status"),
    [
        pytest.param(RoleRule("viewer"), 409, id="viewer"),
        pytest.param(RoleRule("reviewer", targets=LabelSelector((("region", "south"),))), 404, id="other-target"),
    ],
)
def test_a_person_without_permission_restores_nothing(rule: RoleRule, status: int, console: ConsoleClient) -> None:
    session = Session(ADA, Permissions((rule,)))

    class Fixed:
        def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
            return session

    console.context = replace(console.context, authenticator=Fixed())
    before = read_refs(console.world.fleet)

    assert console.post("/restore", FORM).status_code == status
    assert read_refs(console.world.fleet) == before


@pytest.mark.slow
def test_a_package_with_an_open_draft_is_not_restored(console: ConsoleClient) -> None:
    console.post("/restore", FORM)
    console.update()
    response = console.post("/restore", FORM)

    assert response.status_code == 409
    assert "has an open draft" in response.text
