"""Compressed responses, entity tags of pages, and tokens that compression does not reveal."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, find_value, open_console
from tests.support.prepared_worlds import begin, drafted

FROM_INDEX = [
    "/",
    "/changes",
    "/targets?view=matrix",
    "/targets/berlin",
    "/findings",
    "/activity",
    "/activity.csv",
    "/search?q=gateway",
]
LIVE = ["/system", "/targets/berlin/packages/gateway"]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    return client


@pytest.mark.parametrize("path", FROM_INDEX)
def test_an_unchanged_page_is_not_sent_again(path: str, console: ConsoleClient) -> None:
    first = console.get(path)
    tag = first.headers["etag"]
    again = console.get(path, if_none_match=f'"other", {tag}')
    other = console.get(f"{path}{'&' if '?' in path else '?'}page=2", if_none_match=tag)

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert other.status_code == 200
    assert other.headers["etag"] != tag


def test_a_new_pass_changes_the_tags_of_pages(console: ConsoleClient) -> None:
    before = console.get("/").headers["etag"]
    console.update()

    assert console.get("/", if_none_match=before).status_code == 200


def test_another_person_gets_another_tag(console: ConsoleClient) -> None:
    tag = console.get("/").headers["etag"]
    viewer = Session(ADA, Permissions((RoleRule("viewer"),)), "s-1")
    tags = [tag]
    context = console.context
    for session in (viewer, replace(viewer, id="s-2")):
        console.context = replace(context, authenticator=FixedSession(session))
        tags.append(console.get("/", if_none_match=tag).headers["etag"])
    console.context = context

    assert len(set(tags)) == 3


class FixedSession:
    """Identifies each request as a request of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
        return self._session


@pytest.mark.parametrize("path", LIVE)
def test_a_page_with_other_data_has_no_tag(path: str, console: ConsoleClient) -> None:
    response = console.get(path)

    assert response.status_code == 200
    assert "etag" not in response.headers


@pytest.mark.slow
def test_a_change_that_cannot_be_read_has_no_tag(tmp_path: Path) -> None:
    console = open_console(begin(tmp_path, drafted))
    console.update()
    index = console.context.index
    assert index is not None
    paths = {change.title: f"/changes/{change.key}" for change in index.changes}
    console.world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    console.world.observe_pass()

    assert "etag" not in console.get(paths["install metrics v1"]).headers


@pytest.mark.parametrize(
    ("path", "is_compressed"),
    [
        pytest.param("/changes", True, id="page"),
        pytest.param("/static/console.css", True, id="static-file"),
        pytest.param("/api/v1/changes", True, id="api"),
        pytest.param("/static/icon.svg", False, id="small-file"),
    ],
)
def test_responses_above_one_kilobyte_are_compressed(path: str, is_compressed: bool, console: ConsoleClient) -> None:
    compressed = console.get(path, accept_encoding="gzip")
    plain = console.get(path, accept_encoding="identity")

    assert compressed.headers.get("content-encoding") == ("gzip" if is_compressed else None)
    assert "content-encoding" not in plain.headers
    if is_compressed:
        assert compressed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
        assert int(compressed.headers["content-length"]) < len(plain.content) / 2


def test_compression_does_not_reveal_the_token_of_a_form(console: ConsoleClient) -> None:
    index = console.context.index
    assert index is not None
    pages = [console.get(f"/changes/{index.changes[0].key}").text for _ in range(2)]
    tokens = [find_value(page, "csrf") for page in pages]
    statuses = [console.post("/system/pass", {"csrf": token}).status_code for token in tokens]
    # Only the text that a page itself contains makes the compressed page smaller.
    sizes = [len(gzip.compress(page.encode() + token[:32].encode())) for page in pages for token in tokens]

    assert len(set(tokens)) == 2
    assert statuses == [303, 303]
    assert sizes[0] < sizes[1]
    assert sizes[3] < sizes[2]


@pytest.mark.parametrize("token", ["", "0" * 128, "é" * 128, "0x", "00" * 65, "g" * 128])
def test_other_texts_are_not_tokens(token: str, console: ConsoleClient) -> None:
    assert console.post("/system/pass", {"csrf": token}).status_code == 403
