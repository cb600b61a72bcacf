"""Tests of the stream of events: a new index is announced, streams are limited, and a closed stream is free again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reconciler.catalog.files import CommitId
from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.model import FleetIndex
from reconciler.review.people import Reviewer
from reconciler.review.review_job import JobItem, JobState, ReviewJob
from reconciler.review.review_requests import ConfirmedDraft
from reconciler.server.console.events import EventFeed, EventStreams
from reconciler.server.console.topics import build_target_topic, compute_version
from reconciler.service.fleet_view import FleetView, PassRecord
from tests.support.fleet_index import create_index, create_target

DRAFT = ConfirmedDraft("lisbon", "web", "drafts/lisbon", CommitId("1"), CommitId("2"), "c", "d", "v", "low")
JOB = ReviewJob(
    "abc", "approve", Reviewer("Ana", "ana@example.com"), "", "r", "c", "k", 1.0,
    (JobItem((DRAFT,)), JobItem((DRAFT,), "done")),
)  # fmt: skip
FIRST, SECOND = (FleetIndex(number, 1_700_000_000, "41ab") for number in (1, 2))


def create_request(is_disconnected: Callable[[], bool], last_event: str = "", query: str = "") -> Request:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"} if is_disconnected() else await asyncio.Event().wait()  # type: ignore[return-value]

    headers = [(b"last-event-id", last_event.encode())] if last_event else []
    return Request({"type": "http", "headers": headers, "query_string": query.encode()}, receive)


def create_feed(read: Callable[[], FleetIndex | None], is_open: Callable[[], bool] = lambda: True) -> EventFeed:
    """Return a feed whose person may read the whole index."""
    current: list[FleetIndex | None] = [None]

    def get_number() -> int | None:
        current[0] = read()
        return current[0].number if current[0] else None

    return EventFeed(is_open, get_number, lambda: current[0])


async def read_chunks(response: Response) -> list[str]:
    assert isinstance(response, StreamingResponse)
    return [str(chunk) async for chunk in response.body_iterator]


def read_events(streams: EventStreams, indexes: list[FleetIndex | None], last_event: str = "") -> list[str]:
    """Return the chunks of a stream whose client leaves after the last index."""
    remaining = list(indexes)

    async def read() -> list[str]:
        request = create_request(lambda: not remaining, last_event)
        return await read_chunks(streams.open(request, create_feed(lambda: remaining.pop(0))))

    return asyncio.run(read())


def test_each_new_index_is_one_event() -> None:
    chunks = read_events(EventStreams(poll_seconds=0), [None, FIRST, FIRST, SECOND, SECOND])

    assert [chunk.splitlines()[:2] for chunk in chunks] == [["id: 1.0", "event: view"], ["id: 2.0", "event: view"]]
    assert chunks[0].splitlines()[2] == 'data: {"view": 1, "version": "1700000000.1", "changes": 0, "blocked": 0}'


def test_a_client_that_connects_again_gets_only_newer_indexes() -> None:
    assert read_events(EventStreams(poll_seconds=0), [FIRST, FIRST], last_event="1.0") == []


def test_a_pass_without_a_new_index_is_an_event_with_the_time_of_the_pass() -> None:
    record = PassRecord(1_700_000_000, 60.0, "degraded")
    views = [FleetView(1, 0.0, record, "41ab"), FleetView(2, 0.0, record, "41ab")]

    async def read() -> list[str]:
        feed = EventFeed(lambda: bool(views), lambda: 1, lambda: FIRST, lambda: views[0])
        streams = EventStreams(poll_seconds=0)
        chunks = []
        response = streams.open(create_request(lambda: False), feed)
        assert isinstance(response, StreamingResponse)
        async for chunk in response.body_iterator:
            chunks.append(str(chunk))
            views.pop(0)
        return chunks

    chunks = asyncio.run(read())

    assert [chunk.splitlines()[0] for chunk in chunks] == ["id: 1.1", "id: 1.2"]
    assert '"view": 1' in chunks[1]
    assert '"passAt": "2023-11-14T22:14:20Z", "passResult": "degraded"' in chunks[1]


def test_an_event_contains_the_version_of_the_topics_of_the_page() -> None:
    target = build_target_topic("lisbon, east")
    first = create_index([create_target("lisbon, east", {}), create_target("porto", {})], number=1)
    indexes = [first, replace(first, number=2), create_index([create_target("porto", {})], number=3), None]
    query = urlencode({"topics": f"{target},job:abc"})

    async def read() -> list[str]:
        request = create_request(lambda: len(indexes) == 1, query=query)
        return await read_chunks(EventStreams(poll_seconds=0).open(request, create_feed(lambda: indexes.pop(0))))

    chunks = asyncio.run(read())
    versions = [json.loads(chunk.splitlines()[2].removeprefix("data: "))["version"] for chunk in chunks]

    assert versions == [compute_version(index, [target]) for index in (first, first, replace(first, targets=()))]
    assert versions[1] != versions[2]


def test_the_part_that_a_person_may_read_is_built_once_for_each_index() -> None:
    numbers, built = [1, 1, 1, 2, 2], []

    def build() -> FleetIndex:
        built.append([FIRST, SECOND][len(built)])
        return built[-1]

    async def read() -> list[str]:
        feed = EventFeed(lambda: bool(numbers), lambda: numbers.pop(0), build)
        return await read_chunks(EventStreams(poll_seconds=0).open(create_request(lambda: False), feed))

    assert len(asyncio.run(read())) == 2
    assert built == [FIRST, SECOND]


def read_job_events(states: list[JobState | None], query: str) -> list[str]:
    """Return the chunks of a stream while the job has these states. None is a job that the person cannot read."""
    remaining = list(states)

    def find_job(job_id: str) -> ReviewJob | None:
        state = remaining.pop(0)
        return replace(JOB, id=job_id, state=state) if state else None

    async def read() -> list[str]:
        feed = EventFeed(lambda: bool(remaining), lambda: None, lambda: None, get_job=find_job)
        request = create_request(lambda: not remaining, query=query)
        return await read_chunks(EventStreams(poll_seconds=0).open(request, feed))

    return asyncio.run(read())


def test_each_change_of_a_job_is_one_event() -> None:
    chunks = read_job_events([None, "waiting", "waiting", "completed", "completed", None], "topics=fleet,job:abc")

    assert chunks == [
        f'event: job\ndata: {{"state": "{state}", "waiting": 1, "done": 1, "skipped": 0, "failed": 0}}\n\n'
        for state in ("waiting", "completed")
    ]


def test_a_stream_ends_when_its_console_is_replaced() -> None:
    remaining = [FIRST, FIRST, FIRST]
    feed = create_feed(remaining.pop, lambda: len(remaining) > 1)

    async def read() -> list[str]:
        return await read_chunks(EventStreams(poll_seconds=0).open(create_request(lambda: False), feed))

    assert len(asyncio.run(read())) == 1
    assert len(remaining) == 1


def test_streams_above_the_limit_are_refused_until_another_ends() -> None:
    streams = EventStreams(max_streams=1, poll_seconds=0)
    feed = create_feed(lambda: FIRST)

    async def check() -> None:
        first = streams.open(create_request(lambda: True), feed)
        with pytest.raises(HTTPException) as refused:
            streams.open(create_request(lambda: True), feed)
        await send_to_client_that_left(first)
        assert refused.value.status_code == 503
        assert streams.open(create_request(lambda: True), feed).status_code == 200

    asyncio.run(check())


async def send_to_client_that_left(response: Response) -> None:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_message: object) -> None:
        await asyncio.sleep(0)

    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
    await response(scope, receive, send)
