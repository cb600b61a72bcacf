"""The behavior of GitLab only: commands in bodies, approvals without commits, cursors, and errors with the same status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import ForgeAnswerError, ForgeCredentialsError, ForgeRefusedError, HeadMovedError
from reconciler.forge.gitlab import GitLab
from reconciler.forge.port import Forge, Verdict
from reconciler.forge.text_escaping import GITLAB_DRAFT, escape_commands, unescape_commands
from tests.support.fake_forge.gitlab import GitLabWire
from tests.support.fake_forge.scene import BASE, HEAD, NEW, Scene, answer_client, open_scene
from tests.support.git_repositories import git

REQUESTS = "/projects/acme%2Ffleet/merge_requests"
READY = replace(NEW, draft=False)
MERGE_REQUEST: dict[str, Any] = {
    "iid": 1,
    "title": "Draft: east",
    "description": None,
    "state": "opened",
    "created_at": "2026-01-02T03:04:05.678+01:00",
    "updated_at": "2026-01-02T03:04:05.678Z",
    "source_branch": HEAD,
    "target_branch": BASE,
    "source_project_id": 3,
    "target_project_id": 3,
    "draft": True,
    "merge_when_pipeline_succeeds": False,
    "sha": "1" * 40,
    "web_url": "https://gitlab.example/acme/fleet/-/merge_requests/1",
}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with open_scene("gitlab", tmp_path) as opened:
        yield opened


def wire_of(scene: Scene) -> GitLabWire:
    assert isinstance(scene.wire, GitLabWire)
    return scene.wire


def build_driver(answer: httpx.Response) -> Forge:
    """Return a driver that receives the same response to each request."""
    return GitLab(answer_client(answer), "acme/fleet")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("/close", id="at-once"),
        pytest.param("first\n/merge\n/label ~x", id="between"),
        pytest.param("first\n  /merge", id="after-blanks"),
        pytest.param("```\ncode\n```\n/approve", id="after-code"),
        pytest.param("```\n/usr/bin\n```", id="a-path-in-code"),
    ],
)
def test_a_body_gives_no_commands(scene: Scene, body: str) -> None:
    pull_request = scene.driver.create(replace(NEW, body=body))
    scene.driver.update(pull_request, "title", f"{body}\n{body}")

    assert pull_request.body == body
    assert scene.driver.get_request(1).body == f"{body}\n{body}"
    assert scene.driver.get_request(1).state == "open"
    assert wire_of(scene).commands == []


def test_carriage_returns_hide_no_command(scene: Scene) -> None:
    pull_request = scene.driver.create(replace(NEW, body="\r/close\r\n/merge\n\r\r/merge  \r\n"))

    assert pull_request.body == "/close\n/merge\n/merge"
    assert wire_of(scene).commands == []


def test_the_fake_does_what_a_body_says(scene: Scene) -> None:
    scene.driver.create(NEW)

    scene.client.send("PUT", f"{REQUESTS}/1", {"description": "first\n/close\n"})

    assert wire_of(scene).commands == ["/close"]
    assert (scene.driver.get_request(1).state, scene.driver.get_request(1).body) == ("closed", "first")


@given(st.text(alphabet="/ a\n`"))
def test_a_body_comes_back_as_it_was(body: str) -> None:
    guarded = escape_commands(body)

    assert unescape_commands(guarded) == body
    assert not any(line.startswith("/") for line in guarded.split("\n"))


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        pytest.param("Draft: east", "east", id="ours"),
        pytest.param("[DRAFT] draft:(Draft) east", "east", id="all-of-them"),
        pytest.param("drafts: east", "drafts: east", id="another-word"),
        pytest.param("east Draft: x", "east Draft: x", id="not-at-the-start"),
    ],
)
def test_marks_of_drafts(title: str, bare: str) -> None:
    assert GITLAB_DRAFT.strip(title) == bare
    assert GITLAB_DRAFT.matches(title) == (title != bare)
    assert GITLAB_DRAFT.apply(title, draft=True) == f"Draft: {bare}"
    assert GITLAB_DRAFT.apply(title, draft=False) == bare


@pytest.mark.parametrize(
    ("required", "users", "hold"),
    [
        pytest.param(0, [], "", id="no-rule-and-no-approval"),
        pytest.param(0, ["ada"], "approved", id="no-rule"),
        pytest.param(2, ["ada"], "", id="one-is-lacking"),
        pytest.param(2, ["ada", "bo"], "approved", id="enough"),
    ],
)
def test_an_approval_counts_when_none_is_lacking(scene: Scene, required: int, users: list[str], hold: str) -> None:
    wire_of(scene).approvals_required = required
    scene.driver.create(READY)
    for user in users:
        scene.repository.review(1, user, "APPROVED")

    assert scene.driver.get_request(1).hold == hold


def test_approvals_stay_after_a_push_unless_the_project_resets_them(scene: Scene) -> None:
    scene.driver.create(READY)
    scene.repository.review(1, "ada", "APPROVED")

    scene.push(data=b"1.3")

    assert scene.driver.get_request(1).hold == "approved"


def test_one_request_is_asked_for_its_approvals_anew(scene: Scene) -> None:
    scene.driver.create(READY)
    scene.clock.now += 61
    scene.driver.list_open_requests()
    request = scene.repository.request(1)

    # The note that changes the date follows the approval.
    scene.repository.review(1, "ada", "APPROVED")
    request.updated = request.created

    assert [pull_request.hold for pull_request in scene.driver.list_open_requests()] == [""]
    assert scene.driver.get_request(1).hold == "approved"


def test_a_draft_may_be_set_to_merge_by_itself(scene: Scene) -> None:
    scene.driver.create(NEW)
    scene.repository.request(1).auto_merge = True

    assert scene.driver.get_request(1).hold == "auto-merge"


def test_a_request_while_it_is_merged(scene: Scene) -> None:
    scene.driver.create(READY)
    wire_of(scene).merging.add(1)

    pull_request = scene.driver.find(HEAD, BASE)

    assert pull_request is not None
    assert (pull_request.state, pull_request.hold) == ("open", "queued")


def test_a_list_that_goes_on_from_a_cursor(scene: Scene) -> None:
    wire_of(scene).keyset, wire_of(scene).most = True, 2
    for name in ("a", "b", "c", "d", "e"):
        scene.push(f"drafts/{name}")
        scene.repository.open(f"drafts/{name}", BASE, name, "", draft=True)

    assert [request.title for request in scene.driver.list_open_requests()] == ["a", "b", "c", "d", "e"]


def test_a_project_in_groups(scene: Scene) -> None:
    scene.forge.create_repository("acme/teams/fleet")
    driver = GitLab(scene.client, "acme/teams/fleet")

    assert list(driver.list_open_requests()) == []
    assert scene.forge.calls[-1] == ("GET", "/api/v4/projects/acme%2Fteams%2Ffleet/merge_requests")


def test_an_account_that_may_not_merge(scene: Scene) -> None:
    pull_request = scene.driver.create(READY)
    wire_of(scene).may_merge = False

    with pytest.raises(ForgeRefusedError, match=f"401 .*has no permission to merge into {BASE}"):
        scene.driver.merge(pull_request, "merge", "m")

    scene.token_file.write_text("another")
    with pytest.raises(ForgeCredentialsError):
        scene.driver.merge(pull_request, "merge", "m")


def test_a_squash_has_the_message(scene: Scene) -> None:
    pull_request = scene.driver.create(READY)

    scene.driver.merge(pull_request, "squash", "")
    usual = git(scene.repository.bare, "log", "-1", "--format=%s", BASE)
    scene.push(path="other")
    scene.driver.merge(scene.driver.create(READY), "squash", "ours\n\nwith more")

    assert usual == f"Merge branch '{HEAD}' into '{BASE}'"
    assert git(scene.repository.bare, "log", "-1", "--format=%B", BASE) == "ours\n\nwith more"


@pytest.mark.parametrize(
    ("status", "content", "kind", "words"),
    [
        pytest.param(409, {"message": "SHA does not match HEAD"}, HeadMovedError, "SHA does", id="the-head-moved"),
        pytest.param(405, {"message": "405 Method Not Allowed"}, ForgeRefusedError, "405 M", id="not-allowed"),
        pytest.param(406, {"message": "Branch cannot be merged"}, ForgeRefusedError, "Branch c", id="older-conflict"),
        pytest.param(422, {"message": "Branch cannot be merged"}, ForgeRefusedError, "Branch c", id="conflict"),
        pytest.param(400, {"message": {"title": ["is too long"]}}, ForgeRefusedError, "title is too", id="a-field"),
        pytest.param(400, {"error": "sha is invalid"}, ForgeRefusedError, "sha is inv", id="a-parameter"),
    ],
)
def test_refusals_of_a_merge(status: int, content: object, kind: type[ForgeRefusedError], words: str) -> None:
    pull_request = build_driver(httpx.Response(200, json=MERGE_REQUEST)).get_request(1)

    with pytest.raises(ForgeRefusedError, match=words) as error:
        build_driver(httpx.Response(status, json=content)).merge(pull_request, "merge", "m")

    assert type(error.value) is kind


@pytest.mark.parametrize(
    ("words", "silent"),
    [
        pytest.param(
            "Cannot transition status via :succeed from :success (Reason(s): …)", True, id="status-already-set"
        ),
        pytest.param("Cannot transition status via :succeed from :failed", False, id="another-state"),
        pytest.param("from :success", False, id="other-words"),
    ],
)
def test_a_status_that_is_already_set(words: str, silent: bool) -> None:
    driver = build_driver(httpx.Response(400, json={"message": words}))
    commit, passed = CommitId("1" * 40), Verdict(passed=True, summary="")

    if silent:
        driver.set_check(commit, passed)
    else:
        with pytest.raises(ForgeRefusedError, match="from :"):
            driver.set_check(commit, passed)


def test_what_gitlab_shows() -> None:
    request = build_driver(httpx.Response(200, json=MERGE_REQUEST)).get_request(1)

    assert (request.title, request.body, request.draft) == ("east", "", True)
    assert request.created == 1_767_319_445
    pull_request = build_driver(
        httpx.Response(200, json={**MERGE_REQUEST, "sha": None, "state": "closed"})
    ).get_request(1)
    assert (pull_request.commit, pull_request.state) == ("", "closed")


@pytest.mark.parametrize(
    ("name", "value"),
    [("iid", "1"), ("iid", True), ("draft", None), ("state", 1), ("created_at", "yesterday"), ("web_url", None)],
)
def test_a_field_of_another_kind_is_named(name: str, value: object) -> None:
    with pytest.raises(ForgeAnswerError, match=rf"GET .*/1: {name} must be"):
        build_driver(httpx.Response(200, json={**MERGE_REQUEST, name: value})).get_request(1)


def test_a_label_has_no_comma(scene: Scene) -> None:
    with pytest.raises(ForgeRefusedError, match="not contain a comma: 'a,b'"):
        scene.driver.create(replace(NEW, labels=("a,b",)))

    assert scene.repository.requests() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        pytest.param("POST", REQUESTS, {"title": "t"}, "source_branch is missing", id="a-field-is-missing"),
        pytest.param("PUT", f"{REQUESTS}/1", {"body": "b"}, "body is not known", id="a-field-of-another-product"),
        pytest.param("PUT", f"{REQUESTS}/1", {"title": 1}, "title is invalid", id="a-field-of-another-kind"),
        pytest.param("PUT", f"{REQUESTS}/1", {"title": "x" * 256}, "title is too long", id="a-long-title"),
        pytest.param("PUT", f"{REQUESTS}/1", {"state_event": "merge"}, "state_event does not", id="an-unknown-value"),
        pytest.param("GET", f"{REQUESTS}?base=x", {}, "base is not known", id="an-unknown-parameter"),
        pytest.param("GET", "/projects/acme/fleet/merge_requests", {}, "404", id="a-path-that-is-not-encoded"),
    ],
)
def test_the_fake_is_strict(scene: Scene, method: str, path: str, body: dict[str, Any], words: str) -> None:
    scene.driver.create(NEW)

    with pytest.raises(Exception, match=words):
        scene.client.get(path) if method == "GET" else scene.client.send(method, path, body)
