"""The routes of the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.output.fleet.model import FleetIndex
from reconciler.review.restricted_index import KEPT_SECONDS
from reconciler.server.address import API_PREFIX
from reconciler.server.api.actions import ACTIONS, ActionEndpoint
from reconciler.server.api.bodies import check_origin, parse_body
from reconciler.server.api.endpoint import ApiRequest, Endpoint, check_parameters
from reconciler.server.api.endpoints import ENDPOINTS
from reconciler.server.api.openapi import build_openapi_document
from reconciler.server.api.paging import Cursor, read_cursor
from reconciler.server.api.problems import ApiError, respond_with_problem
from reconciler.server.api.quota import add_quota_headers, count_request
from reconciler.server.console.caching import COMPRESSION, build_entity_tag, has_entity_tag
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.security import SecurityHeaders
from reconciler.server.rate_limit import RateLimit
from reconciler.server.request_ids import read_request_id

_VIEW_HEADER = "X-View"
_JSON_TYPE = "application/json"


def create_api_routes(get_context: Callable[[], ConsoleContext | None], limit: RateLimit) -> list[Route]:
    """Return the routes of the API.

    Args:
        get_context: Returns the current data of the console. If it returns None, the API is disabled.
        limit: The limit of requests of each person and program.
    """
    middleware = [Middleware(SecurityHeaders), COMPRESSION]

    def create_route(endpoint: Endpoint) -> Route:
        # This function is not a coroutine, so that Starlette calls it in a thread.
        def respond(request: Request) -> Response:
            try:
                api_request = _open(request, _require_context(get_context), limit, should_read_cursor=endpoint.is_list)
                response = _respond(request, endpoint, api_request)
            except ApiError as error:
                response = respond_with_problem(error)
            return add_quota_headers(request, response)

        # The path of a package can contain slashes.
        return Route(API_PREFIX + endpoint.path.replace("{package}", "{package:path}"), respond, middleware=middleware)

    def create_action_route(action: ActionEndpoint) -> Route:
        async def respond(request: Request) -> Response:
            try:
                context = _require_context(get_context)
                check_origin(request)
                content = await request.body()
                response = await run_in_threadpool(_apply, request, action, content, context, limit)
            except ApiError as error:
                response = respond_with_problem(error)
            return add_quota_headers(request, response)

        return Route(API_PREFIX + action.path, respond, methods=["POST"], middleware=middleware)

    def send_openapi(_request: Request) -> Response:
        try:
            _require_context(get_context)
        except ApiError as error:
            return respond_with_problem(error)
        return Response(_format_openapi(), media_type=_JSON_TYPE)

    return [
        Route(f"{API_PREFIX}/openapi.json", send_openapi, middleware=middleware),
        *(create_action_route(action) for action in ACTIONS),
        *(create_route(endpoint) for endpoint in ENDPOINTS),
    ]


def _require_context(get_context: Callable[[], ConsoleContext | None]) -> ConsoleContext:
    context = get_context()
    if context is None:
        raise ApiError(
            "Disabled", "the API is not available, because the setting console.enabled is false", HTTPStatus.NOT_FOUND
        )
    return context


def _open(
    request: Request, context: ConsoleContext, limit: RateLimit, *, should_read_cursor: bool = False
) -> ApiRequest:
    """Authenticate the request, and select its fleet index: the index of its cursor, or the newest index.

    Raises:
        ApiError: The request is not allowed, or there is no such index.
    """
    session = context.authenticator.authenticate(request)
    if session is None:
        raise ApiError(
            "Unauthenticated", "the request has no valid token", HTTPStatus.UNAUTHORIZED,
            "Send a token in the header Authorization.",
        )  # fmt: skip
    count_request(request, session, limit)
    if session.permissions.role is None:
        raise ApiError(
            "NoRole", f"no rule of console.roles applies to {session.person.name}", HTTPStatus.FORBIDDEN,
            context.contact,
        )  # fmt: skip
    cursor = read_cursor(request.url.path, request.query_params) if should_read_cursor else None
    whole_index = _find_kept_index(context, cursor) if cursor else context.index
    if whole_index is None:
        raise ApiError("NoView", "no pass is complete yet", HTTPStatus.SERVICE_UNAVAILABLE, "Try again in a minute.")
    index = context.indexes.restrict(whole_index, session.permissions)
    return ApiRequest(
        context,
        session,
        index,
        whole_index,
        request.query_params,
        request.url.path,
        request.path_params,
        read_request_id(request),
    )


def _find_kept_index(context: ConsoleContext, cursor: Cursor) -> FleetIndex:
    """Return the index of a cursor.

    Raises:
        ApiError: The index is not kept any more.
    """
    index = context.indexes.find_kept(cursor.view) if cursor.indexes == context.indexes.id else None
    if index is None:
        minutes = round(KEPT_SECONDS / 60)
        raise ApiError(
            "CursorExpired",
            f"cursor: not valid any more; it is valid for {minutes} minutes after the next pass, in the same process",
            HTTPStatus.GONE,
            "Read the list again from its first page.",
        )  # fmt: skip
    return index


def _respond(request: Request, endpoint: Endpoint, api_request: ApiRequest) -> Response:
    check_parameters(endpoint, api_request.query)
    newest = api_request.context.index or api_request.whole_index
    headers = {_VIEW_HEADER: str(newest.number), "Cache-Control": "private, no-cache"}
    if endpoint.depends_on_index:
        headers["ETag"] = build_entity_tag(request, api_request.index, api_request.session)
        if has_entity_tag(request, headers["ETag"]):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(endpoint.build(api_request).to_json(), headers=headers, media_type=_JSON_TYPE)


def _apply(
    request: Request, action: ActionEndpoint, content: bytes, context: ConsoleContext, limit: RateLimit
) -> Response:
    api_request = _open(request, context, limit)
    response = action.apply(api_request, parse_body(action.body, content))
    headers = {"Location": response.location, "Cache-Control": "no-store"}
    return Response(response.result.to_json(), HTTPStatus.ACCEPTED, headers, _JSON_TYPE)


@cache
def _format_openapi() -> str:
    return json.dumps(build_openapi_document(), indent=2)
