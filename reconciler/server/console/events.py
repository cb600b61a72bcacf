"""The stream of events with which open pages notice a new index. Events contain numbers, and no content."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reconciler.output.fleet.model import FleetIndex

EVENTS_PATH = "/events"
MAX_STREAMS = 128
_POLL_SECONDS = 2.0
_HEARTBEAT_SECONDS = 15.0
_RETRY_SECONDS = 30


class EventStreams:
    """The open streams of events. Each stream checks every two seconds for a new index.

    Args:
        max_streams: The number of open streams. Further requests have the status 503, and their pages poll.
        poll_seconds: The time between two checks.
    """

    def __init__(self, max_streams: int = MAX_STREAMS, poll_seconds: float = _POLL_SECONDS) -> None:
        self._free_streams = max_streams
        self._poll_seconds = poll_seconds

    def open(self, request: Request, get_index: Callable[[], FleetIndex | None]) -> Response:
        """Return the response with a stream.

        Args:
            get_index: Returns the index that the person may read. If it returns None, the stream waits.

        Raises:
            HTTPException: There are too many streams.
        """
        if not self._free_streams:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": str(_RETRY_SECONDS)})
        self._free_streams -= 1
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._send(request, get_index), headers=headers, media_type="text/event-stream")

    async def _send(self, request: Request, get_index: Callable[[], FleetIndex | None]) -> AsyncIterator[str]:
        try:
            known = request.headers.get("last-event-id", "")
            silent_seconds = 0.0
            while not await request.is_disconnected():
                index = get_index()
                if index is not None and str(index.number) != known:
                    known, silent_seconds = str(index.number), 0.0
                    yield format_event(index)
                elif silent_seconds >= _HEARTBEAT_SECONDS:
                    silent_seconds = 0.0
                    yield ": heartbeat\n\n"
                await asyncio.sleep(self._poll_seconds)
                silent_seconds += self._poll_seconds
        finally:
            self._free_streams += 1


def format_event(index: FleetIndex) -> str:
    """Return the event that announces an index."""
    blocked = sum(index.state_counts.get(state, 0) for state in ("blocked", "held"))
    data = {"view": index.number, "changes": len(index.changes), "blocked": blocked}
    return f"id: {index.number}\nevent: view\ndata: {json.dumps(data)}\n\n"
