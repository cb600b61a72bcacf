"""Tests of review actions and passes with the API: results, races, permissions and refused requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.address import API_PREFIX
from reconciler.server.api.openapi import build_openapi_document
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console
from tests.support.git_repositories import git, read_refs
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages are drafted, and no package is published."""
    return begin(tmp_path, drafted)


@pytest.fixture
def console(world: World) -> ConsoleClient:
    client = open_console(world)
    client.update()
    return client


def find_change(console: ConsoleClient, title: str) -> dict[str, Any]:
    items = console.get(f"{API_PREFIX}/changes").json()["items"]
    change: dict[str, Any] = next(item for item in items if item["title"] == title)
    return change


def build_body(change: dict[str, Any], *targets: str, **fields: object) -> dict[str, Any]:
    """Return the body of a request for these targets of a change, or for all its targets."""
    drafts = [draft for variant in change["variants"] for draft in variant["drafts"]]
    selected = [
        {"name": draft["target"], "draftHead": draft["draftHead"], "branchHead": draft["branchHead"]}
        for draft in drafts
        if not targets or draft["target"] in targets
    ]
    return {"targets": selected, "reason": "reviewed", "idempotencyKey": "key-1", **fields}


def act(console: ConsoleClient, verb: str, change: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Request an action, apply its job, and return the result of the job."""
    accepted = console.post_json(f"{API_PREFIX}/changes/{change['key']}:{verb}", body)
    assert accepted.status_code == 202, accepted.text
    console.context.jobs.apply_waiting()
    job: dict[str, Any] = console.get(accepted.headers["location"]).json()
    return job


def list_states(job: dict[str, Any]) -> dict[str, str]:
    return {item["target"]: item.get("code") or item["state"] for item in job["items"]}


def sign_in(console: ConsoleClient, rule: RoleRule) -> None:
    class Fixed:
        def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
            return Session(ADA, Permissions((rule,)))

    console.context = replace(console.context, authenticator=Fixed())


@pytest.mark.slow
def test_an_approval_is_a_job_that_publishes_the_drafts(world: World, console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    accepted = console.post_json(
        f"{API_PREFIX}/changes/{change['key']}:approve", build_body(change), x_request_id="run-7"
    )
    waiting = accepted.json()
    console.context.jobs.apply_waiting()
    job = console.get(accepted.headers["location"]).json()

    assert accepted.headers["location"] == f"{API_PREFIX}/jobs/{waiting['summary']['id']}"
    assert (waiting["kind"], waiting["summary"]["state"], waiting["summary"]["waiting"]) == ("ReviewJob", "waiting", 2)
    assert list_states(job) == {"berlin": "done", "lisbon": "done"}
    assert (job["summary"]["state"], job["summary"]["done"], job["summary"]["action"]) == ("completed", 2, "approve")
    assert {item["commit"] for item in job["items"] if item["target"] == "lisbon"} == {world.head("clusters/lisbon")}
    message = git(world.fleet, "log", "-1", "--format=%an%n%B", "clusters/lisbon")
    assert message.startswith("Ada Example")
    assert "Reconciler-Request-Id: run-7" in message


@pytest.mark.slow
def test_results_and_bodies_have_the_schemas_of_the_openapi_document(console: ConsoleClient) -> None:
    document = build_openapi_document()
    change = find_change(console, "install gateway v1")
    body = build_body(change, "lisbon")
    components = {"components": document["components"]}
    job = act(console, "propose", change, body)

    jsonschema_rs.validate({"$ref": "#/components/schemas/ReviewBody", **components}, body)
    jsonschema_rs.validate({"$ref": "#/components/schemas/ReviewJobResult", **components}, job)
    assert document["components"]["schemas"]["ReviewTarget"]["additionalProperties"] is False
    assert list_states(job) == {"lisbon": "done"}


@pytest.mark.slow
def test_a_draft_that_moved_since_the_review_is_skipped(world: World, console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    before_pass = act(console, "approve", change, build_body(change))
    console.update()
    current = find_change(console, "install gateway v1")
    refused = console.post_json(
        f"{API_PREFIX}/changes/{current['key']}:approve", build_body(change, "lisbon", idempotencyKey="key-2")
    )

    assert list_states(before_pass) == {"berlin": "done", "lisbon": "DraftMoved"}
    assert (refused.status_code, refused.json()["code"]) == (409, "NothingToDo")
    assert [(item["target"], item["code"]) for item in refused.json()["skipped"]] == [("lisbon", "DraftMoved")]
    assert "gateway" not in world.paths(world.fleet, "clusters/lisbon")


@pytest.mark.slow
def test_an_approval_is_refused_for_an_approved_draft(console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    first = act(console, "approve", change, build_body(change, "lisbon"))
    second = act(console, "approve", change, build_body(change, "lisbon", idempotencyKey="key-2"))
    console.update()
    third = console.post_json(
        f"{API_PREFIX}/changes/{change['key']}:approve", build_body(change, "lisbon", idempotencyKey="key-3")
    )

    assert list_states(first) == {"lisbon": "done"}
    assert second["summary"]["done"] == 0
    assert [item["code"] for item in third.json()["skipped"]] == ["DraftMoved"]


@pytest.mark.slow
def test_a_repeated_request_has_the_same_job(world: World, console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    path = f"{API_PREFIX}/changes/{change['key']}:approve"
    first = console.post_json(path, build_body(change))
    console.context.jobs.apply_waiting()
    head = world.head("clusters/lisbon")
    console.update()
    second = console.post_json(path, build_body(change))
    console.context.jobs.apply_waiting()

    assert second.status_code == 202
    assert second.headers["location"] == first.headers["location"]
    assert second.json()["summary"]["state"] == "completed"
    assert world.head("clusters/lisbon") == head


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    ("title", "verb", "target"),
    [
        pytest.param("install gateway v1", "reject", "lisbon", id="other-action"),
        pytest.param("install gateway v1", "approve", "berlin", id="other-target"),
        pytest.param("install metrics v1", "approve", "berlin", id="other-change"),
    ],
)
def test_another_request_with_the_same_key_is_refused(
    title: str, verb: str, target: str, console: ConsoleClient
) -> None:
    change = find_change(console, "install gateway v1")
    act(console, "approve", change, build_body(change, "lisbon"))
    other = find_change(console, title)
    response = console.post_json(f"{API_PREFIX}/changes/{other['key']}:{verb}", build_body(other, target))

    assert (response.status_code, response.json()["code"]) == (422, "IdempotencyKeyReused")


def test_a_reviewer_approves_only_permitted_targets(world: World, console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    sign_in(console, RoleRule("reviewer", targets=LabelSelector((("region", "south"),))))
    text = console.post_json(f"{API_PREFIX}/changes/{change['key']}:approve", build_body(change, "berlin")).text
    job = act(console, "approve", change, build_body(change, idempotencyKey="key-2"))

    assert "you need the role" not in text  # A person must not learn that the target has this draft.
    assert "the target has no draft of this change any more" in text
    assert list_states(job) == {"berlin": "DraftMoved", "lisbon": "done"}
    assert "gateway" not in world.paths(world.fleet, "clusters/berlin")


def test_a_viewer_is_refused(world: World, console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    sign_in(console, RoleRule("viewer"))
    before = read_refs(world.fleet)
    responses = [
        console.post_json(f"{API_PREFIX}/changes/{change['key']}:{verb}", build_body(change))
        for verb in ("approve", "propose", "reject")
    ]
    started = console.post_json(f"{API_PREFIX}/passes", {})

    assert [response.status_code for response in [*responses, started]] == [403] * 4
    assert read_refs(world.fleet) == before
    assert console.requested_passes == 0


@pytest.mark.slow
def test_the_job_of_another_person_is_not_shown(console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    job = act(console, "approve", change, build_body(change))
    path = f"{API_PREFIX}/jobs/{job['summary']['id']}"
    other = replace(ADA, email="luis@example.com")

    class Fixed:
        def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
            return Session(other, Permissions((RoleRule("reviewer"),)))

    console.context = replace(console.context, authenticator=Fixed())

    assert console.get(path).status_code == 404


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        pytest.param(
            {"force": True}, "force is an unknown field; allowed fields: variants, targets", id="unknown-field"
        ),
        pytest.param({"targets": []}, "targets must not be empty", id="no-target"),
        pytest.param({"targets": [{"name": "lisbon"}]}, "targets[0].draftHead must be set", id="no-head"),
        pytest.param(
            {"targets": [{"name": "lisbon", "draftHead": "main", "branchHead": "0" * 40}]},
            'targets[0].draftHead must be a commit ID of 40 or 64 hexadecimal digits, but is "main"',
            id="branch-as-head",
        ),
        pytest.param(
            {"targets": [{"name": "lisbon", "draftHead": "0" * 40, "branchHead": "0" * 40}] * 301},
            "targets must have at most 300 items",
            id="too-many-targets",
        ),
        pytest.param({"idempotencyKey": ""}, "idempotencyKey must be a string that is not empty", id="no-key"),
        pytest.param({"removals": "yes"}, "removals must be true or false", id="text-for-boolean"),
        pytest.param({"reason": "x" * 1_001}, "reason must have at most 1000 characters", id="long-reason"),
    ],
)
def test_a_wrong_body_is_refused(fields: dict[str, Any], detail: str, drafted_console: ConsoleClient) -> None:
    change = find_change(drafted_console, "install gateway v1")
    response = drafted_console.post_json(f"{API_PREFIX}/changes/{change['key']}:approve", build_body(change, **fields))

    assert (response.status_code, response.json()["code"]) == (400, "InvalidBody")
    assert detail in response.json()["detail"]


@pytest.mark.parametrize("data", [pytest.param([], id="list"), pytest.param("text", id="text")])
def test_a_body_must_be_a_mapping(data: object, drafted_console: ConsoleClient) -> None:
    response = drafted_console.post_json(f"{API_PREFIX}/passes", data)

    assert (response.status_code, response.json()["code"]) == (400, "InvalidBody")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        pytest.param({"sec_fetch_site": "cross-site"}, 403, "ForeignOrigin", id="another-site"),
        pytest.param({"sec_fetch_site": "same-site"}, 403, "ForeignOrigin", id="another-origin-of-the-site"),
        pytest.param({"origin": "https://evil.example"}, 403, "ForeignOrigin", id="another-origin-of-an-old-browser"),
        pytest.param({"content_type": "text/plain"}, 415, "UnsupportedMediaType", id="plain-text"),
        pytest.param({"content_type": "application/x-www-form-urlencoded"}, 415, "UnsupportedMediaType", id="form"),
    ],
)
def test_a_request_of_another_site_is_refused(
    headers: dict[str, str], status: int, code: str, drafted_console: ConsoleClient
) -> None:
    change = find_change(drafted_console, "install gateway v1")
    before = read_refs(drafted_console.world.fleet)
    for path, body in ((f"/changes/{change['key']}:approve", build_body(change)), ("/passes", {})):
        response = drafted_console.post_json(f"{API_PREFIX}{path}", body, **headers)
        assert (response.status_code, response.json()["code"]) == (status, code)
    drafted_console.context.jobs.apply_waiting()

    assert read_refs(drafted_console.world.fleet) == before
    assert drafted_console.requested_passes == 0


def test_a_page_of_the_console_can_use_the_api(console: ConsoleClient) -> None:
    assert console.post_json(f"{API_PREFIX}/passes", {}, sec_fetch_site="same-origin").status_code == 202
    assert console.requested_passes == 1


@pytest.mark.parametrize(
    ("key", "fields", "status", "code"),
    [
        pytest.param("0123456789ab", {}, 410, "UnknownChange", id="change"),
        pytest.param(None, {"variants": ["0123456789ab"]}, 409, "UnknownVariant", id="variant"),
        pytest.param(None, {"reason": " "}, 422, "ReasonRequired", id="no-reason"),
    ],
)
def test_an_action_that_is_not_possible_has_a_problem(
    key: str | None, fields: dict[str, Any], status: int, code: str, console: ConsoleClient
) -> None:
    change = find_change(console, "install metrics v1")
    response = console.post_json(f"{API_PREFIX}/changes/{key or change['key']}:reject", build_body(change, **fields))

    assert (response.status_code, response.json()["code"]) == (status, code)


def test_a_read_only_standby_refuses_actions(console: ConsoleClient) -> None:
    change = find_change(console, "install gateway v1")
    console.context.state.is_read_only = True
    response = console.post_json(f"{API_PREFIX}/changes/{change['key']}:approve", build_body(change))

    assert (response.status_code, response.json()["code"]) == (409, "ReadOnly")
    assert response.json()["nextStep"] == "Send the request to the daemon that runs without --read-only."
