"""Tests of the stream of events: a new index is announced, streams are limited, and a closed stream is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from reconciler.output.fleet.model import FleetIndex
from reconciler.server.console.events import EventStreams

FIRST, SECOND = (FleetIndex(number, 1_700_000_000, "41ab") for number in (1, 2))


def create_request(is_disconnected: Callable[[], bool], last_event: str = "") -> Request:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"} if is_disconnected() else await asyncio.Event().wait()  # type: ignore[return-value]

    headers = [(b"last-event-id", last_event.encode())] if last_event else []
    return Request({"type": "http", "headers": headers}, receive)


def read_events(streams: EventStreams, indexes: list[FleetIndex | None], last_event: str = "") -> list[str]:
    """Return the chunks of a stream whose client leaves after the last index."""
    remaining = list(indexes)
    current: list[FleetIndex | None] = [None]

    def get_index() -> FleetIndex | None:
        current[0] = remaining.pop(0)
        return current[0]

    async def read() -> list[str]:
        response = streams.open(create_request(lambda: not remaining, last_event), get_index)
        assert isinstance(response, StreamingResponse)
        return [str(chunk) async for chunk in response.body_iterator]

    return asyncio.run(read())


def test_each_new_index_is_one_event() -> None:
    chunks = read_events(EventStreams(poll_seconds=0), [None, FIRST, FIRST, SECOND, SECOND])

    assert [chunk.splitlines()[:2] for chunk in chunks] == [["id: 1", "event: view"], ["id: 2", "event: view"]]
    assert chunks[0].splitlines()[2] == 'data: {"view": 1, "changes": 0, "blocked": 0}'


def test_a_client_that_connects_again_gets_only_newer_indexes() -> None:
    assert read_events(EventStreams(poll_seconds=0), [FIRST, FIRST], last_event="1") == []


def test_streams_above_the_limit_are_refused_until_another_ends() -> None:
    streams = EventStreams(max_streams=1, poll_seconds=0)

    async def check() -> None:
        first = streams.open(create_request(lambda: True), lambda: FIRST)
        with pytest.raises(HTTPException) as refused:
            streams.open(create_request(lambda: True), lambda: FIRST)
        assert isinstance(first, StreamingResponse)
        assert [chunk async for chunk in first.body_iterator] == []
        assert refused.value.status_code == 503
        assert streams.open(create_request(lambda: True), lambda: FIRST).status_code == 200

    asyncio.run(check())
