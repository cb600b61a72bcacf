"""The routes of the read API."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from http import HTTPStatus

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.krm.json_text import compute_digest
from reconciler.server.api.endpoints import ENDPOINTS, PREFIX, ApiRequest, Endpoint, check_parameters
from reconciler.server.api.openapi import build_openapi_document
from reconciler.server.api.problems import ApiError, respond_with_problem
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.security import SecurityHeaders

_VIEW_HEADER = "X-View"
_JSON_TYPE = "application/json"


def create_api_routes(get_context: Callable[[], ConsoleContext | None]) -> list[Route]:
    """Return the routes of the API.

    Args:
        get_context: Returns the current data of the console. If it returns None, the API is disabled.
    """
    middleware = [Middleware(SecurityHeaders)]

    def create_route(endpoint: Endpoint) -> Route:
        # This function is not a coroutine, so that Starlette calls it in a thread.
        def respond(request: Request) -> Response:
            try:
                return _respond(request, endpoint, _require_context(get_context))
            except ApiError as error:
                return respond_with_problem(error)

        # The path of a package can contain slashes.
        return Route(PREFIX + endpoint.path.replace("{package}", "{package:path}"), respond, middleware=middleware)

    def send_openapi(_request: Request) -> Response:
        try:
            _require_context(get_context)
        except ApiError as error:
            return respond_with_problem(error)
        return Response(_format_openapi(), media_type=_JSON_TYPE)

    return [
        Route(f"{PREFIX}/openapi.json", send_openapi, middleware=middleware),
        *(create_route(endpoint) for endpoint in ENDPOINTS),
    ]


def _require_context(get_context: Callable[[], ConsoleContext | None]) -> ConsoleContext:
    context = get_context()
    if context is None:
        raise ApiError("Disabled", "the setting console.enabled is false", HTTPStatus.NOT_FOUND)
    return context


def _respond(request: Request, endpoint: Endpoint, context: ConsoleContext) -> Response:
    session = context.authenticator.authenticate(request)
    if session is None:
        raise ApiError(
            "Unauthenticated", "the request has no valid token", HTTPStatus.UNAUTHORIZED,
            "Send a token in the header Authorization.",
        )  # fmt: skip
    index = context.indexes.find(session.permissions)
    if index is None:
        raise ApiError("NoView", "no pass is complete yet", HTTPStatus.SERVICE_UNAVAILABLE, "Try again in a minute.")
    check_parameters(endpoint, request.query_params)
    digest = compute_digest([index.number, index.completed_at, repr(session.permissions), str(request.url.query)])
    headers = {_VIEW_HEADER: str(index.number), "ETag": f'"{digest[-32:]}"', "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    result = endpoint.build(ApiRequest(index, request.query_params, request.path_params))
    return Response(result.to_json(), headers=headers, media_type=_JSON_TYPE)


@cache
def _format_openapi() -> str:
    return json.dumps(build_openapi_document(), indent=2)
