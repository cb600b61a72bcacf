"""The ID of a request: it is in the response, in the log, and in the messages about failed parts of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from structlog.testing import capture_logs

from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.server.application import create_app
from reconciler.server.console.finding_groups import group_findings
from reconciler.server.limits import ServerLimits
from reconciler.server.request_ids import read_request_id
from reconciler.server.request_origin import build_origin_rules
from reconciler.telemetry.event_log import log
from tests.support.asgi_client import request
from tests.support.console import ConsoleClient, strip_tags
from tests.support.fleet_index import create_index

RULES = build_origin_rules("127.0.0.1:8080", (), "", ())


def send_ids(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{read_request_id(request)} {read_request_id(request)} {log.request_id}")


async def send_ids_without_a_thread(request: Request) -> PlainTextResponse:
    return send_ids(request)


def fail(_request: Request) -> NoReturn:
    raise RuntimeError("secret")


APP = create_app(
    [Route("/thread", send_ids), Route("/task", send_ids_without_a_thread), Route("/fail", fail)], ServerLimits(),
    lambda: RULES,
)  # fmt: skip


@pytest.mark.parametrize("path", ["/thread", "/task"])
def test_all_parts_of_a_request_have_one_id(path: str) -> None:
    texts = [request(APP, path).text.split() for _ in range(2)]

    assert [len(set(ids)) for ids in texts] == [1, 1]
    assert texts[0] != texts[1]
    assert log.request_id == ""


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param("run-7", "run-7", id="sent"),
        pytest.param("a\tb", "ab", id="control-characters"),
        pytest.param("x" * 200, "x" * 100, id="long"),
    ],
)
def test_a_client_can_send_the_id(sent: str, expected: str, drafted_console: ConsoleClient) -> None:
    assert request(APP, "/task", x_request_id=sent).text.split() == [expected] * 3
    assert drafted_console.get("/system", x_request_id=sent).headers["x-request-id"] == expected


def test_a_public_path_does_not_send_the_id_of_a_failed_request() -> None:
    with capture_logs() as events:
        response = request(APP, "/fail", x_request_id="run-8")
    (event,) = (event for event in events if event["event"] == "http_request_failed")

    assert event["request_id"] == "run-8"
    assert (response.status_code, response.text, "x-request-id" in response.headers) == (500, "", False)


class Failing:
    """A reader whose repository cannot be read."""

    def _fail(self, *_arguments: object, **_options: object) -> NoReturn:
        raise GitError("the disk is full")

    read = list_resources = compare = _fail
    __call__ = _fail

    def find(self, *_arguments: object) -> None:
        """Return no content, because none is in memory."""


PACKAGE = "/targets/berlin/packages/gateway"
PAGES: Mapping[str, str] = {
    "package": PACKAGE,
    "resources-of-a-target": "/targets/berlin?view=resources",
    "comparison": "/targets/berlin?compare=lisbon&package=gateway",
}


@pytest.mark.emits("page_part_failed")
@pytest.mark.parametrize("name", [*PAGES, "finding", "change"])
def test_a_failed_part_has_the_id_and_all_other_parts_are_shown(name: str, drafted_console: ConsoleClient) -> None:
    context, index = drafted_console.context, drafted_console.context.index
    assert index is not None
    finding = Finding("Broken", "m", SourceLocation("a.yaml", 1))
    (group,) = group_findings([finding])
    pages = {**PAGES, "finding": f"/findings/{group.id}", "change": f"/changes/{index.changes[0].key}"}
    failing = Failing()
    config = replace(context.config, read_file=failing)
    drafted_console.context = replace(context, packages=failing, contents=failing, config=config)
    drafted_console.context.index_thread.index = create_index(index.targets, [finding])
    with capture_logs() as events:
        response = drafted_console.get(pages[name], x_request_id="run-9")
    drafted_console.context = context
    drafted_console.context.index_thread.index = index

    text = response.text
    message = re.search(r'<p class="banner error" role="status">(.*?)</p>', text)
    assert message is not None
    assert "the disk is full" in message[1]
    assert strip_tags(message[1]).endswith("Try again Request ID: run-9")
    assert f'href="{pages[name].replace("&", "&amp;")}' in message[1]
    assert response.status_code == 200
    assert "</h1>" in text
    assert sum(event["event"] == "page_part_failed" for event in events) == 1
