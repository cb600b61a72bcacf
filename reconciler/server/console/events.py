"""The stream of events with which open pages notice a new index and the progress of a job.

Events contain numbers, and no content.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import get_args

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import FleetIndex
from reconciler.review.review_job import ItemState, ReviewJob
from reconciler.server.console.topics import compute_version
from reconciler.service.fleet_view import FleetView

EVENTS_PATH = "/events"
MAX_STREAMS = 128
_POLL_SECONDS = 2.0
_HEARTBEAT_SECONDS = 15.0
_RETRY_SECONDS = 30
_JOB_TOPIC = "job:"


@dataclass(frozen=True)
class EventFeed:
    """The data of one stream.

    Attributes:
        is_open: Returns whether the stream continues. It can take several seconds. A stream ends when the session of
            its person ends, and when the console is disabled, gets different settings, or stops.
        get_number: Returns the number of the newest fleet index. None if no index is complete.
        get_index: Returns the part of the newest fleet index that the person may read. It can take a long time.
        get_view: Returns the fleet after the last pass. None if no pass is complete.
        get_job: Returns a job that the person may read, with its newest results.
    """

    is_open: Callable[[], bool]
    get_number: Callable[[], int | None]
    get_index: Callable[[], FleetIndex | None]
    get_view: Callable[[], FleetView | None] = lambda: None
    get_job: Callable[[str], ReviewJob | None] = lambda _job_id: None

    @property
    def event_id(self) -> str:
        """The ID of the newest event. The ID changes with each index and each pass. "" if no index is complete."""
        number, view = self.get_number(), self.get_view()
        return "" if number is None else f"{number}.{view.number if view else 0}"


class EventStreams:
    """The open streams of events. Each stream checks for a new index in regular intervals.

    Args:
        max_streams: The maximum number of open streams. Further requests get the status 503, and the pages that sent
            them poll.
        poll_seconds: The time between two checks.
    """

    def __init__(self, max_streams: int = MAX_STREAMS, poll_seconds: float = _POLL_SECONDS) -> None:
        self._free_streams = max_streams
        self._poll_seconds = poll_seconds

    def open(self, request: Request, feed: EventFeed) -> Response:
        """Return the response with a stream.

        The query parameter `topics` contains the topics of the page, separated by commas. Each event contains the
        version of these topics. The topic `job:ID` adds the progress of a job.

        Raises:
            HTTPException: There are too many streams.
        """
        if not self._free_streams:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": str(_RETRY_SECONDS)})
        self._free_streams -= 1
        return _StreamResponse(self._send(request, feed), self._release)

    def _release(self) -> None:
        self._free_streams += 1

    async def _send(self, request: Request, feed: EventFeed) -> AsyncIterator[str]:
        known = request.headers.get("last-event-id", "")
        topics = request.query_params.get("topics", "").split(",")
        job_id = next((topic.removeprefix(_JOB_TOPIC) for topic in topics if topic.startswith(_JOB_TOPIC)), "")
        page_topics = [topic for topic in topics if not topic.startswith(_JOB_TOPIC)]
        known_job = ""
        silent_seconds = 0.0
        while await run_in_threadpool(feed.is_open) and not await request.is_disconnected():
            # Read the index in a different thread, because it can take a long time to select the part that the person
            # may read.
            event_id = feed.event_id
            index = await run_in_threadpool(feed.get_index) if event_id not in ("", known) else None
            if index is not None:
                known, silent_seconds = event_id, 0.0
                version = await run_in_threadpool(compute_version, index, page_topics)
                yield format_event(event_id, index, feed.get_view(), version)
            job = await run_in_threadpool(feed.get_job, job_id) if job_id else None
            job_event = format_job_event(job) if job else ""
            if job_event and job_event != known_job:
                known_job, silent_seconds = job_event, 0.0
                yield job_event
            if silent_seconds >= _HEARTBEAT_SECONDS:
                silent_seconds = 0.0
                yield ": heartbeat\n\n"
            await asyncio.sleep(self._poll_seconds)
            silent_seconds += self._poll_seconds


class _StreamResponse(StreamingResponse):
    """The response with a stream of events. It calls `release` at its end, because the number of streams is limited.

    The generator of the events cannot call `release`. It does not run if the client disconnects before the first event.
    """

    def __init__(self, content: AsyncIterator[str], release: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(content, headers=headers, media_type="text/event-stream")
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


def format_job_event(job: ReviewJob) -> str:
    """Return the event that announces the progress of a job."""
    counts = {state: job.count_items(state) for state in get_args(ItemState)}
    return f"event: job\ndata: {json.dumps({'state': job.state, **counts})}\n\n"


def format_event(event_id: str, index: FleetIndex, view: FleetView | None, version: str) -> str:
    """Return the event that announces an index or a pass.

    Args:
        version: The version of the topics of the stream.
    """
    data: dict[str, object] = {
        "view": index.number, "version": version, "changes": len(index.changes), "blocked": index.blocked_count,
    }  # fmt: skip
    if view:
        last = view.last_pass
        data |= {"passAt": format_rfc3339(int(last.started_at + last.duration_seconds)), "passResult": last.result}
    return f"id: {event_id}\nevent: view\ndata: {json.dumps(data)}\n\n"
