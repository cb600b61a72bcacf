"""The application of the HTTP server: its routes, its limits, and its responses to errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from reconciler.server.console.events import EVENTS_PATH
from reconciler.server.failed_requests import log_failed_request
from reconciler.server.limits import ServerLimits
from reconciler.server.request_limits import ConcurrencyLimit, SizeLimit
from reconciler.server.request_metrics import RequestMetrics
from reconciler.server.request_origin import OriginCheck, OriginRules

_LONG_REQUESTS = frozenset({EVENTS_PATH})


def create_app(
    routes: Sequence[BaseRoute], limits: ServerLimits, get_origin_rules: Callable[[], OriginRules]
) -> ASGIApp:
    """Return the application with these routes. All other paths have the status 404."""
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestMetrics, routes, get_origin_rules),
            Middleware(ConcurrencyLimit, limits.requests, _LONG_REQUESTS),
            Middleware(OriginCheck, get_origin_rules),
            Middleware(SizeLimit, limits),
        ],
        exception_handlers={
            HTTPException: _respond_with_status,
            ClientDisconnect: _ignore_disconnect,
            Exception: _log_failure,
        },
    )
    # Do not redirect `/hooks/` to `/hooks`, because a proxy that publishes only some paths can treat them as two paths.
    app.router.redirect_slashes = False
    return app


async def _respond_with_status(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(status_code=error.status_code, headers=error.headers)


async def _ignore_disconnect(_request: Request, _error: Exception) -> Response:
    # The client has disconnected and does not receive this response. Only the metrics contain the status.
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _log_failure(request: Request, error: Exception) -> Response:
    log_failed_request(request, error)
    return Response(status_code=HTTPStatus.INTERNAL_SERVER_ERROR)
