"""The page for an unexpected exception: it has the ID of the request, and no details."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from reconciler.review.activity_lists import ActivityLists
from tests.support.console import ConsoleClient, strip_tags


def fail() -> NoReturn:
    raise RuntimeError("secret detail")


@pytest.fixture
def console(drafted_console: ConsoleClient) -> Iterator[ConsoleClient]:
    """A console whose page of the activity fails."""
    context = drafted_console.context
    drafted_console.context = replace(context, activity=ActivityLists(fail))
    yield drafted_console
    drafted_console.context = context


def test_a_person_gets_a_page_with_the_id_of_the_request(console: ConsoleClient) -> None:
    with capture_logs() as log_events:
        response = console.get("/activity", accept="text/html", x_request_id="r-17<b>", cookie="appearance=dark.x")
        later = console.get("/targets", accept="text/html")
    failed = [event for event in log_events if event["event"] == "http_request_failed"]

    assert (response.status_code, later.status_code) == (500, 200)
    assert "The page cannot be shown" in response.text
    assert "with the ID of the request: r-17<b> Show the first page" in strip_tags(response.text)
    assert "<b>" not in response.text
    assert 'data-theme="dark"' in response.text
    assert "secret" not in response.text
    assert "content-security-policy" in response.headers
    assert [(event["path"], event["request_id"]) for event in failed] == [("/activity", "r-17<b>")]


def test_a_program_gets_no_page(console: ConsoleClient) -> None:
    with capture_logs() as log_events:
        response = console.get("/activity.json", accept="application/json")
    (failed,) = (event for event in log_events if event["event"] == "http_request_failed")

    assert (response.status_code, response.content) == (500, b"")
    assert len(failed["request_id"]) == 16
