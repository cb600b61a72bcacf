"""Middleware that counts, measures, traces and logs the requests of the HTTP server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.server.request_ids import read_request_id
from reconciler.server.request_origin import OriginRules, is_proxy_connection
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import HTTP_METHODS, HTTP_REQUEST_DURATION, HTTP_REQUESTS
from reconciler.telemetry.traces import request_span

if TYPE_CHECKING:
    from reconciler.telemetry.traces import Span

_OTHER_METHOD = HTTP_METHODS[-1]
_UNMATCHED = "unmatched"


def get_known_method(scope: Scope) -> str:
    """Return the method of a request, or `other`, because clients can send any text."""
    method: str = scope["method"]
    return method if method in HTTP_METHODS else _OTHER_METHOD


class RequestMetrics:
    """Records the route, the status and the duration of each request.

    The path of a request is not recorded, because clients can send any path.

    Args:
        get_origin_rules: Returns the current rules. Only trusted proxies can set the parent of the trace.
        clock: Returns the seconds of a clock with a high resolution.
    """

    def __init__(
        self,
        app: ASGIApp,
        routes: Sequence[BaseRoute],
        get_origin_rules: Callable[[], OriginRules],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app = app
        self._get_origin_rules = get_origin_rules
        self._paths: dict[object, str] = {route.endpoint: route.path for route in routes if isinstance(route, Route)}
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""
        parent = self._get_trace_parent(scope)
        with (
            log.request_scope(read_request_id(Request(scope))),
            request_span(get_known_method(scope), parent) as span,
        ):
            await self._process(scope, receive, send, span)

    def _get_trace_parent(self, scope: Scope) -> str:
        is_trusted = is_proxy_connection(scope, self._get_origin_rules())
        return Headers(scope=scope).get("traceparent", "") if is_trusted else ""

    async def _process(self, scope: Scope, receive: Receive, send: Send, span: Span | None) -> None:
        start = self._clock()
        # If an exception prevents the response of the application, the server responds with this status.
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def record_status(message: Message) -> None:
            nonlocal status
            status = int(message.get("status", status))
            await send(message)

        try:
            await self._app(scope, receive, record_status)
        finally:
            seconds = self._clock() - start
            route = self._paths.get(scope.get("endpoint"), _UNMATCHED)
            method = get_known_method(scope)
            HTTP_REQUESTS.add(method, route, str(status))
            HTTP_REQUEST_DURATION.observe(seconds, route)
            if span is not None:
                span.update_name(f"{method} {route}")
                span.set_attributes(
                    {"http.request.method": method, "http.route": route, "http.response.status_code": status}
                )
            log.debug("http_request", method=method, route=route, status=status, duration_ms=round(seconds * 1_000, 3))
