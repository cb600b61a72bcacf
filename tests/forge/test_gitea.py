"""The behavior of Gitea only: the search for a pull request, heads by label, conflicts like moves, and label IDs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.forge.errors import ForgeAnswerError, ForgeRefusedError, ForgeUnreachableError, HeadMovedError
from reconciler.forge.gitea import Gitea
from reconciler.forge.http_client import MAX_PAGES
from reconciler.forge.port import Forge
from reconciler.forge.text_escaping import GITEA_DRAFT
from tests.support.fake_forge.core import ReviewState
from tests.support.fake_forge.gitea import GiteaWire
from tests.support.fake_forge.scene import BASE, HEAD, NEW, Scene, answer_client, open_scene
from tests.support.git_repositories import git

PULLS = "/repos/acme/fleet/pulls"
READY = replace(NEW, draft=False)
PULL: dict[str, Any] = {
    "number": 1,
    "title": "WIP: east",
    "body": None,
    "state": "open",
    "merged": False,
    "created_at": "2026-01-02T03:04:05+01:00",
    "updated_at": "2026-01-02T03:04:05Z",
    "html_url": "https://gitea.example/acme/fleet/pulls/1",
    "base": {"label": BASE, "ref": BASE, "sha": "2" * 40, "repo_id": 3},
    "head": {"label": HEAD, "ref": HEAD, "sha": "1" * 40, "repo_id": 3},
}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with open_scene("gitea", tmp_path) as opened:
        yield opened


def wire_of(scene: Scene) -> GiteaWire:
    assert isinstance(scene.wire, GiteaWire)
    return scene.wire


def build_driver(answer: httpx.Response) -> Forge:
    """Return a driver that receives the same response to each request."""
    return Gitea(answer_client(answer), "acme", "fleet")


def open_many(scene: Scene, count: int) -> None:
    """Open pull requests into another base, and the first and the last but one of `HEAD` into `BASE`."""
    git(scene.repository.bare, "update-ref", "refs/heads/other", f"refs/heads/{BASE}")
    refs = "".join(f"create refs/heads/x/{n} {scene.commit(HEAD)}\n" for n in range(count))
    git(scene.repository.bare, "update-ref", "--stdin", stdin=refs.encode())
    for number in range(count):
        if number in {0, count - 2}:
            scene.driver.close(scene.driver.create(NEW))
        else:
            scene.repository.open(f"x/{number}", "other", str(number), "", draft=False)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("filters", "oldest_first", "pages"),
    [
        pytest.param(True, False, 1, id="of-one-base-the-newest-first"),
        pytest.param(False, False, 1, id="of-all-bases-before-1.24"),
        pytest.param(True, True, 2, id="the-oldest-first"),
        pytest.param(False, True, 4, id="of-all-bases-the-oldest-first"),
    ],
)
def test_the_one_that_was_opened_last_is_found(scene: Scene, filters: bool, oldest_first: bool, pages: int) -> None:
    open_many(scene, 8)
    wire = wire_of(scene)
    wire.filters, wire.oldest_first, wire.most = filters, oldest_first, 3

    calls = scene.calls_of(lambda: scene.driver.find(HEAD, BASE))
    pull_request = scene.driver.find(HEAD, BASE)

    assert pull_request is not None
    assert pull_request.number == 7
    assert calls == [("GET", f"/api/v1{PULLS}")] * pages
    assert scene.driver.find("x/1", BASE) is None


def test_a_list_without_an_end_is_given_up() -> None:
    with pytest.raises(ForgeAnswerError, match=f"more than {MAX_PAGES} pages"):
        build_driver(httpx.Response(200, json=[PULL])).find("another", BASE)


def test_a_request_of_agit_has_no_branch() -> None:
    agit = {**PULL, "head": {"label": "", "ref": "refs/pull/1/head", "sha": "1" * 40, "repo_id": 3}}

    assert list(build_driver(httpx.Response(200, json=[agit])).list_open_requests()) == []
    assert [
        pull_request.head for pull_request in build_driver(httpx.Response(200, json=[PULL])).list_open_requests()
    ] == [HEAD]


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        pytest.param("WIP: east", "east", id="ours"),
        pytest.param("[WIP] east", "east", id="brackets"),
        pytest.param("wip:[wip]east", "east", id="both-and-small"),
        pytest.param("WIP east", "WIP east", id="no-mark"),
    ],
)
def test_marks_of_drafts(title: str, bare: str) -> None:
    shown = build_driver(httpx.Response(200, json={**PULL, "title": title})).get_request
    # Versions without the field `draft` mark a draft in its title.
    draft = title != bare

    assert GITEA_DRAFT.strip(title) == bare
    if draft:
        assert (shown(1).title, shown(1).draft) == (bare, True)
    assert GITEA_DRAFT.apply(title, draft=True) == f"WIP: {bare}"


@pytest.mark.parametrize(
    ("reviews", "pushed", "hold"),
    [
        pytest.param([("ada", "APPROVED")], False, "approved", id="approved"),
        pytest.param([("ada", "APPROVED")], True, "", id="an-older-head"),
        pytest.param([("ada", "APPROVED"), ("bo", "CHANGES_REQUESTED")], False, "", id="changes-requested"),
        pytest.param([("ada", "CHANGES_REQUESTED"), ("ada", "APPROVED")], False, "approved", id="convinced"),
        pytest.param([("ada", "APPROVED"), ("ada", "COMMENTED")], False, "approved", id="a-comment-takes-nothing"),
        pytest.param([("ada", "APPROVED"), ("ada", "DISMISSED")], False, "", id="dismissed"),
        pytest.param([], False, "", id="no-review"),
    ],
)
def test_reviews(scene: Scene, reviews: list[tuple[str, ReviewState]], pushed: bool, hold: str) -> None:
    scene.driver.create(READY)
    for user, state in reviews:
        scene.repository.review(1, user, state)
    if pushed:
        scene.push(data=b"1.3")

    assert scene.driver.get_request(1).hold == hold


def test_a_base_that_moved_meanwhile_is_tried_again(scene: Scene) -> None:
    pull_request = scene.driver.create(READY)
    wire_of(scene).base_moves = True

    with pytest.raises(ForgeUnreachableError, match="merge push out of date"):
        scene.driver.merge(pull_request, "merge", "m")

    scene.driver.merge(pull_request, "merge", "m")
    assert scene.driver.get_request(1).state == "merged"


@pytest.mark.parametrize(
    ("now", "kind", "words"),
    [
        pytest.param({}, ForgeRefusedError, "409 PushRejected", id="a-hook-or-a-conflict"),
        pytest.param(
            {"head": {**PULL["head"], "sha": "4" * 40}},
            HeadMovedError,
            "the head of the pull request is 4444",
            id="it-moved",
        ),
        pytest.param(
            {"merged": True, "state": "closed"}, ForgeRefusedError, "the pull request is merged", id="already-merged"
        ),
    ],
)
def test_one_number_for_many_refusals(now: dict[str, Any], kind: type[ForgeRefusedError], words: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(409, json={"message": "PushRejected without remote error message"})
        return httpx.Response(200, json={**PULL, **now})

    pull_request = build_driver(httpx.Response(200, json=PULL)).get_request(1)

    with pytest.raises(ForgeRefusedError, match=words) as error:
        Gitea(answer_client(answer), "acme", "fleet").merge(pull_request, "merge", "m")

    assert type(error.value) is kind


def test_without_a_head_nothing_is_merged() -> None:
    # Gitea merges the current head without this check.
    deleted = {**PULL, "head": {**PULL["head"], "sha": ""}}
    driver = build_driver(httpx.Response(200, json=deleted))

    with pytest.raises(HeadMovedError, match="no head"):
        driver.merge(driver.get_request(1), "merge", "m")


def test_a_message_has_a_title(scene: Scene) -> None:
    pull_request = scene.driver.create(READY)

    scene.driver.merge(pull_request, "squash", "east: api 1.2\n\nOne.\n\nTwo.\n")

    assert git(scene.repository.bare, "log", "-1", "--format=%B", BASE) == "east: api 1.2\n\nOne.\n\nTwo."


def test_labels_that_are_missing_are_named(scene: Scene) -> None:
    wire_of(scene).most = 1
    scene.repository.label("api")
    scene.repository.label("fleet")

    with pytest.raises(ForgeRefusedError, match=r"missing: \['blue', 'red'\]"):
        scene.driver.create(replace(NEW, labels=("fleet", "blue", "red")))

    assert scene.repository.requests() == []


def test_a_name_is_no_way_to_another_place() -> None:
    values: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        values.append(request.url.raw_path.decode())
        return httpx.Response(200, json=[])

    Gitea(answer_client(answer), "a/../b", "c?d").list_open_requests()

    assert values == ["/api/repos/a%2F..%2Fb/c%3Fd/pulls?state=open&limit=50"]


@pytest.mark.parametrize(
    ("path", "value"), [("number", None), ("merged", "no"), ("base", []), ("head", {"label": 1}), ("title", None)]
)
def test_a_field_of_another_kind_is_named(path: str, value: object) -> None:
    with pytest.raises(ForgeAnswerError, match=rf"GET .*/1: {path}[a-z.]* must be"):
        build_driver(httpx.Response(200, json={**PULL, path: value})).get_request(1)


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        pytest.param("POST", PULLS, {"title": "t"}, r"\[head\]: Required", id="a-field-is-missing"),
        pytest.param("PATCH", f"{PULLS}/1", {"draft": False}, r"\[draft\]: Unknown", id="a-field-of-another-product"),
        pytest.param("PATCH", f"{PULLS}/1", {"title": 1}, r"\[title\]: Kind", id="a-field-of-another-kind"),
        pytest.param("PATCH", f"{PULLS}/1", {"title": "x" * 256}, "MaxSize", id="a-long-title"),
        pytest.param("POST", f"{PULLS}/1/merge", {"Do": "octopus"}, r"\[Do\]: In", id="an-unknown-value"),
        pytest.param("GET", f"{PULLS}?head=x", {}, "unknown parameters", id="an-unknown-parameter"),
        pytest.param("GET", "/repos/acme/other/pulls", {}, "couldn't be found", id="an-unknown-repository"),
    ],
)
def test_the_fake_is_strict(scene: Scene, method: str, path: str, body: dict[str, Any], words: str) -> None:
    scene.driver.create(NEW)

    with pytest.raises(Exception, match=words):
        scene.client.get(path) if method == "GET" else scene.client.send(method, path, body)
