"""Middleware that limits the number of requests, and the size and time of request bodies."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.server.limits import ServerLimits
from reconciler.server.protocol import RETRY_SECONDS

WEBHOOK_PATH = "/hooks"
# Close the connection, because the rest of the body is not read.
CLOSE = {"Connection": "close"}


class ConcurrencyLimit:
    """Responds with the status 503 if the server processes too many requests.

    Args:
        unlimited_paths: Paths with their own limit, whose requests stay open for a long time.
    """

    def __init__(self, app: ASGIApp, requests: int, unlimited_paths: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._free_requests = requests
        self._unlimited_paths = unlimited_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""
        if scope["path"] in self._unlimited_paths:
            await self._app(scope, receive, send)
            return
        if not self._free_requests:
            headers = {"Retry-After": str(RETRY_SECONDS), **CLOSE}
            await Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)(scope, receive, send)
            return
        self._free_requests -= 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._free_requests += 1


class SizeLimit:
    """Responds with the status 431 to large headers, 413 to a large body, and 408 to a slow body."""

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""
        is_webhook = scope["path"] == WEBHOOK_PATH
        limit = self._limits.webhook_body_bytes if is_webhook else self._limits.body_bytes
        length = Headers(scope=scope).get("content-length", "")
        if _count_header_bytes(scope) > self._limits.header_bytes:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        elif re.fullmatch("[0-9]+", length) and int(length) > limit:
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        else:
            await self._app(scope, _BodyReader(receive, limit, self._limits.body_seconds), send)
            return
        await Response(status_code=status, headers=CLOSE)(scope, receive, send)


def _count_header_bytes(scope: Scope) -> int:
    """Return the size of the request target and headers.

    The caller needs this size for its own limit, because the limit of h11 has no effect if all headers arrive at once.
    """
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return len(scope["raw_path"]) + len(scope["query_string"]) + headers


class _BodyReader:
    """Receives the events of one request from the server. It limits the size of the body and the time to receive it.

    Events after the body, such as the end of the connection, have no limits.
    """

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive = receive
        self._remaining_bytes = limit
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._is_complete = False

    async def __call__(self) -> Message:
        """Return the next message.

        Raises:
            HTTPException: The body is too large or too slow.
        """
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, headers=CLOSE) from None
        self._remaining_bytes -= len(message.get("body", b""))
        if self._remaining_bytes < 0:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, headers=CLOSE)
        self._is_complete = not message.get("more_body", False)
        return message
