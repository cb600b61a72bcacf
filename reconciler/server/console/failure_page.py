"""The page for a request whose processing an unexpected exception has ended."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.server.console.rendering import render_plain_page
from reconciler.server.failed_requests import log_failed_request


class FailurePages:
    """Sends a page with the ID of the request if a route of the console raises an exception. The log has the exception.

    Programs and scripts get a response without a page.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""
        request, has_started = Request(scope), False

        async def record_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, record_start)
        except Exception as error:
            # A page that is sent in parts can fail after its first part. Then the server closes the connection.
            if has_started or "text/html" not in request.headers.get("accept", ""):
                raise
            values = {"request_id": log_failed_request(request, error)}
            response = render_plain_page(request, "failed.html", values, HTTPStatus.INTERNAL_SERVER_ERROR)
            await response(scope, receive, send)
